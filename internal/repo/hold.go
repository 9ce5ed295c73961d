package repo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// Anyone who changes a repository is known by a row, from before the first
// change until after the last: a push by its journal, all else by an empty one.
// A move to another storage makes the repository read-only and then waits until
// there is no such row, on any node; a row is made under the lock of the one
// that says where the repository is, and that no one may write to it. So
// nothing is written to a place that is being left.

// elsewhere is said to one whose repository went away under them.
const elsewhere = "The repository was moved to another storage meanwhile. Please try again."

// enter writes down that a repository is about to be changed, and says where
// it lies. Unavailable while it is being moved.
func (s *Service) enter(ctx context.Context, by actor.Actor, projectID int64, j journal) (id int64, storage string, err error) {
	who, what, err := j.encode(by)
	if err != nil {
		return 0, "", err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		at, err := lockPlace(ctx, tx, "projects", projectID)
		if err != nil {
			return db.NotFound(err, "Project")
		}
		if at.readOnly {
			return errs.Unavailable(project.BeingMoved).Because(project.ErrMoving)
		}
		storage = at.storage
		id, err = insertPush(ctx, tx, projectID, who, what, s.Now())
		return err
	})
	if err != nil {
		return 0, "", fmt.Errorf("begin push: %w", err)
	}
	return id, storage, nil
}

// encode writes who does what, for a row.
func (j journal) encode(by actor.Actor) (who, what string, err error) {
	text, err := json.Marshal(by)
	if err != nil {
		return "", "", err
	}
	changes, err := json.Marshal(j)
	return string(text), string(changes), err
}

// hold has do change a repository beside pushes, where it lies now. Unavailable
// while it is being moved.
func (s *Service) hold(ctx context.Context, p *project.Project, do func(r git.Repo) error) error {
	id, storage, err := s.enter(ctx, actor.System(), p.ID, journal{})
	if err != nil {
		return err
	}
	defer s.alive(ctx, "pushes", id)()
	r, err := s.open(storage, p.ID)
	if err == nil {
		err = do(r)
	}
	return errors.Join(err, s.drop(context.WithoutCancel(ctx), id))
}

// alive keeps a row of one who writes for long from being taken for that of one
// who was cut off, until what it gives is called.
func (s *Service) alive(ctx context.Context, table string, id int64) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	go func() {
		pause := time.NewTicker(settleAge / 4)
		defer pause.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-pause.C:
				_ = touchPush(ctx, s.DB, table, id, s.Now()) // the next time, then
			}
		}
	}()
	return stop
}

// enterAuxRepo is enter for an auxiliary repository.
func (s *Service) enterAuxRepo(ctx context.Context, by actor.Actor, auxRepoID int64, j journal) (id int64, storage string, err error) {
	who, what, err := j.encode(by)
	if err != nil {
		return 0, "", err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		at, err := lockPlace(ctx, tx, "annexes", auxRepoID)
		if err != nil {
			return db.NotFound(err, "")
		}
		if at.readOnly {
			return errs.Unavailable(project.BeingMoved).Because(project.ErrMoving)
		}
		storage = at.storage
		id, err = insertAuxRepoPush(ctx, tx, auxRepoID, who, what, s.Now())
		return err
	})
	if err != nil {
		return 0, "", fmt.Errorf("begin push: %w", err)
	}
	return id, storage, nil
}

// holdAuxRepo is hold for an auxiliary repository.
func (s *Service) holdAuxRepo(ctx context.Context, a *AuxRepo, do func(r git.Repo) error) error {
	id, storage, err := s.enterAuxRepo(ctx, actor.System(), a.ID, journal{})
	if err != nil {
		return err
	}
	defer s.alive(ctx, "annex_pushes", id)()
	now := *a
	now.Storage = storage
	r, err := s.OpenAuxRepo(&now)
	if err == nil {
		err = do(r)
	}
	return errors.Join(err, s.dropAuxRepo(context.WithoutCancel(ctx), id))
}

// refuseNow refuses the changes of a push that may succeed later, in words for
// the terminal of the user: the repository is being moved, or was, or a part of
// the server does not answer. Other errors are faults.
func refuseNow(push *git.Push, err error) error {
	refusal, ok := errs.As(err)
	if !ok || refusal.Kind != errs.KindUnavailable && refusal.Kind != errs.KindConflict {
		return err
	}
	push.Say("%s", refusal.Text)
	why := "the server cannot take it now"
	if errors.Is(err, project.ErrMoving) || refusal.Kind == errs.KindConflict {
		why = "the repository is being moved"
	}
	for _, c := range push.Changes {
		if c.Refused == "" {
			c.Refused = why
		}
	}
	return nil
}
