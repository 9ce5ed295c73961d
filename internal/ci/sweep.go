package ci

import (
	"context"
	"errors"
	"fmt"
	"time"

	"svc/internal/ci/flow"
	"svc/internal/ci/jobqueue"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/queue"
)

const (
	// claimTime is how long a runner may take to start a job that was assigned
	// to it.
	claimTime = 2 * time.Minute
	// stuckTime is how long a pending job waits for a runner.
	stuckTime = 24 * time.Hour
	// silenceTime is how long a job may run without contact with its runner.
	silenceTime = time.Hour
	// cancelTime is how long the runner of a canceled job may take to finish it. The
	// job keeps its token and its resource group for so long.
	cancelTime = time.Hour
	// sweepSize is the maximum number of jobs per query.
	sweepSize = 100
)

// Sweep does the work that is due: it starts delayed jobs, ends jobs that run
// too long or have no runner, and starts the next jobs of resource groups. The
// queue calls it every few seconds. Each job has its own transaction, so that
// an error does not affect the other jobs.
func (s *Service) Sweep(ctx context.Context) error {
	now := s.Now()
	return errors.Join(
		s.sweepJobs(ctx, scheduledBefore, now, s.startDelayed),
		s.sweepJobs(ctx, claimedBefore, now.Add(-claimTime), s.giveBack),
		s.sweepJobs(ctx, runningSilent, now.Add(-silenceTime), s.endSilent),
		s.sweepJobs(ctx, cancelingSince, now.Add(-cancelTime), s.endCanceling),
		s.sweepOverdue(ctx, now),
		s.sweepStuck(ctx, now),
		s.sweepTurns(ctx),
		s.sweepMirrors(ctx),
		s.stopExpired(ctx),
	)
}

// sweepJobs calls do for each job that matches the condition, in a transaction
// with the lock of its pipeline. do must check the condition again, because the
// job may have changed.
func (s *Service) sweepJobs(ctx context.Context, condition sweepCondition, at time.Time, do func(ctx context.Context, tx *db.Tx, j *Job) error) error {
	ids, err := findSwept(ctx, s.DB, condition, at, sweepSize)
	if err != nil {
		return fmt.Errorf("sweep jobs: %w", err)
	}
	var faults []error
	for _, id := range ids {
		faults = append(faults, s.sweepJob(ctx, id, do))
	}
	return errors.Join(faults...)
}

func (s *Service) sweepJob(ctx context.Context, id int64, do func(ctx context.Context, tx *db.Tx, j *Job) error) error {
	seen, err := findAnyJob(ctx, s.DB, id)
	if err != nil {
		return errs.IgnoreNotFound(err)
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "pipelines", seen.PipelineID); err != nil {
			return err
		}
		j, err := findAnyJob(ctx, tx, id)
		if err != nil {
			return errs.IgnoreNotFound(err)
		}
		return do(ctx, tx, j)
	})
	if err != nil && !errs.Is(err, errs.KindConflict) {
		return fmt.Errorf("sweep job %d: %w", id, err)
	}
	return nil
}

// startDelayed starts a delayed job that is due.
func (s *Service) startDelayed(ctx context.Context, tx *db.Tx, j *Job) error {
	if j.Status != flow.Scheduled || j.ScheduledAt == nil || j.ScheduledAt.After(s.Now()) {
		return nil
	}
	if err := s.start(ctx, tx, j); err != nil {
		return err
	}
	_, err := s.advance(ctx, tx, j.PipelineID)
	return err
}

// giveBack returns a job to the queue if its runner has not started it.
func (s *Service) giveBack(ctx context.Context, tx *db.Tx, j *Job) error {
	if j.Status != flow.Pending || j.ClaimedAt == nil || j.ClaimedAt.After(s.Now().Add(-claimTime)) {
		return nil
	}
	if err := dropClaim(ctx, tx, j.ID, s.Now()); err != nil {
		return err
	}
	return s.queueJob(ctx, tx, j.ID)
}

// endSilent fails a job after too long without contact with its runner.
func (s *Service) endSilent(ctx context.Context, tx *db.Tx, j *Job) error {
	if j.Bridge || j.HeardAt == nil || j.HeardAt.After(s.Now().Add(-silenceTime)) || j.Status != flow.Running {
		return nil
	}
	return s.finishJob(ctx, tx, j, End{Status: flow.Failed, Reason: StuckFailure})
}

// endCanceling ends a canceled job whose runner did not finish it in time, whether
// or not the runner is in contact.
func (s *Service) endCanceling(ctx context.Context, tx *db.Tx, j *Job) error {
	if !j.Canceling || j.FinishedAt == nil || j.FinishedAt.After(s.Now().Add(-cancelTime)) {
		return nil
	}
	return s.settleCanceled(ctx, tx, j, End{})
}

// overdueGrace is the time after the timeout of a job before the server ends
// it. Runners enforce the timeout themselves.
const overdueGrace = 5 * time.Minute

// sweepOverdue fails jobs that have exceeded their timeout.
func (s *Service) sweepOverdue(ctx context.Context, now time.Time) error {
	ids, err := findSwept(ctx, s.DB, overdue, now.Add(-overdueGrace), sweepSize)
	if err != nil {
		return fmt.Errorf("sweep overdue jobs: %w", err)
	}
	var faults []error
	for _, id := range ids {
		faults = append(faults, s.sweepJob(ctx, id, func(ctx context.Context, tx *db.Tx, j *Job) error {
			if j.Status != flow.Running || j.StartedAt == nil || j.StartedAt.Add(j.Timeout+overdueGrace).After(s.Now()) {
				return nil
			}
			return s.finishJob(ctx, tx, j, End{Status: flow.Failed, Reason: ExecutionTimeout})
		}))
	}
	return errors.Join(faults...)
}

// sweepStuck fails jobs that no runner took, and removes jobs from the queue that do not
// belong there.
func (s *Service) sweepStuck(ctx context.Context, now time.Time) error {
	ids, err := jobqueue.QueuedBefore(ctx, s.DB, now.Add(-stuckTime), sweepSize)
	if err != nil {
		return fmt.Errorf("sweep stuck jobs: %w", err)
	}
	var faults []error
	for _, id := range ids {
		faults = append(faults, s.sweepJob(ctx, id, func(ctx context.Context, tx *db.Tx, j *Job) error {
			if j.Status != flow.Pending {
				_, err := jobqueue.Remove(ctx, tx, j.ID)
				return err
			}
			if j.ClaimedAt != nil {
				return nil
			}
			return s.finishJob(ctx, tx, j, End{Status: flow.Failed, Reason: StuckFailure})
		}))
	}
	return errors.Join(faults...)
}

// sweepTurns starts the next jobs of resource groups without a trigger: the job
// that was next may have been deleted. Each call goes on where the last one ended,
// because groups may wait for long.
func (s *Service) sweepTurns(ctx context.Context) error {
	ids, err := findWaitingGroups(ctx, s.DB, s.sweptGroup.Load(), sweepSize)
	if err != nil {
		return fmt.Errorf("sweep resource groups: %w", err)
	}
	last := int64(0)
	if len(ids) == sweepSize {
		last = ids[len(ids)-1]
	}
	s.sweptGroup.Store(last)
	var faults []error
	for _, id := range ids {
		faults = append(faults, s.giveTurn(ctx, turnWork{GroupID: id}))
	}
	return errors.Join(faults...)
}

// playWork is the background job that starts a job as a user, by default the
// user of the job.
type playWork struct {
	JobID  int64  `json:"job_id"`
	UserID *int64 `json:"user_id,omitempty"`
}

// Kind implements queue.Work.
func (playWork) Kind() string { return "ci_play" }

// workPlay starts a manual or delayed job, or retries one that has ended.
func (s *Service) workPlay(ctx context.Context, w playWork) error {
	return s.sweepJob(ctx, w.JobID, func(ctx context.Context, tx *db.Tx, j *Job) error {
		userID := w.UserID
		if userID == nil {
			userID = j.UserID
		}
		switch {
		case j.Status == flow.Manual, j.Status == flow.Scheduled:
			if err := s.playJob(ctx, tx, j, userID, nil); err != nil {
				return err
			}
		case j.Retryable():
			if _, err := s.tryAgain(ctx, tx, j, userID, 0); err != nil {
				return err
			}
		default:
			return nil
		}
		_, err := s.advance(ctx, tx, j.PipelineID)
		return err
	})
}

// publishChange publishes a change of the status of a pipeline: to
// notifications, merge requests and the trigger job.
func (s *Service) publishChange(ctx context.Context, tx *db.Tx, p *Pipeline) error {
	if err := s.Events.PipelineChanged.Publish(ctx, tx, p); err != nil {
		return err
	}
	if err := s.notifyEnd(ctx, tx, p); err != nil {
		return err
	}
	if p.Status.Done() && !p.Child {
		if err := s.Merges.PipelineEnded(ctx, tx, p.SHA); err != nil {
			return err
		}
		if err := s.Events.PipelineEnded.Publish(ctx, tx, p); err != nil {
			return err
		}
	}
	if p.ParentJobID == nil {
		return nil
	}
	return s.Queue.Add(ctx, tx, mirrorWork{JobID: *p.ParentJobID}, queue.Unique())
}
