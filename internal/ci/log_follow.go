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

// LogPart is a piece of a log that is followed; the last one has the state in
// which the job ended.
type LogPart struct {
	At    int64 // of its first byte
	Bytes []byte
	End   flow.Status
}

const (
	followChunk = 64 << 10
	followPoll  = 2 * time.Second // other nodes add to the log without our knowing
)

// FollowLog returns a log from a place on, piece by piece as it is written,
// until the job has ended, for those who see the jobs of the project. take is
// also called with nothing, now and then, so that it finds out whether anyone
// still listens. Access is checked before each step, and when the account of
// the reader or one of their credentials changes. NotFound when there is no
// such job; Forbidden or Unauthorized, also when the reader loses access later.
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
		// First the state, then the log: what ended has no more to say. Whether one may
		// read on is asked again: the job may have begun to show every step.
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

// CheckLog refuses an actor who may not read the log of a job: the errors of Log.
func (s *Service) CheckLog(ctx context.Context, by actor.Actor, ref project.Ref, jobID int64) error {
	_, _, err := s.loggedJob(ctx, by, ref, jobID)
	return err
}

// copyLog returns what a log has from a place on, and where it ends. It checks
// access by see after it knows how far the log goes: nothing is sent that was
// written after the reader lost access. A long copy checks again as it goes on.
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
