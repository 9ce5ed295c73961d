package ci

import (
	"context"
	"errors"
	"fmt"

	"svc/internal/ci/config"
	"svc/internal/ci/flow"
	"svc/internal/db"
	"svc/internal/expand"
)

// environmentWork brings an environment up to date after a job for it.
type environmentWork struct {
	JobID int64 `json:"job_id"`
}

// Kind implements queue.Work.
func (environmentWork) Kind() string { return "ci_environment" }

func (s *Service) updateEnvironment(ctx context.Context, w environmentWork) error {
	j, err := findAnyJob(ctx, s.DB, w.JobID)
	if err != nil {
		return err
	}
	o := j.Options.Environment
	if o == nil || j.EnvironmentID == nil {
		return nil
	}
	list, err := s.readVariables(ctx, j)
	if err != nil {
		return err
	}
	var known []config.Variable
	for _, v := range list {
		known = append(known, config.Variable{Key: v.Key, Value: v.Value})
	}
	// Often the job itself found out where it put what it deployed.
	own, err := s.Artifacts.Inputs(ctx, []int64{j.ID})
	if err != nil {
		return err
	}
	reported, err := s.Artifacts.Dotenv(ctx, own[j.ID].Dotenv)
	if err != nil {
		return err
	}
	known = append(known, reported...)
	if resolved, err := config.Resolve(expand.NewBudget(ctx), known); err == nil {
		known = resolved
	}
	texts := flatExpansion(ctx, config.LookupIn(known))
	url, autoStop := texts.All(o.URL), texts.All(o.AutoStopIn)
	if texts.err() != nil {
		url, autoStop = "", "" // they cannot be told
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "environments", *j.EnvironmentID); err != nil {
			return err
		}
		e, err := findEnvironment(ctx, tx, j.ProjectID, *j.EnvironmentID)
		if err != nil {
			return err
		}
		e.UpdatedAt = s.Now()
		switch {
		case o.Action == "stop":
			e.State, e.AutoStopAt = Stopped, nil
		case j.deploys():
			e.State, e.OnStop, e.AutoStopAt = Available, o.OnStop, nil
			if webAddress.MatchString(url) && len(url) <= 255 {
				e.ExternalURL = url
			}
			if in, err := config.ParseDuration(autoStop); err == nil && o.AutoStopIn != "" {
				at := e.UpdatedAt.Add(in)
				e.AutoStopAt = &at
			}
		default:
			return nil
		}
		return saveEnvironment(ctx, tx, e)
	})
	if err != nil {
		return fmt.Errorf("environment of job %d: %w", w.JobID, err)
	}
	return nil
}

// stopExpired stops the environments whose time is over.
func (s *Service) stopExpired(ctx context.Context) error {
	ids, err := db.All(ctx, s.DB, db.Value[int64], `
		SELECT id FROM environments WHERE auto_stop_at IS NOT NULL AND auto_stop_at <= ? ORDER BY auto_stop_at LIMIT 100`, s.Now())
	if err != nil {
		return fmt.Errorf("find expired environments: %w", err)
	}
	for _, id := range ids {
		err := s.DB.Tx(ctx, func(tx *db.Tx) error {
			if err := tx.Lock(ctx, "environments", id); err != nil {
				return err
			}
			e, err := scanEnvironment(tx.QueryRowContext(ctx, `SELECT `+environmentColumns+` FROM environments e WHERE e.id = ?`, id))
			if err != nil || e.AutoStopAt == nil {
				return ignoreNoRows(err)
			}
			if err := s.stopEnvironment(ctx, tx, e, nil, false); err != nil {
				return err
			}
			e.AutoStopAt, e.UpdatedAt = nil, s.Now()
			return saveEnvironment(ctx, tx, e)
		})
		if err != nil {
			return fmt.Errorf("stop environment %d: %w", id, err)
		}
	}
	return nil
}

func ignoreNoRows(err error) error {
	if errors.Is(err, db.ErrNoRows) {
		return nil
	}
	return err
}

// findStopJob finds the job that stops an environment, in the pipeline of its
// last deployment; nil without one.
func findStopJob(ctx context.Context, q db.Q, e *Environment) (*Job, error) {
	last, err := lastDeployment(ctx, q, e.ID)
	if err != nil || last == nil || last.JobID == nil {
		return nil, err
	}
	deployed, err := findAnyJob(ctx, q, *last.JobID)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	// The job says it itself: what it did for the environment otherwise may
	// still be in the queue.
	o := deployed.Options.Environment
	if o == nil || o.OnStop == "" {
		return nil, nil
	}
	j, err := latestNamed(ctx, q, deployed.PipelineID, o.OnStop)
	if err != nil || j == nil || j.Status == flow.Pending || j.Status == flow.Running || j.Status == flow.Success {
		return nil, err
	}
	return j, nil
}
