package ci

import (
	"context"
	"fmt"
	"time"

	"svc/internal/ci/config"
	"svc/internal/ci/deployment"
	"svc/internal/db"
	"svc/internal/expand"
)

// environmentWork is the background job that updates an environment after a job
// that deployed to it.
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
	// The job may have reported the URL in a dotenv artifact.
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
		url, autoStop = "", "" // the variables cannot be expanded
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "environments", *j.EnvironmentID); err != nil {
			return err
		}
		e, err := deployment.FindEnvironment(ctx, tx, j.ProjectID, *j.EnvironmentID)
		if err != nil {
			return err
		}
		e.UpdatedAt = s.Now()
		switch {
		case o.Action == "stop":
			e.State, e.AutoStopAt = deployment.Stopped, nil
		case j.deploys():
			e.State, e.OnStop = deployment.Available, o.OnStop
			if deployment.ValidURL(url) {
				e.ExternalURL = url
			}
			e.AutoStopAt = autoStopAt(autoStop, e.UpdatedAt)
		case o.AutoStopIn != "": // prepare, verify or access
			e.AutoStopAt = autoStopAt(autoStop, e.UpdatedAt)
		default:
			return nil
		}
		return deployment.SaveEnvironment(ctx, tx, e)
	})
	if err != nil {
		return fmt.Errorf("environment of job %d: %w", w.JobID, err)
	}
	return nil
}

// autoStopAt returns when an environment is stopped, from the expanded auto_stop_in of a
// job; nil for never, and if it is not a duration.
func autoStopAt(in string, from time.Time) *time.Time {
	after, err := config.ParseDuration(in)
	if err != nil {
		return nil
	}
	at := from.Add(after)
	return &at
}
