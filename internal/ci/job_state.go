package ci

import (
	"context"
	"fmt"
	"slices"
	"time"

	"svc/internal/ci/deployment"
	"svc/internal/ci/flow"
	"svc/internal/ci/jobqueue"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/queue"
)

// End is the result of a job.
type End struct {
	Status   flow.Status // success, failed or canceled
	Reason   FailureReason
	ExitCode *int64
	Coverage *float64

	token []byte // digest: the job ends only if it has this token
}

// beginJob records that a job has started. token is the digest of the job
// token; nil for a bridge. Conflict if the job is no longer pending or has
// another token.
func (s *Service) beginJob(ctx context.Context, tx *db.Tx, j *Job, token []byte) error {
	if err := tx.Lock(ctx, "pipelines", j.PipelineID); err != nil {
		return err
	}
	at := s.Now()
	if err := startJob(ctx, tx, j.ID, token, at); err != nil {
		return err
	}
	j.Status, j.StartedAt, j.HeardAt, j.ClaimedAt, j.UpdatedAt = flow.Running, &at, &at, nil, at
	if err := s.followDeployment(ctx, tx, j); err != nil {
		return err
	}
	if err := s.Events.JobChanged.Publish(ctx, tx, j.change()); err != nil {
		return err
	}
	// A start does not affect other jobs, and a running pipeline stays running.
	running, err := isRunning(ctx, tx, j.PipelineID)
	if err != nil {
		return err
	}
	if running {
		return s.changedAt(ctx, tx, j.ProjectID, j.PipelineID)
	}
	_, err = s.advance(ctx, tx, j.PipelineID)
	return err
}

// finishJob ends a job that runs, or that is pending and cannot get a runner.
// It also handles the effects: the automatic retry, the next job of the
// resource group, the deployment and the rest of the pipeline. Conflict if the
// job has already ended.
func (s *Service) finishJob(ctx context.Context, tx *db.Tx, j *Job, end End) error {
	if err := tx.Lock(ctx, "pipelines", j.PipelineID); err != nil {
		return err
	}
	if j.Status == flow.Canceled && j.Canceling {
		return s.settleCanceled(ctx, tx, j, end)
	}
	if err := s.endJob(ctx, tx, j, end); err != nil {
		return err
	}
	if j.Status == flow.Failed && j.retries() {
		if err := s.retryFailed(ctx, tx, j); err != nil {
			return err
		}
	}
	p, err := s.advance(ctx, tx, j.PipelineID)
	if err != nil {
		return err
	}
	if j.Status == flow.Failed && !j.AllowFailure && !j.Retried && p.CancelOnFailure && !p.Status.Done() {
		return s.Queue.Add(ctx, tx, cancelWork{PipelineID: p.ID})
	}
	return nil
}

// endJob records the end of a job and releases its resource group.
func (s *Service) endJob(ctx context.Context, tx *db.Tx, j *Job, end End) error {
	from, at := j.Status, s.Now()
	if !flow.Can(from, end.Status) {
		return errs.Conflict("Job cannot go from %s to %s", from, end.Status)
	}
	j.Status, j.FailureReason, j.ExitCode = end.Status, "", end.ExitCode
	j.FinishedAt, j.UpdatedAt, j.ClaimedAt = &at, at, nil
	if end.Coverage != nil {
		j.Coverage = end.Coverage
	}
	if end.Status == flow.Failed {
		if j.FailureReason = end.Reason; j.FailureReason == "" {
			j.FailureReason = UnknownFailure
		}
		if j.FailureReason == ScriptFailure && end.ExitCode != nil && slices.Contains(j.Options.AllowFailureExitCodes, int(*end.ExitCode)) {
			j.AllowFailure = true
		}
	}
	if from == flow.Pending { // before the jobs row: claiming a job takes locks in the same order
		if _, err := jobqueue.Remove(ctx, tx, j.ID); err != nil {
			return err
		}
	}
	if err := saveEnd(ctx, tx, j, from, end.token); err != nil {
		return err
	}
	if !j.Canceling { // else it is released when the runner has finished
		if err := s.release(ctx, tx, j); err != nil {
			return err
		}
	}
	if err := s.followDeployment(ctx, tx, j); err != nil {
		return err
	}
	if err := s.Events.JobChanged.Publish(ctx, tx, j.change()); err != nil {
		return err
	}
	return s.Events.JobEnded.Publish(ctx, tx, j)
}

// PipelineIn returns a pipeline by its ID in a transaction of another feature.
// NotFound.
func PipelineIn(ctx context.Context, q db.Q, id int64) (*Pipeline, error) {
	return readPipeline(ctx, q, id)
}

// change is the event of a change of the status.
func (j *Job) change() JobChange {
	return JobChange{ProjectID: j.ProjectID, PipelineID: j.PipelineID, JobID: j.ID}
}

// settleCanceled records that the runner of a canceled job has finished its
// after_script. The job stays canceled, whatever the runner reports.
func (s *Service) settleCanceled(ctx context.Context, tx *db.Tx, j *Job, end End) error {
	j.Canceling, j.ExitCode = false, end.ExitCode
	if end.Coverage != nil {
		j.Coverage = end.Coverage
	}
	if err := saveSettled(ctx, tx, j, s.Now()); err != nil {
		return err
	}
	if err := s.changedAt(ctx, tx, j.ProjectID, j.PipelineID); err != nil {
		return err
	}
	return s.release(ctx, tx, j)
}

// retries reports whether a failed job must be retried automatically.
func (j *Job) retries() bool {
	r := j.Options.Retry
	if r == nil || j.Attempt >= r.Max {
		return false
	}
	if len(r.When) == 0 && len(r.ExitCodes) == 0 {
		return true
	}
	if j.ExitCode != nil && slices.Contains(r.ExitCodes, int(*j.ExitCode)) {
		return true
	}
	return slices.Contains(r.When, "always") || slices.Contains(r.When, string(j.FailureReason))
}

// retryFailed retries a failed job automatically, unless its deployment is outdated and
// the project prevents that: the deployment of the retry would count as the newest.
func (s *Service) retryFailed(ctx context.Context, tx *db.Tx, j *Job) error {
	if j.deploys() {
		outdated, err := deployment.IsOutdated(ctx, tx, j.ID)
		if err != nil {
			return err
		}
		if outdated {
			p, err := project.In(ctx, tx, j.ProjectID)
			if err != nil || p.Settings.CIForwardDeploymentEnabled {
				return err
			}
		}
	}
	_, err := s.tryAgain(ctx, tx, j, j.UserID, j.Attempt+1)
	return err
}

// tryAgain retries a finished job: it creates the new job, starts it, and marks
// the old one as retried.
func (s *Service) tryAgain(ctx context.Context, tx *db.Tx, old *Job, userID *int64, attempt int) (*Job, error) {
	j, err := s.another(ctx, tx, old, userID, attempt)
	if err != nil {
		return nil, err
	}
	return j, s.start(ctx, tx, j)
}

// another creates the retry of a finished job without starting it, and marks
// the old job as retried.
func (s *Service) another(ctx context.Context, tx *db.Tx, old *Job, userID *int64, attempt int) (*Job, error) {
	if err := markRetried(ctx, tx, old.ID); err != nil {
		return nil, err
	}
	old.Retried = true
	at := s.Now()
	j := &Job{
		JobState: JobState{ProjectID: old.ProjectID, PipelineID: old.PipelineID, Status: flow.Created, EnvironmentID: old.EnvironmentID},
		Bridge:   old.Bridge, Name: old.Name, Stage: old.Stage,
		StageIndex: old.StageIndex, When: old.When, AllowFailure: old.Options.AllowFailure, Needs: old.Needs, Ref: old.Ref, Tag: old.Tag,
		Protected: old.Protected, Interruptible: old.Interruptible, UserID: userID, TagSetID: old.TagSetID, Attempt: attempt, RetryOf: &old.ID,
		Timeout: old.Timeout, ResourceGroupID: old.ResourceGroupID, CreatedAt: at, UpdatedAt: at,
		Options: old.Options,
	}
	if err := insertJob(ctx, tx, j); err != nil {
		return nil, err
	}
	if err := s.copyJobVariables(ctx, tx, old, j); err != nil {
		return nil, err
	}
	return j, s.addDeployment(ctx, tx, j)
}

// start makes a job pending, or waiting if it has a resource group.
func (s *Service) start(ctx context.Context, tx *db.Tx, j *Job) error {
	to := flow.Pending
	if j.ResourceGroupID != nil {
		to = flow.Waiting
	}
	moved, err := moveJob(ctx, tx, j.ID, j.Status, to, s.Now())
	if err != nil {
		return err
	}
	if !moved {
		return errs.Conflict("Job is no longer %s", j.Status)
	}
	if j.Status, err = s.entered(ctx, tx, j.ID, to); err != nil {
		return err
	}
	return s.Events.JobChanged.Publish(ctx, tx, j.change())
}

// entered runs the effects of the new status of a job and returns the resulting
// status.
func (s *Service) entered(ctx context.Context, tx *db.Tx, jobID int64, to flow.Status) (flow.Status, error) {
	switch to {
	case flow.Pending:
		return to, s.queueJob(ctx, tx, jobID)
	case flow.Waiting:
		return s.awaitTurn(ctx, tx, jobID)
	case flow.Manual:
		return to, s.gateManual(ctx, tx, jobID)
	case flow.Scheduled:
		return to, s.setAlarm(ctx, tx, jobID)
	case flow.Skipped:
		if err := s.passTurn(ctx, tx, jobID); err != nil {
			return to, err
		}
		return to, deployment.SetStatusOfJob(ctx, tx, jobID, deployment.Skipped, s.Now())
	}
	return to, nil
}

// queueJob queues a pending job, after the checks of its environment.
func (s *Service) queueJob(ctx context.Context, tx *db.Tx, jobID int64) error {
	bridge, deploys, err := kindOf(ctx, tx, jobID)
	if err != nil {
		return err
	}
	if !deploys {
		return s.addToQueue(ctx, tx, jobID, bridge)
	}
	protected, err := deployment.IsProtected(ctx, tx, jobID)
	if err != nil {
		return err
	}
	if protected {
		return s.Queue.Add(ctx, tx, gateWork{JobID: jobID}, queue.In(lane))
	}
	return s.queueAllowed(ctx, tx, jobID, bridge)
}

// queueAllowed queues a job that may use its environment.
func (s *Service) queueAllowed(ctx context.Context, tx *db.Tx, jobID int64, bridge bool) error {
	outdated, err := deployment.IsOutdated(ctx, tx, jobID)
	if err != nil {
		return err
	}
	if outdated { // workOutdated checks whether the project allows it
		return s.Queue.Add(ctx, tx, outdatedWork{JobID: jobID}, queue.In(lane))
	}
	return s.addToQueue(ctx, tx, jobID, bridge)
}

// addToQueue adds a job to the job queue. A bridge needs no runner: a background job
// runs it.
func (s *Service) addToQueue(ctx context.Context, tx *db.Tx, jobID int64, bridge bool) error {
	if bridge {
		return s.Queue.Add(ctx, tx, bridgeWork{JobID: jobID}, queue.In(lane))
	}
	return s.JobQueue.Add(ctx, tx, jobID)
}

// setAlarm sets the start time of a delayed job.
func (s *Service) setAlarm(ctx context.Context, tx *db.Tx, jobID int64) error {
	j, err := findAnyJob(ctx, tx, jobID)
	if err != nil {
		return err
	}
	at := s.Now().Add(time.Duration(j.Options.StartIn) * time.Second)
	if err := setScheduled(ctx, tx, jobID, &at); err != nil {
		return fmt.Errorf("delay job %d: %w", jobID, err)
	}
	return nil
}
