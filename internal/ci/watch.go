package ci

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"svc/internal/actor"
	"svc/internal/ci/flow"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

const (
	// watchedFor is how long a log counts as watched after a user read it.
	watchedFor = 90 * time.Second
	// watchNotice is how often the other nodes get a notice that a log is watched.
	watchNotice = 30 * time.Second

	watchedInterval   = 3 * time.Second
	unwatchedInterval = 60 * time.Second
)

// topicWatched is the notice that a user reads the log of a job; its key is the
// job.
const topicWatched = "ci_watched"

// watchers knows which logs are being read, and wakes those who follow them.
type watchers struct {
	mu     sync.Mutex
	jobs   map[int64]*watched
	closed chan struct{}
	over   bool
}

type watched struct {
	until, noticed time.Time
	follow         map[chan struct{}]struct{}
}

func newWatchers() *watchers {
	return &watchers{jobs: map[int64]*watched{}, closed: make(chan struct{})}
}

// of returns the entry of a job; the lock is held.
func (w *watchers) of(jobID int64, now time.Time) *watched {
	j := w.jobs[jobID]
	if j == nil {
		for id, old := range w.jobs { // the others may be over
			if len(old.follow) == 0 && now.After(old.until) {
				delete(w.jobs, id)
			}
		}
		j = &watched{follow: map[chan struct{}]struct{}{}}
		w.jobs[jobID] = j
	}
	return j
}

// note records that a job is watched, and reports whether to publish a notice.
func (w *watchers) note(jobID int64, now time.Time, publish bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.of(jobID, now)
	j.until = now.Add(watchedFor)
	if !publish || now.Sub(j.noticed) < watchNotice {
		return false
	}
	j.noticed = now
	return true
}

// is reports whether a user watches a job.
func (w *watchers) is(jobID int64, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.jobs[jobID]
	return j != nil && (len(j.follow) > 0 || now.Before(j.until))
}

// changed wakes those who follow a log.
func (w *watchers) changed(jobID int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.jobs[jobID]; j != nil {
		for wake := range j.follow {
			select {
			case wake <- struct{}{}:
			default:
			}
		}
	}
}

func (w *watchers) follow(jobID int64, now time.Time) (wake chan struct{}, stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wake = make(chan struct{}, 1)
	w.of(jobID, now).follow[wake] = struct{}{}
	return wake, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if j := w.jobs[jobID]; j != nil {
			delete(j.follow, wake)
		}
	}
}

func (w *watchers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.over = true
		close(w.closed)
	}
}

// watch notes that a user reads a log, on all nodes.
func (s *Service) watch(ctx context.Context, jobID int64) error {
	if !s.watched.note(jobID, s.Now(), true) {
		return nil
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		return s.Notices.Send(ctx, tx, topicWatched, strconv.FormatInt(jobID, 10))
	})
	if err != nil {
		return fmt.Errorf("watch job %d: %w", jobID, err)
	}
	return nil
}

func (s *Service) listenWatched() {
	s.Notices.Subscribe(topicWatched, func(key string) {
		if id, err := strconv.ParseInt(key, 10, 64); err == nil {
			s.watched.note(id, s.Now(), false)
		}
	})
}

// updateInterval is how often a runner is to send its log.
func (s *Service) updateInterval(jobID int64) time.Duration {
	if s.watched.is(jobID, s.Now()) {
		return watchedInterval
	}
	return unwatchedInterval
}

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
	wake, stop := s.watched.follow(j.ID, s.Now())
	defer stop()
	for waited := false; ; waited = true {
		if err := s.watch(ctx, j.ID); err != nil {
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
		case <-s.watched.closed:
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
