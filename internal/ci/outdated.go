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

// outdatedWork decides about a job that would bring something older to an
// environment than what is there.
type outdatedWork struct {
	JobID int64 `json:"job_id"`
}

// Kind implements queue.Work.
func (outdatedWork) Kind() string { return "ci_outdated" }

// workOutdated ends a job that is outdated, where the project wants only newer
// deployments to follow older ones. Elsewhere the job waits for a runner.
func (s *Service) workOutdated(ctx context.Context, w outdatedWork) error {
	j, err := findAnyJob(ctx, s.DB, w.JobID)
	if err != nil {
		return ignoreNotFound(err)
	}
	p, err := s.Projects.Require(ctx, actor.System(), project.RefTo(j.ProjectID), project.NoAccess)
	if err != nil {
		return ignoreNotFound(err)
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
		return s.offer(ctx, tx, j.ID)
	})
}

// overtake has those jobs looked at that still wait to bring something older
// to the environment of a job that has done so.
func (s *Service) overtake(ctx context.Context, tx *db.Tx, j *Job) error {
	older, err := deployment.OlderPendingJobs(ctx, tx, j.ID)
	if err != nil {
		return fmt.Errorf("find outdated deployments: %w", err)
	}
	for _, id := range older {
		if err := s.Queue.Add(ctx, tx, outdatedWork{JobID: id}); err != nil {
			return err
		}
	}
	return nil
}

// mayRollBack refuses to run a job again that would bring something older to
// its environment, where the project does not let that be.
func (s *Service) mayRollBack(ctx context.Context, q db.Q, p *project.Project, j *Job) error {
	if !j.deploys() || !p.Settings.CIForwardDeploymentEnabled || p.Settings.CIForwardDeploymentRollbackAllowed {
		return nil
	}
	outdated, err := deployment.IsOutdated(ctx, q, j.ID)
	if err != nil {
		return err
	}
	if outdated {
		return errs.Forbidden("Job is not retryable")
	}
	return nil
}
