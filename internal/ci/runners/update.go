package runners

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/secret"
)

// Update changes a runner that the actor may manage. NotFound, Forbidden or
// Invalid.
func (s *Service) Update(ctx context.Context, by actor.Actor, id int64, c Change) (*Runner, error) {
	if _, err := s.Manageable(ctx, by, id); err != nil {
		return nil, err
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "runners", id); err != nil {
			return err
		}
		r, err := find(ctx, tx, id)
		if err != nil {
			return err
		}
		c.apply(r)
		if err := r.check(); err != nil {
			return err
		}
		r.UpdatedAt = s.Now()
		if err := save(ctx, tx, r); err != nil {
			return err
		}
		if err := s.changed(ctx, tx, r.ID); err != nil {
			return err
		}
		in, err := s.entity(ctx, tx, r)
		if err != nil {
			return err
		}
		return s.record(ctx, tx, by, r, in, "ci_runner_updated", audit.Details{Change: "runner"})
	})
	if err != nil {
		return nil, fmt.Errorf("update runner %d: %w", id, err)
	}
	return s.Get(ctx, by, id)
}

// entity is the entity of the audit events of a runner.
func (s *Service) entity(ctx context.Context, q db.Q, r *Runner) (audit.Entity, error) {
	switch r.Type {
	case GroupType:
		path, err := namespacePath(ctx, q, *r.GroupID)
		return audit.Entity{Type: audit.GroupEntity, ID: *r.GroupID, Path: path}, err
	case ProjectType:
		ids, err := ProjectIDs(ctx, q, r.ID)
		if err != nil || len(ids) == 0 {
			return audit.Instance(), err
		}
		path, err := projectPath(ctx, q, ids[0])
		return audit.Entity{Type: audit.ProjectEntity, ID: ids[0], Path: path}, err
	}
	return audit.Instance(), nil
}

// Delete deletes a runner that the actor may manage. NotFound; Forbidden, also if
// a project runner has several projects.
func (s *Service) Delete(ctx context.Context, by actor.Actor, id int64, unmodifiedSince *time.Time) error {
	r, err := s.Manageable(ctx, by, id)
	if err != nil {
		return err
	}
	if r.Type == ProjectType && !by.Admin {
		ids, err := ProjectIDs(ctx, s.DB, id)
		if err != nil {
			return err
		}
		if len(ids) > 1 {
			return errs.Forbidden("Runner associated with more than one project")
		}
	}
	if err := errs.ChangedSince(r.UpdatedAt, unmodifiedSince); err != nil {
		return err
	}
	return s.remove(ctx, by, r)
}

func (s *Service) remove(ctx context.Context, by actor.Actor, r *Runner) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		in, err := s.entity(ctx, tx, r)
		if err != nil {
			return err
		}
		if err := deleteRow(ctx, tx, r.ID); err != nil {
			return db.NotFound(err, "Runner")
		}
		if err := s.changed(ctx, tx, r.ID); err != nil {
			return err
		}
		return s.record(ctx, tx, by, r, in, "ci_runner_deleted", audit.Details{Remove: "runner"})
	})
	if err != nil {
		return fmt.Errorf("delete runner %d: %w", r.ID, err)
	}
	return nil
}

// ResetToken replaces the token of a runner that the actor may manage; the new
// one is in Secret. NotFound or Forbidden.
func (s *Service) ResetToken(ctx context.Context, by actor.Actor, id int64) (*Runner, error) {
	r, err := s.Manageable(ctx, by, id)
	if err != nil {
		return nil, err
	}
	return r, s.renewToken(ctx, by, r, tokenPrefix)
}

func (s *Service) renewToken(ctx context.Context, by actor.Actor, r *Runner, prefix string) error {
	r.Secret = secret.Token(prefix)
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := saveToken(ctx, tx, r, s.Now()); err != nil {
			return db.NotFound(err, "Runner")
		}
		in, err := s.entity(ctx, tx, r)
		if err != nil {
			return err
		}
		if err := s.record(ctx, tx, by, r, in, "ci_runner_token_reset", audit.Details{Change: "token"}); err != nil {
			return err
		}
		return s.changed(ctx, tx, r.ID) // a request with the old token may be held
	})
	if err != nil {
		return fmt.Errorf("reset token of runner %d: %w", r.ID, err)
	}
	return nil
}
