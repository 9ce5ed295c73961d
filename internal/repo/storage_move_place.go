package repo

import (
	"context"
	"errors"
	"strconv"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
)

// part is one of the repositories of a move.
type part struct {
	auxRepo *AuxRepo // nil for the repository of a project
	storage string
	path    string // in the storage
}

// place returns the location of the part.
func (p part) place() location { return location{p.storage, p.path} }

// parts returns the repositories of a move with their current locations.
// NotFound if the owner was deleted.
func (m *Mover) parts(ctx context.Context, q db.Q, mv *StorageMove) ([]part, error) {
	var list []part
	if mv.Kind == ProjectMove {
		at, err := findPlace(ctx, q, "projects", mv.OwnerID)
		if err != nil {
			return nil, db.NotFound(err, "Project")
		}
		list = append(list, part{storage: at.storage, path: pathOf(mv.OwnerID)})
	}
	a, err := findAuxRepo(ctx, q, mv.Kind.owner().auxRepo, mv.OwnerID)
	switch {
	case err == nil:
		list = append(list, part{a, a.Storage, auxRepoPath(a.Kind, a.ID)})
	case !errors.Is(err, db.ErrNoRows):
		return nil, err
	case mv.Kind != ProjectMove:
		return nil, errs.NotFound("Repository")
	}
	return list, nil
}

// place sets the storage and the read-only flag of the parts of a move. An
// empty storage keeps the current one.
func (m *Mover) place(ctx context.Context, tx *db.Tx, mv *StorageMove, list []part, storage string, readOnly bool) error {
	for _, p := range list {
		to := p.storage
		if storage != "" {
			to = storage
		}
		var err error
		if p.auxRepo != nil {
			err = saveAuxRepoPlace(ctx, tx, p.auxRepo.ID, to, readOnly)
		} else {
			err = m.Repos.Projects.Placed(ctx, tx, mv.OwnerID, to, readOnly)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lockParts is parts with the rows locked until the transaction ends.
func (m *Mover) lockParts(ctx context.Context, tx *db.Tx, mv *StorageMove) ([]part, error) {
	if mv.Kind == ProjectMove {
		if err := tx.Lock(ctx, "projects", mv.OwnerID); err != nil {
			return nil, err
		}
	}
	list, err := m.parts(ctx, tx, mv)
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		if p.auxRepo != nil {
			if err := tx.Lock(ctx, "annexes", p.auxRepo.ID); err != nil {
				return nil, err
			}
		}
	}
	return m.parts(ctx, tx, mv) // read again under the locks
}

// close makes the repositories of a move read-only. InvalidField if they
// already are, or are not on the source storage.
func (m *Mover) close(ctx context.Context, tx *db.Tx, mv *StorageMove) error {
	list, err := m.lockParts(ctx, tx, mv)
	if err != nil {
		return err
	}
	if mv.Kind == ProjectMove {
		at, err := findPlace(ctx, tx, "projects", mv.OwnerID)
		if err != nil {
			return err
		}
		if at.readOnly {
			return errs.InvalidField(string(mv.Kind), "is read-only")
		}
		importing, err := m.Repos.Projects.Importing(ctx, tx, mv.OwnerID)
		if err != nil {
			return err
		}
		if importing {
			return errs.InvalidField(string(mv.Kind), "is being imported")
		}
	}
	for _, p := range list {
		if p.auxRepo != nil && p.auxRepo.ReadOnly {
			return errs.InvalidField(string(mv.Kind), "is read-only")
		}
	}
	if list[0].storage != mv.Source {
		return errs.InvalidField(string(mv.Kind), "is on another storage by now")
	}
	return m.place(ctx, tx, mv, list, "", true)
}

// planCopies records the copies that the move will create, so that they can be
// removed if the move fails, even if the owner was deleted. NotFound.
func (m *Mover) planCopies(ctx context.Context, tx *db.Tx, mv *StorageMove) error {
	list, err := m.parts(ctx, tx, mv)
	if err != nil {
		return err
	}
	mv.left = nil
	for _, p := range list {
		if p.storage != mv.Destination {
			mv.left = append(mv.left, location{mv.Destination, p.path})
		}
	}
	return nil
}

// errMore means that there are repositories that are not copied yet.
var errMore = errors.New("there are more repositories by now")

// swap switches the repositories to their copies when the transaction commits.
// errMore.
func (m *Mover) swap(ctx context.Context, tx *db.Tx, mv *StorageMove, copied map[location]bool) error {
	now, err := m.lockParts(ctx, tx, mv)
	if err != nil {
		return err
	}
	mv.left = nil
	for _, p := range now {
		if p.storage != mv.Destination {
			if !copied[p.place()] {
				return errMore
			}
			mv.left = append(mv.left, p.place())
		}
		if p.auxRepo != nil {
			err = m.Repos.addAuxRepoTidying(ctx, tx, p.auxRepo.ID, false)
		} else {
			err = m.Repos.addTidying(ctx, tx, mv.OwnerID)
		}
		if err != nil {
			return err
		}
	}
	if len(mv.left) < len(copied) {
		return errors.New("one of the repositories went while they were copied")
	}
	if err := m.place(ctx, tx, mv, now, mv.Destination, true); err != nil {
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
func (m *Mover) open(ctx context.Context, tx *db.Tx, mv *StorageMove) error {
	now, err := m.lockParts(ctx, tx, mv)
	if errs.Is(err, errs.KindNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return m.place(ctx, tx, mv, now, "", false)
}
