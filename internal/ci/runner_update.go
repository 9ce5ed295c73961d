package ci

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

// UpdateRunner changes a runner; those who keep it. NotFound, Forbidden, or
// Invalid.
func (s *Service) UpdateRunner(ctx context.Context, by actor.Actor, id int64, c RunnerChange) (*Runner, error) {
	if _, err := s.keptRunner(ctx, by, id); err != nil {
		return nil, err
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "runners", id); err != nil {
			return err
		}
		r, err := findRunner(ctx, tx, id)
		if err != nil {
			return err
		}
		c.apply(r)
		if err := r.check(); err != nil {
			return err
		}
		r.UpdatedAt = s.Now()
		if err := saveRunner(ctx, tx, r); err != nil {
			return err
		}
		if err := s.runnerChanged(ctx, tx, r.ID); err != nil {
			return err
		}
		in, err := s.runnerEntity(ctx, tx, r)
		if err != nil {
			return err
		}
		return s.recordRunner(ctx, tx, by, r, in, "ci_runner_updated", audit.Details{Change: "runner"})
	})
	if err != nil {
		return nil, fmt.Errorf("update runner %d: %w", id, err)
	}
	return s.Runner(ctx, by, id)
}

// runnerEntity is where the changes of a runner are recorded.
func (s *Service) runnerEntity(ctx context.Context, q db.Q, r *Runner) (audit.Entity, error) {
	switch r.Kind {
	case GroupRunner:
		path, err := namespacePath(ctx, q, *r.GroupID)
		return audit.Entity{Type: audit.GroupEntity, ID: *r.GroupID, Path: path}, err
	case ProjectRunner:
		ids, err := runnerProjects(ctx, q, r.ID)
		if err != nil || len(ids) == 0 {
			return audit.Instance(), err
		}
		path, err := projectPath(ctx, q, ids[0])
		return audit.Entity{Type: audit.ProjectEntity, ID: ids[0], Path: path}, err
	}
	return audit.Instance(), nil
}

// DeleteRunner removes a runner; those who keep it. NotFound; Forbidden, also
// when a project's runner serves several projects.
func (s *Service) DeleteRunner(ctx context.Context, by actor.Actor, id int64, unmodifiedSince *time.Time) error {
	r, err := s.keptRunner(ctx, by, id)
	if err != nil {
		return err
	}
	if r.Kind == ProjectRunner && !by.Admin {
		ids, err := runnerProjects(ctx, s.DB, id)
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
	return s.removeRunner(ctx, by, r)
}

func (s *Service) removeRunner(ctx context.Context, by actor.Actor, r *Runner) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		in, err := s.runnerEntity(ctx, tx, r)
		if err != nil {
			return err
		}
		if err := deleteRunner(ctx, tx, r.ID); err != nil {
			return notFound(err, "Runner")
		}
		if err := s.runnerChanged(ctx, tx, r.ID); err != nil {
			return err
		}
		return s.recordRunner(ctx, tx, by, r, in, "ci_runner_deleted", audit.Details{Remove: "runner"})
	})
	if err != nil {
		return fmt.Errorf("delete runner %d: %w", r.ID, err)
	}
	return nil
}

// ResetRunnerToken gives a runner a new token, in Secret; the old one does
// not work any more. Those who keep the runner; NotFound or Forbidden.
func (s *Service) ResetRunnerToken(ctx context.Context, by actor.Actor, id int64) (*Runner, error) {
	r, err := s.keptRunner(ctx, by, id)
	if err != nil {
		return nil, err
	}
	return r, s.renewRunner(ctx, by, r, runnerPrefix)
}

func (s *Service) renewRunner(ctx context.Context, by actor.Actor, r *Runner, prefix string) error {
	r.Secret = secret.Token(prefix)
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := setRunnerToken(ctx, tx, r, s.Now()); err != nil {
			return notFound(err, "Runner")
		}
		in, err := s.runnerEntity(ctx, tx, r)
		if err != nil {
			return err
		}
		if err := s.recordRunner(ctx, tx, by, r, in, "ci_runner_token_reset", audit.Details{Change: "token"}); err != nil {
			return err
		}
		return s.runnerChanged(ctx, tx, r.ID) // a request with the old one may be held
	})
	if err != nil {
		return fmt.Errorf("reset token of runner %d: %w", r.ID, err)
	}
	return nil
}
