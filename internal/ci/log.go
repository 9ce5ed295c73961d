package ci

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/ci/joblog"
	"svc/internal/ci/report"
	"svc/internal/errs"
	"svc/internal/project"
)

// Log is a job log as of the time when it was opened. The caller closes it.
type Log struct {
	Job *Job
	*joblog.Reader
}

// ETag identifies the content by its size, because a log is only appended to.
func (l *Log) ETag() string { return fmt.Sprintf(`"log-%d-%d"`, l.Job.ID, l.Size) }

// Log opens the log of a job, for users who can see the jobs of the project. A
// debug log is Forbidden below Developer. NotFound if there is no such job or
// it has no log. For a while the runner sends the log more often.
func (s *Service) Log(ctx context.Context, by actor.Actor, ref project.Ref, jobID int64) (*Log, error) {
	_, j, err := s.loggedJob(ctx, by, ref, jobID)
	if err != nil {
		return nil, err
	}
	if !j.settled() {
		if err := s.Artifacts.Logs.Watch(ctx, j.ID); err != nil {
			return nil, err
		}
	}
	l, err := s.openLog(ctx, j)
	if err != nil {
		return nil, fmt.Errorf("log of job %d: %w", j.ID, err)
	}
	if l == nil {
		return nil, errs.NotFound("")
	}
	return l, nil
}

// loggedJob returns a job to users who may read its log. A debug log has the
// values of variables, so it is for Developers.
func (s *Service) loggedJob(ctx context.Context, by actor.Actor, ref project.Ref, jobID int64) (*project.Project, *Job, error) {
	p, j, err := s.seenJob(ctx, by, ref, jobID)
	if err != nil || by.Admin || by.Auditor || p.Access.Level() >= project.Developer {
		return p, j, err
	}
	debug, err := hasDebugLog(ctx, s.DB, j.ID)
	if err != nil {
		return nil, nil, fmt.Errorf("log of job %d: %w", j.ID, err)
	}
	if debug {
		return nil, nil, errs.Forbidden("The log of a job with debug logging is visible to Developers only, because it contains the values of variables")
	}
	return p, j, nil
}

// noteDebugLog marks the log of a job as a debug log.
func (s *Service) noteDebugLog(ctx context.Context, jobID int64) error {
	return setDebugLog(ctx, s.DB, jobID)
}

// seenJob returns a job that is not a bridge, to users who can see the jobs of
// its project.
func (s *Service) seenJob(ctx context.Context, by actor.Actor, ref project.Ref, jobID int64) (*project.Project, *Job, error) {
	p, err := s.seePipelines(ctx, by, ref)
	if err != nil {
		return nil, nil, err
	}
	j, err := s.visibleJob(ctx, by, p, jobID)
	if err != nil {
		return nil, nil, err
	}
	if j.Bridge {
		return nil, nil, errs.NotFound("Job")
	}
	return p, j, nil
}

// openLog opens a log wherever it is, nil if there is none. The log of a job
// that was erased is being removed.
func (s *Service) openLog(ctx context.Context, j *Job) (*Log, error) {
	if j.ErasedAt != nil {
		return nil, nil
	}
	l, err := s.Artifacts.OpenLog(ctx, j.ID, j.settled())
	if l == nil || err != nil {
		return nil, err
	}
	return &Log{j, l}, nil
}

// settled reports whether a job has ended and its runner has stopped.
func (j *Job) settled() bool { return j.Status.Done() && !j.Canceling }

// coverage returns the coverage in the log of a job that has a pattern for it.
// Nil if there is none.
func (s *Service) coverage(ctx context.Context, j *Job) (*float64, error) {
	if j.Options.Coverage == "" {
		return nil, nil
	}
	l, err := s.Artifacts.Logs.OpenLive(ctx, j.ID)
	if l == nil || err != nil {
		return nil, err
	}
	defer l.Close()
	return report.Coverage(l, l.Size, j.Options.Coverage)
}
