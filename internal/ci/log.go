package ci

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"svc/internal/actor"
	"svc/internal/ci/joblog"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// Log is a job log as of the time when it was opened. The
// caller closes it.
type Log struct {
	Job *Job
	*joblog.Reader
}

// ETag names the content: a log is only added to.
func (l *Log) ETag() string { return fmt.Sprintf(`"log-%d-%d"`, l.Job.ID, l.Size) }

// Log opens the log of a job, for those who see the jobs of the project.
// Forbidden to those below Developer when the log shows every step, NotFound
// when there is no such job or it has no log. A user watches it from then on for
// a while, so that its runner sends more often.
func (s *Service) Log(ctx context.Context, by actor.Actor, ref project.Ref, jobID int64) (*Log, error) {
	_, j, err := s.loggedJob(ctx, by, ref, jobID)
	if err != nil {
		return nil, err
	}
	if !j.settled() {
		if err := s.logs.Watch(ctx, j.ID); err != nil {
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

// loggedJob returns a job to those who may read its log: one that shows every
// step shows the values of variables.
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
		return nil, nil, errs.Forbidden("The log shows every step, with the values of variables: only Developers may read it")
	}
	return p, j, nil
}

func hasDebugLog(ctx context.Context, q db.Q, jobID int64) (debug bool, err error) {
	err = q.QueryRowContext(ctx, `SELECT debug_log FROM jobs WHERE id = ?`, jobID).Scan(&debug)
	return debug, err
}

// noteDebugLog remembers that a log shows every step.
func (s *Service) noteDebugLog(ctx context.Context, jobID int64) error {
	_, err := s.DB.ExecContext(ctx, `UPDATE jobs SET debug_log = TRUE WHERE id = ?`, jobID)
	return err
}

// seenJob returns a job, no bridge, to those who see the jobs of its project.
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

// openLog opens a log wherever it is, nil when there is none. The log of a job that was
// erased is being removed.
func (s *Service) openLog(ctx context.Context, j *Job) (*Log, error) {
	if j.ErasedAt != nil {
		return nil, nil
	}
	l, err := s.logs.Open(ctx, j.ID, j.settled(), func() (*joblog.Reader, error) {
		a, err := findArtifact(ctx, s.DB, j.ID, TraceFile)
		if err != nil {
			return nil, ignoreNotFound(err)
		}
		return s.logs.OpenPacked(ctx, a.blob, a.Size), nil
	})
	if l == nil || err != nil {
		return nil, err
	}
	return &Log{j, l}, nil
}

// settled reports whether a job has ended, its runner too.
func (j *Job) settled() bool { return j.Status.Done() && !j.Canceling }

// logLimit is the size up to which a log is kept.
func (s *Service) logLimit(ctx context.Context) (int64, error) {
	settings, err := s.Settings.Current(ctx)
	return int64(settings.MaxLogMegabytes) << 20, err
}

// keepLog packs the log of a job that has ended into the store; then the live
// one goes. It may be done again at any point.
func (s *Service) keepLog(ctx context.Context, jobID int64) error {
	j, err := findAnyJob(ctx, s.DB, jobID)
	if errs.Is(err, errs.KindNotFound) {
		return s.logs.Remove(ctx, jobID)
	}
	if err != nil {
		return err
	}
	_, err = findArtifact(ctx, s.DB, j.ID, TraceFile)
	if errs.Is(err, errs.KindNotFound) && j.ErasedAt == nil {
		err = s.packLog(ctx, j)
	}
	if err != nil && !errs.Is(err, errs.KindNotFound) {
		return fmt.Errorf("keep log of job %d: %w", j.ID, err)
	}
	return s.logs.Remove(ctx, j.ID)
}

func (s *Service) packLog(ctx context.Context, j *Job) error {
	live, err := s.logs.OpenLive(ctx, j.ID)
	if live == nil || err != nil {
		return err
	}
	defer live.Close()
	a := &Artifact{
		JobID: j.ID, ProjectID: j.ProjectID, Kind: TraceFile, Format: RawFormat, Filename: "job.log", Size: live.Size,
		CreatedAt: s.Now(), blob: logKey(j),
	}
	// The file goes first: a row promises that it is there.
	if err := s.logs.Pack(ctx, a.blob, live); err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "jobs", j.ID); err != nil {
			return err
		}
		now, err := findAnyJob(ctx, tx, j.ID)
		if err != nil {
			return err
		}
		if now.ErasedAt != nil { // while we packed
			return errs.NotFound("Log")
		}
		return insertArtifact(ctx, tx, a)
	})
	switch {
	case db.IsUnique(err, "job_artifacts_job_id_kind"): // another node put the same bytes there
		return nil
	case errs.Is(err, errs.KindNotFound):
		return errors.Join(err, s.Blobs.Delete(context.WithoutCancel(ctx), a.blob))
	}
	return err
}

// logKey is where a log is put away: always the same place, so that what a
// crash cut off is written over and does not lie about.
func logKey(j *Job) string {
	return fmt.Sprintf("ci/%02x/%d/%d/%s", uint8(j.ID), j.ProjectID, j.ID, TraceFile)
}

const (
	// logRest is how long the log of a job that ended stays where it is: it is
	// read most often then, and a burst of jobs is not slowed down by it.
	logRest = time.Minute
	// logsAtOnce is how many logs are asked about at once, and packersAtOnce how
	// many are put away at the same time: that is mostly a wait for the store.
	logsAtOnce    = 200
	packersAtOnce = 4
)

// SweepLogs puts away the logs of jobs that ended a while ago. The queue calls
// it every minute. A log that cannot be put away does not hold up the others.
func (s *Service) SweepLogs(ctx context.Context) error {
	ids, err := s.logs.Jobs(ctx)
	if err != nil {
		return fmt.Errorf("sweep logs: %w", err)
	}
	var mu sync.Mutex
	var faults []error
	packers := new(errgroup.Group)
	packers.SetLimit(packersAtOnce)
	for part := range slices.Chunk(ids, logsAtOnce) {
		unsettled, err := unsettledJobs(ctx, s.DB, part, s.Now().Add(-logRest))
		if err != nil {
			faults = append(faults, err)
			break
		}
		for _, id := range part {
			if slices.Contains(unsettled, id) {
				continue
			}
			packers.Go(func() error {
				if err := s.keepLog(ctx, id); err != nil {
					mu.Lock()
					defer mu.Unlock()
					faults = append(faults, err)
				}
				return nil
			})
		}
		_ = packers.Wait() // the faults are gathered
	}
	if len(faults) > 0 {
		return fmt.Errorf("sweep logs: %w", errors.Join(faults...))
	}
	return nil
}
