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

// Every change of a repository has a row in the database, from before the first
// write until after the last: a push has its journal, other changes an empty
// one. A move to another storage makes the repository read-only and then waits
// until there are no such rows of any node. Rows are inserted under the lock of
// the project or auxiliary repository row, which has the storage and the
// read-only flag. So nothing is written to the old storage during a move. A push
// that is one transaction takes the same lock instead (move_tx.go).

// movedMessage is the error for a change of a repository that was moved in the
// meantime.
const movedMessage = "The repository was moved to another storage in the meantime. Please try again."

// The tables of the rows.
const (
	pushTable        = "pushes"
	auxRepoPushTable = "annex_pushes"
)

// enter inserts the row for a change of a repository and returns the current
// storage. Unavailable while the repository is being moved.
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
		if err := at.checkWritable(); err != nil {
			return err
		}
		storage = at.storage
		id, err = insertPush(ctx, tx, projectID, who, what, s.Queue.Node(), s.Now())
		return err
	})
	if err != nil {
		return 0, "", fmt.Errorf("begin push: %w", err)
	}
	return id, storage, nil
}

// checkWritable returns Unavailable while the repository is being moved.
func (at place) checkWritable() error {
	if at.readOnly {
		return errs.Unavailable(project.BeingMoved).Because(project.ErrMoving)
	}
	return nil
}

// encode returns the actor and the journal as JSON.
func (j journal) encode(by actor.Actor) (who, what string, err error) {
	text, err := json.Marshal(by)
	if err != nil {
		return "", "", err
	}
	changes, err := json.Marshal(j)
	return string(text), string(changes), err
}

// hold runs do, which changes a repository other than by a push, on the current
// storage. Unavailable while the repository is being moved.
func (s *Service) hold(ctx context.Context, p *project.Project, do func(r git.Repo) error) error {
	id, storage, err := s.enter(ctx, actor.System(), p.ID, journal{})
	if err != nil {
		return err
	}
	defer s.alive(ctx, pushTable, id)()
	r, err := s.open(storage, p.ID)
	if err == nil {
		err = do(r)
	}
	return errors.Join(err, s.drop(context.WithoutCancel(ctx), id))
}

// alive updates the row of a long change regularly, so that it is not taken for
// one left by a crash, until stop is called.
func (s *Service) alive(ctx context.Context, table string, id int64) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	go func() {
		pause := time.NewTicker(SettleAge / 4)
		defer pause.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-pause.C:
				_ = touchPush(ctx, s.DB, table, id, s.Now()) // tried again on the next tick
			}
		}
	}()
	return stop
}

// touch updates the row of a push directly before its refs move. It returns Unavailable if the row is gone:
// this node was frozen, and another one has settled the push. If the database does not answer,
// the push goes on: it is recorded when the database is back. On SQLite, where only this process
// settles pushes, a push that began a moment ago is not touched.
func (s *Service) touch(ctx context.Context, table string, id int64, began time.Time) error {
	if !s.DB.Postgres() && s.Now().Sub(began) < SettleAge/4 {
		return nil
	}
	err := touchPush(ctx, s.DB, table, id, s.Now())
	if errors.Is(err, db.ErrNoRows) {
		return errs.Unavailable("The push was interrupted on the server. Please push again.").Because(err)
	}
	return nil
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
		if err := at.checkWritable(); err != nil {
			return err
		}
		storage = at.storage
		id, err = insertAuxRepoPush(ctx, tx, auxRepoID, who, what, s.Queue.Node(), s.Now())
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
	defer s.alive(ctx, auxRepoPushTable, id)()
	now := *a
	now.Storage = storage
	r, err := s.OpenAuxRepo(&now)
	if err == nil {
		err = do(r)
	}
	return errors.Join(err, s.dropAuxRepo(context.WithoutCancel(ctx), id))
}

// refuseNow refuses the changes of a push that may succeed later, with a
// message for the user: the repository is being moved or was moved, or a part
// of the server is not available. Other errors are returned.
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
