package ci

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/ci/deployment"
	"svc/internal/ci/flow"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// outdatedWork handles a job whose environment has a newer deployment.
type outdatedWork struct {
	JobID int64 `json:"job_id"`
	// Overtaken means that the job waits already: for a runner, or for the check of
	// its environment. It fails or waits on, but is not queued.
	Overtaken bool `json:"overtaken,omitempty"`
}

// Kind implements queue.Work.
func (outdatedWork) Kind() string { return "ci_outdated" }

// workOutdated fails an outdated deployment job if the project prevents outdated
// deployments. Otherwise the job is queued.
func (s *Service) workOutdated(ctx context.Context, w outdatedWork) error {
	j, err := findAnyJob(ctx, s.DB, w.JobID)
	if err != nil {
		return errs.IgnoreNotFound(err)
	}
	p, err := s.Projects.Require(ctx, actor.System(), project.RefTo(j.ProjectID), project.NoAccess)
	if err != nil {
		return errs.IgnoreNotFound(err)
	}
	return s.sweepJob(ctx, j.ID, func(ctx context.Context, tx *db.Tx, j *Job) error {
		if j.Status != flow.Pending || j.ClaimedAt != nil {
			return nil
		}
		outdated, err := deployment.IsOutdated(ctx, tx, j.ID)
		if err != nil {
			return err
		}
		if outdated && p.Settings.CIForwardDeploymentEnabled {
			return s.finishJob(ctx, tx, j, End{Status: flow.Failed, Reason: UnmetPrerequisites})
		}
		if w.Overtaken {
			return nil
		}
		return s.addToQueue(ctx, tx, j.ID, j.Bridge)
	})
}

// overtake adds background jobs for the pending jobs that have become outdated by
// the deployment of a job.
func (s *Service) overtake(ctx context.Context, tx *db.Tx, j *Job) error {
	older, err := deployment.OlderPendingJobs(ctx, tx, j.ID)
	if err != nil {
		return fmt.Errorf("find outdated deployments: %w", err)
	}
	for _, id := range older {
		if err := s.Queue.Add(ctx, tx, outdatedWork{JobID: id, Overtaken: true}); err != nil {
			return err
		}
	}
	return nil
}

// rollsBack reports whether a retry of a job would deploy an older version and the
// project does not allow rollbacks.
func (s *Service) rollsBack(ctx context.Context, q db.Q, p *project.Project, j *Job) (bool, error) {
	if !j.deploys() || !p.Settings.CIForwardDeploymentEnabled || p.Settings.CIForwardDeploymentRollbackAllowed {
		return false, nil
	}
	return deployment.IsOutdated(ctx, q, j.ID)
}
