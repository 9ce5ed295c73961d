package artifact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"svc/internal/ci/joblog"
	"svc/internal/db"
	"svc/internal/errs"
)

// OpenLog opens the log of a job, live or packed; nil if there is none. If the log was
// restarted, newest opens the last version; otherwise the longer version is opened.
func (s *Service) OpenLog(ctx context.Context, jobID int64, newest bool) (*joblog.Reader, error) {
	return s.Logs.Open(ctx, jobID, newest, func() (*joblog.Reader, error) {
		a, err := find(ctx, s.DB, jobID, Trace)
		if errs.Is(err, errs.KindNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return s.Logs.OpenPacked(ctx, a.blob, a.Size), nil
	})
}

// keepLog packs the log of a job that has ended, and then removes the live log. It
// can be repeated after an error.
func (s *Service) keepLog(ctx context.Context, jobID int64) error {
	j, err := findJob(ctx, s.DB, jobID)
	if errs.Is(err, errs.KindNotFound) {
		return s.Logs.Remove(ctx, jobID)
	}
	if err != nil {
		return err
	}
	_, err = find(ctx, s.DB, j.id, Trace)
	if errs.Is(err, errs.KindNotFound) && !j.erased {
		err = s.packLog(ctx, j)
	}
	if err != nil && !errs.Is(err, errs.KindNotFound) {
		return fmt.Errorf("keep log of job %d: %w", j.id, err)
	}
	return s.Logs.Remove(ctx, j.id)
}

func (s *Service) packLog(ctx context.Context, j *job) error {
	live, err := s.Logs.OpenLive(ctx, j.id)
	if live == nil || err != nil {
		return err
	}
	defer live.Close()
	a := &File{
		JobID: j.id, ProjectID: j.projectID, Kind: Trace, Format: Raw, Filename: "job.log", Size: live.Size,
		CreatedAt: s.Now(), blob: logKey(j),
	}
	// The file is stored first: a row promises that its file exists.
	if err := s.Logs.Pack(ctx, a.blob, live); err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "jobs", j.id); err != nil {
			return err
		}
		now, err := findJob(ctx, tx, j.id)
		if err != nil {
			return err
		}
		if now.erased { // meanwhile
			return errs.NotFound("Log")
		}
		return insert(ctx, tx, a)
	})
	switch {
	case db.IsUnique(err, "job_artifacts_job_id_kind"): // another node stored the same log
		return nil
	case errs.Is(err, errs.KindNotFound):
		return errors.Join(err, s.Blobs.Delete(context.WithoutCancel(ctx), a.blob))
	}
	return err
}

// logKey returns the key of a packed log. It is fixed, so that a file that was left behind
// by a crash is overwritten.
func logKey(j *job) string {
	return fmt.Sprintf("ci/%02x/%d/%d/%s", uint8(j.id), j.projectID, j.id, Trace)
}

const (
	// logRest is the time between the end of a job and the packing of its log. Logs are
	// read most often in this time, and bursts of jobs are not slowed down by packing.
	logRest = time.Minute
	// logsAtOnce is the number of logs per query, and packersAtOnce the number of logs
	// that are packed concurrently, which is mostly waiting for the blob store.
	logsAtOnce    = 200
	packersAtOnce = 4
)

// SweepLogs packs the logs of jobs that ended a while ago. The queue calls it every
// minute. A log that cannot be packed does not delay the others.
func (s *Service) SweepLogs(ctx context.Context) error {
	ids, err := s.Logs.Jobs(ctx)
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
		_ = packers.Wait() // errors are in faults
	}
	if len(faults) > 0 {
		return fmt.Errorf("sweep logs: %w", errors.Join(faults...))
	}
	return nil
}
