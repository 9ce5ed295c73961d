package runners

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// Enable assigns a project runner to another project. The actor must be a
// Maintainer there and may manage the runner. Forbidden if the runner is locked
// or has another type, InvalidField if it is assigned already.
func (s *Service) Enable(ctx context.Context, by actor.Actor, ref project.Ref, runnerID int64) (*Runner, error) {
	p, err := s.Projects.RequireChange(ctx, by, ref, project.SettingsPart, project.Maintainer)
	if err != nil {
		return nil, err
	}
	r, err := find(ctx, s.DB, runnerID)
	if err != nil {
		return nil, err
	}
	switch {
	case r.Type == InstanceType:
		return nil, errs.Forbidden("Runner is an instance runner")
	case r.Type == GroupType:
		return nil, errs.Forbidden("Runner is a group runner")
	case r.Locked && !by.Admin:
		return nil, errs.Forbidden("Runner is locked")
	}
	if err := s.mayManage(ctx, by, r); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "runners", r.ID); err != nil {
			return err
		}
		err := insertProject(ctx, tx, r.ID, p.ID)
		if db.IsUnique(err, "runner_projects_runner_id_project_id") {
			return errs.InvalidField("runner", "has already been taken")
		}
		if err != nil {
			return err
		}
		if err := s.changed(ctx, tx, r.ID); err != nil {
			return err
		}
		return s.record(ctx, tx, by, r, p.Entity(), "ci_runner_assigned", audit.Details{Add: "runner"})
	})
	if err != nil {
		return nil, fmt.Errorf("enable runner %d: %w", r.ID, err)
	}
	return r, s.fillAll(ctx, []*Runner{r})
}

// Disable unassigns a project runner from a project, for Maintainers of the
// project. NotFound if it is not assigned; Forbidden for the project that owns
// the runner.
func (s *Service) Disable(ctx context.Context, by actor.Actor, ref project.Ref, runnerID int64) error {
	p, err := s.Projects.RequireChange(ctx, by, ref, project.SettingsPart, project.Maintainer)
	if err != nil {
		return err
	}
	r, err := find(ctx, s.DB, runnerID)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		ids, err := ProjectIDs(ctx, tx, r.ID)
		if err != nil {
			return err
		}
		switch at := slices.Index(ids, p.ID); {
		case at < 0:
			return errs.NotFound("Runner")
		case len(ids) == 1:
			return errs.Forbidden("Only one project associated with the runner. Please remove the runner instead")
		case at == 0:
			return errs.Forbidden("You cannot unassign a runner from the owner project. Delete the runner instead")
		}
		if err := deleteProject(ctx, tx, r.ID, p.ID); err != nil {
			return db.NotFound(err, "Runner")
		}
		if err := s.changed(ctx, tx, r.ID); err != nil {
			return err
		}
		return s.record(ctx, tx, by, r, p.Entity(), "ci_runner_unassigned", audit.Details{Remove: "runner"})
	})
	if err != nil {
		return fmt.Errorf("disable runner %d: %w", r.ID, err)
	}
	return nil
}
