package joblog

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"svc/internal/db"
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

// watchers records which logs are read on this node, and wakes their followers.
type watchers struct {
	mu   sync.Mutex
	jobs map[int64]*watched
}

type watched struct {
	until, noticed time.Time
	follow         map[chan struct{}]struct{}
}

// of returns the entry of a job; the lock is held.
func (w *watchers) of(jobID int64, now time.Time) *watched {
	j := w.jobs[jobID]
	if j == nil {
		for id, old := range w.jobs { // drop expired entries
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

// changed wakes the followers of a log.
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

// Watch records on all nodes that a user reads a log, so that its runner sends it more
// often for a while.
func (s *Store) Watch(ctx context.Context, jobID int64) error {
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

func (s *Store) listen() {
	s.Notices.Subscribe(topicWatched, func(key string) {
		if id, err := strconv.ParseInt(key, 10, 64); err == nil {
			s.watched.note(id, s.Now(), false)
		}
	})
}

// Interval returns how often the runner of a job should send its log.
func (s *Store) Interval(jobID int64) time.Duration {
	if s.watched.is(jobID, s.Now()) {
		return watchedInterval
	}
	return unwatchedInterval
}

// Follow returns a channel that receives when the log of a job has changed on this
// node, until stop is called.
func (s *Store) Follow(jobID int64) (wake <-chan struct{}, stop func()) {
	return s.watched.follow(jobID, s.Now())
}

// Changed wakes the followers of a log: it has grown, or its job has ended.
func (s *Store) Changed(jobID int64) { s.watched.changed(jobID) }
