package storagemove

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/repo"
)

// locationOf returns the location of a repository.
func locationOf(l repo.Located) location { return location{l.Storage, l.Path} }

// place sets the storage and the read-only flag of the repositories of a move.
// An empty storage keeps the current one.
func (m *Service) place(ctx context.Context, tx *db.Tx, list []repo.Located, storage string, readOnly bool) error {
	for _, l := range list {
		to := l.Storage
		if storage != "" {
			to = storage
		}
		if err := m.Repos.Relocate(ctx, tx, l, to, readOnly); err != nil {
			return err
		}
	}
	return nil
}

// close makes the repositories of a move read-only. InvalidField if they
// already are, or are not on the source storage.
func (m *Service) close(ctx context.Context, tx *db.Tx, mv *Move) error {
	list, err := m.Repos.LockLocated(ctx, tx, mv.owner())
	if err != nil {
		return err
	}
	if mv.Kind == Project && list[0].ReadOnly {
		return errs.InvalidField(string(mv.Kind), "is read-only")
	}
	if mv.Kind == Project {
		importing, err := m.Repos.Projects.Importing(ctx, tx, mv.OwnerID)
		if err != nil {
			return err
		}
		if importing {
			return errs.InvalidField(string(mv.Kind), "is being imported")
		}
	}
	if slices.ContainsFunc(list, func(l repo.Located) bool { return l.ReadOnly }) {
		return errs.InvalidField(string(mv.Kind), "is read-only")
	}
	if list[0].Storage != mv.Source {
		return errs.InvalidField(string(mv.Kind), "is now on another storage")
	}
	return m.place(ctx, tx, list, "", true)
}

// planCopies records the copies that the move will create, so that they can be
// removed if the move fails, even if the owner was deleted. NotFound.
func (m *Service) planCopies(ctx context.Context, tx *db.Tx, mv *Move) error {
	list, err := m.Repos.Located(ctx, tx, mv.owner())
	if err != nil {
		return err
	}
	mv.left = nil
	for _, p := range list {
		if p.Storage != mv.Destination {
			mv.left = append(mv.left, location{mv.Destination, p.Path})
		}
	}
	return nil
}

// errMore means that there are repositories that are not copied yet.
var errMore = errors.New("repositories were added during the copy")

// swap switches the repositories to their copies when the transaction commits.
// errMore.
func (m *Service) swap(ctx context.Context, tx *db.Tx, mv *Move, copied map[location]bool) error {
	now, err := m.Repos.LockLocated(ctx, tx, mv.owner())
	if err != nil {
		return err
	}
	mv.left = nil
	for _, p := range now {
		if p.Storage != mv.Destination {
			if !copied[locationOf(p)] {
				return errMore
			}
			mv.left = append(mv.left, locationOf(p))
		}
		if err := m.Repos.AddHousekeeping(ctx, tx, p); err != nil {
			return err
		}
	}
	if len(mv.left) < len(copied) {
		return errors.New("a repository was deleted during the copy")
	}
	if err := m.place(ctx, tx, now, mv.Destination, true); err != nil {
		return err
	}
	if err := m.record(ctx, tx, actor.System(), mv, "repository_storage_updated"); err != nil {
		return err
	}
	if err := m.addCleaning(ctx, tx, mv.ID); err != nil {
		return err
	}
	return m.Notices.Send(ctx, tx, moveTopic, strconv.FormatInt(mv.ID, 10))
}

// open makes the repositories of a move writable again, on whatever storage
// they are. It does nothing if the owner was deleted.
func (m *Service) open(ctx context.Context, tx *db.Tx, mv *Move) error {
	now, err := m.Repos.LockLocated(ctx, tx, mv.owner())
	if errs.Is(err, errs.KindNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return m.place(ctx, tx, now, "", false)
}
