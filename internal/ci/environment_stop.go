package ci

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/ci/deployment"
	"svc/internal/ci/flow"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// StopEnvironment stops an environment, for Developers and above who may deploy to it. Without force it
// starts the job that stops the environment, if the last deployment names one.
// Forbidden if the actor may not run jobs on the ref of that job; NotFound.
func (s *Service) StopEnvironment(ctx context.Context, by actor.Actor, in project.Ref, id int64, force bool) (*deployment.Environment, error) {
	proj, err := s.Projects.Require(ctx, by, in, project.NoAccess)
	if err != nil {
		return nil, err
	}
	return s.stopFor(ctx, by, proj, id, force)
}

func (s *Service) stopFor(ctx context.Context, by actor.Actor, proj *project.Project, id int64, force bool) (*deployment.Environment, error) {
	if !force {
		if err := s.mayStop(ctx, by, proj, id); err != nil {
			return nil, err
		}
	}
	if err := proj.Change(by, project.EnvironmentPart, project.Developer); err != nil {
		return nil, err
	}
	if err := s.Deployments.RequireDeployTo(ctx, by, proj, id); err != nil {
		return nil, err
	}
	return s.Deployments.ChangeEnvironment(ctx, by, proj, id, "environment_stopped", audit.Details{Change: "state", To: string(deployment.Stopped)}, func(tx *db.Tx, e *deployment.Environment) error {
		return s.stopEnvironment(ctx, tx, e, &by.ID, force)
	})
}

// mayStop returns Forbidden if the actor may not start the job that stops an
// environment.
func (s *Service) mayStop(ctx context.Context, by actor.Actor, proj *project.Project, id int64) error {
	if err := proj.Change(by, project.BuildsPart, project.Developer); err != nil {
		return err
	}
	e, err := deployment.FindEnvironment(ctx, s.DB, proj.ID, id)
	if err != nil {
		return err
	}
	stop, err := findStopJob(ctx, s.DB, e)
	if err != nil || stop == nil {
		return err
	}
	return s.requireRun(ctx, by, proj, stop.Ref, stop.Tag)
}

// StopStale stops the environments of a project that were neither changed nor
// deployed to since a time, for Maintainers and above. Those that the actor may not
// stop remain.
func (s *Service) StopStale(ctx context.Context, by actor.Actor, in project.Ref, before time.Time) error {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.EnvironmentPart, project.Maintainer)
	if err != nil {
		return err
	}
	now := s.Now()
	if before.After(now.AddDate(0, 0, -7)) || before.Before(now.AddDate(-10, 0, 0)) {
		return errs.Invalid("Invalid Date")
	}
	ids, err := deployment.StaleEnvironments(ctx, s.DB, proj.ID, before)
	if err != nil {
		return fmt.Errorf("find stale environments of project %d: %w", proj.ID, err)
	}
	for _, id := range ids {
		_, err := s.stopFor(ctx, by, proj, id, false)
		if err != nil && !errs.Is(err, errs.KindForbidden) && !errs.Is(err, errs.KindNotFound) {
			return err
		}
	}
	return nil
}

// stopEnvironment sets the state and, without force, starts the job that stops the
// environment.
func (s *Service) stopEnvironment(ctx context.Context, tx *db.Tx, e *deployment.Environment, userID *int64, force bool) error {
	if e.State == deployment.Stopped {
		return nil
	}
	e.State, e.AutoStopAt = deployment.Stopped, nil
	if force {
		return nil
	}
	stop, err := findStopJob(ctx, tx, e)
	if err != nil || stop == nil {
		return err
	}
	e.State = deployment.Stopping
	return s.Queue.Add(ctx, tx, playWork{JobID: stop.ID, UserID: userID})
}

// stopExpired stops the environments whose AutoStopAt has passed.
func (s *Service) stopExpired(ctx context.Context) error {
	list, err := deployment.ExpiredEnvironments(ctx, s.DB, s.Now())
	if err != nil {
		return fmt.Errorf("find expired environments: %w", err)
	}
	for _, found := range list {
		err := s.DB.Tx(ctx, func(tx *db.Tx) error {
			if err := tx.Lock(ctx, "environments", found.ID); err != nil {
				return err
			}
			e, err := deployment.FindEnvironment(ctx, tx, found.ProjectID, found.ID)
			if err != nil || e.AutoStopAt == nil {
				return errs.IgnoreNotFound(err)
			}
			if err := s.stopEnvironment(ctx, tx, e, nil, false); err != nil {
				return err
			}
			e.AutoStopAt, e.UpdatedAt = nil, s.Now()
			return deployment.SaveEnvironment(ctx, tx, e)
		})
		if err != nil {
			return fmt.Errorf("stop environment %d: %w", found.ID, err)
		}
	}
	return nil
}

// findStopJob returns the job that stops an environment, in the pipeline of its
// last deployment; nil if there is none that can be started.
func findStopJob(ctx context.Context, q db.Q, e *deployment.Environment) (*Job, error) {
	last, err := deployment.LastSuccessful(ctx, q, e.ID)
	if err != nil || last == nil || last.JobID == nil {
		return nil, err
	}
	deployed, err := findAnyJob(ctx, q, *last.JobID)
	if err != nil {
		return nil, errs.IgnoreNotFound(err)
	}
	// The options of the job are current; the update of the environment may still
	// be in the queue.
	o := deployed.Options.Environment
	if o == nil || o.OnStop == "" {
		return nil, nil
	}
	j, err := latestNamed(ctx, q, deployed.PipelineID, o.OnStop)
	if err != nil || j == nil {
		return nil, err
	}
	switch j.Status {
	case flow.Manual, flow.Scheduled, flow.Failed, flow.Canceled: // see workPlay
		return j, nil
	}
	return nil, nil
}
