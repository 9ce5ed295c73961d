package ci

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/ci/flow"
	"svc/internal/errs"
	"svc/internal/project"
)

// LogPart is a chunk of a log that is followed. The last one has the final
// status of the job.
type LogPart struct {
	At    int64 // offset of its first byte
	Bytes []byte
	End   flow.Status
}

const (
	followChunk = 64 << 10
	followPoll  = 2 * time.Second // other nodes append without a notification
)

// FollowLog passes a log to take from an offset on, in chunks as it is written,
// until the job has ended, for users who can see the jobs of the project. take
// is also called without bytes now and then, to find out whether the connection
// is open. Access is checked before each step, and when the account of the
// reader or one of their credentials changes. NotFound if there is no such job;
// Forbidden or Unauthorized, also if the reader loses access later.
func (s *Service) FollowLog(ctx context.Context, who Reader, ref project.Ref, jobID, at int64, take func(LogPart) error) error {
	reader, end, err := s.readers.begin(ctx, who)
	if err != nil {
		return err
	}
	defer end()
	see := func() (*Job, error) {
		by, err := reader.actor(ctx)
		if err != nil {
			return nil, err
		}
		_, j, err := s.loggedJob(ctx, by, ref, jobID)
		return j, err
	}
	j, err := see()
	if err != nil {
		return err
	}
	wake, stop := s.Artifacts.Logs.Follow(j.ID)
	defer stop()
	for waited := false; ; waited = true {
		if err := s.Artifacts.Logs.Watch(ctx, j.ID); err != nil {
			return err
		}
		// The status is read before the log: the log of a job that has ended
		// does not grow. Access is checked again, because the log may have
		// become a debug log.
		if j, err = see(); err != nil {
			return err
		}
		if waited {
			if err := take(LogPart{At: at}); err != nil {
				return err
			}
		}
		at, err = s.copyLog(ctx, j, at, take, see)
		if err != nil {
			return err
		}
		if j.settled() {
			return take(LogPart{At: at, End: j.Status})
		}
		timer := time.NewTimer(followPoll)
		select {
		case <-wake:
		case <-reader.wake:
		case <-timer.C:
		case <-s.JobQueue.Closed():
			timer.Stop()
			return nil
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		timer.Stop()
	}
}

// CheckLog checks that an actor may read the log of a job. It returns the
// errors of Log.
func (s *Service) CheckLog(ctx context.Context, by actor.Actor, ref project.Ref, jobID int64) error {
	_, _, err := s.loggedJob(ctx, by, ref, jobID)
	return err
}

// copyLog passes a log to take from an offset on and returns the offset of its
// end. It checks access by see after it knows the size: nothing is sent that
// was written after the reader lost access. A long copy checks again from time
// to time.
func (s *Service) copyLog(ctx context.Context, j *Job, at int64, take func(LogPart) error, see func() (*Job, error)) (int64, error) {
	l, err := s.openLog(ctx, j)
	if l == nil || err != nil {
		return at, err
	}
	defer l.Close()
	if at >= l.Size {
		return at, nil
	}
	if _, err := l.Seek(at, 0); err != nil {
		return at, err
	}
	buffer := make([]byte, followChunk)
	var checked time.Time
	for at < l.Size {
		if now := s.Now(); now.Sub(checked) >= recheckAfter {
			if _, err := see(); err != nil {
				return at, err
			}
			checked = now
		}
		n, err := l.Read(buffer)
		if n > 0 {
			if err := take(LogPart{At: at, Bytes: buffer[:n]}); err != nil {
				return at, err
			}
			at += int64(n)
		}
		if err != nil && at < l.Size {
			if errs.Is(err, errs.KindNotFound) {
				return at, nil
			}
			return at, fmt.Errorf("read log of job %d: %w", j.ID, err)
		}
	}
	return at, nil
}
