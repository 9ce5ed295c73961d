package ci

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/ci/config"
	"svc/internal/ci/deployment"
	"svc/internal/ci/flow"
	"svc/internal/ci/jobqueue"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/queue"
)

// gateWork decides whether a pending job may deploy to a protected environment.
type gateWork struct {
	JobID int64 `json:"job_id"`
}

// Kind implements queue.Work.
func (gateWork) Kind() string { return "ci_deployment_gate" }

// gateManual adds a background job for a manual job that may need approvals before
// it can be started.
func (s *Service) gateManual(ctx context.Context, tx *db.Tx, jobID int64) error {
	_, deploys, err := kindOf(ctx, tx, jobID)
	if err != nil || !deploys {
		return err
	}
	protected, err := deployment.IsProtected(ctx, tx, jobID)
	if err != nil || !protected {
		return err
	}
	return s.Queue.Add(ctx, tx, gateWork{JobID: jobID}, queue.In(lane))
}

// environmentName returns the name of the job's environment; empty without one.
func (j *Job) environmentName() string {
	if j.Options.Environment == nil {
		return ""
	}
	return j.Options.Environment.Name
}

// workGate fails a pending job whose user may not deploy to its environment, and
// makes a job wait for the approvals that its deployment needs. Any other pending
// job is queued.
func (s *Service) workGate(ctx context.Context, w gateWork) error {
	j, err := findAnyJob(ctx, s.DB, w.JobID)
	if err != nil {
		return errs.IgnoreNotFound(err)
	}
	p, err := s.Projects.Require(ctx, actor.System(), project.RefTo(j.ProjectID), project.NoAccess)
	if err != nil {
		return errs.IgnoreNotFound(err)
	}
	var by actor.Actor // a deleted user may not deploy
	if j.UserID != nil {
		if by, err = s.Users.As(ctx, *j.UserID); err != nil && !errs.IsRefusal(err) {
			return err
		}
	}
	gate, err := s.Deployments.GateOf(ctx, p, j.ID, j.environmentName(), by)
	if err != nil {
		return fmt.Errorf("deployment gate of job %d: %w", j.ID, err)
	}
	return s.sweepJob(ctx, j.ID, func(ctx context.Context, tx *db.Tx, j *Job) error {
		if j.Status == flow.Manual && gate.Waiting && j.deploys() {
			return deployment.SetStatusOfJob(ctx, tx, j.ID, deployment.Blocked, s.Now())
		}
		if j.Status != flow.Pending || j.ClaimedAt != nil {
			return nil
		}
		switch {
		case !gate.Allowed:
			return s.finishJob(ctx, tx, j, End{Status: flow.Failed, Reason: ProtectedEnvironmentFailure})
		case gate.Waiting && j.deploys():
			return s.blockJob(ctx, tx, j)
		}
		return s.queueAllowed(ctx, tx, j.ID, j.Bridge)
	})
}

// blockJob makes a pending job manual until its deployment is approved.
func (s *Service) blockJob(ctx context.Context, tx *db.Tx, j *Job) error {
	if _, err := jobqueue.Remove(ctx, tx, j.ID); err != nil { // before the jobs row, like endJob
		return err
	}
	moved, err := moveJob(ctx, tx, j.ID, flow.Pending, flow.Manual, s.Now())
	if err != nil || !moved {
		return err
	}
	if err := deployment.SetStatusOfJob(ctx, tx, j.ID, deployment.Blocked, s.Now()); err != nil {
		return err
	}
	if err := s.release(ctx, tx, j); err != nil {
		return err
	}
	_, err = s.advance(ctx, tx, j.PipelineID)
	return err
}

// requireDeploy returns Forbidden unless an actor may start a job that deploys: they
// must be allowed to deploy to its environment, and the deployment must be approved.
// A retry is a new deployment, which needs its own approvals.
func (s *Service) requireDeploy(ctx context.Context, by actor.Actor, p *project.Project, id int64, again bool) error {
	j, err := s.controlledJob(ctx, by, p, id)
	if err != nil {
		return err
	}
	startable := j.Status == flow.Manual || j.Status == flow.Scheduled || again && j.Retryable()
	if j.EnvironmentID == nil || !startable {
		return nil // the caller refuses the rest
	}
	gate, err := s.Deployments.GateOf(ctx, p, j.ID, j.environmentName(), by)
	switch {
	case err != nil:
		return err
	case !gate.Allowed:
		return errs.Forbidden("You are not allowed to deploy to this protected environment")
	case gate.Waiting && !again && j.deploys():
		// The protection may be newer than the job: users must be able to approve it.
		if err := s.DB.Tx(ctx, func(tx *db.Tx) error { return s.gateManual(ctx, tx, j.ID) }); err != nil {
			return err
		}
		return errs.Forbidden("The deployment is waiting for approvals")
	}
	return nil
}

// DecideDeployment approves or rejects a blocked deployment; see
// deployment.Service.Decide. A rejection fails the job. With the last approval the
// job can be started.
func (s *Service) DecideDeployment(ctx context.Context, by actor.Actor, in project.Ref, id int64, c deployment.Decision) (*deployment.Approval, error) {
	d, a, pending, err := s.Deployments.Decide(ctx, by, in, id, c)
	if err != nil || d.JobID == nil {
		return a, err
	}
	err = s.sweepJob(ctx, *d.JobID, func(ctx context.Context, tx *db.Tx, j *Job) error {
		if j.Status != flow.Manual {
			return nil
		}
		switch {
		case !a.Approved:
			return s.finishJob(ctx, tx, j, End{Status: flow.Failed, Reason: DeploymentRejected})
		case pending == 0:
			return deployment.SetStatusOfJob(ctx, tx, j.ID, deployment.Created, s.Now())
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("decide on deployment %d: %w", id, err)
	}
	return a, nil
}

// freezeVariables adds CI_DEPLOY_FREEZE during a freeze period of the project.
func (s *Service) freezeVariables(ctx context.Context, p *project.Project) ([]config.Variable, error) {
	frozen, err := s.Deployments.Frozen(ctx, p.ID)
	if err != nil || !frozen {
		return nil, err
	}
	var v variables
	v.add("CI_DEPLOY_FREEZE", "true")
	return v, nil
}
