package todo

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
)

// topicChanged is the topic of notices about possibly changed counters of a user.
// The key is the user ID.
const topicChanged = "inbox"

const (
	// MaxCount is the limit of the counters; at the limit, 99+ is shown.
	MaxCount = 100
	// countAge is how long counters are cached without a notice. Losing access to a
	// target sends no notice.
	countAge  = time.Minute
	maxCounts = 10_000
	// pause is the minimum time between two messages to a follower; beat is the
	// interval of messages without changes.
	pause = time.Second
	beat  = 25 * time.Second
	// maxFollowers is the maximum number of streams per user on a node.
	maxFollowers = 20
)

// Counts are the counters in the header of pages, up to MaxCount.
type Counts struct {
	Todos  int // pending items
	Issues int // open issues assigned to the user
	Merges int // open merge requests assigned to the user or waiting for their review

	userID int64
}

// Counts returns the counters of the actor.
func (s *Service) Counts(ctx context.Context, by actor.Actor) (Counts, error) {
	if err := by.RequireUser(); err != nil {
		return Counts{}, err
	}
	return s.counts.Get(by.ID, func() (Counts, bool, error) {
		c, err := s.readCounts(ctx, by)
		return c, true, err
	})
}

func (s *Service) readCounts(ctx context.Context, by actor.Actor) (c Counts, err error) {
	c.userID = by.ID
	if c.Todos, err = count(ctx, s.DB, s.visible(by), by.ID, MaxCount); err != nil {
		return c, fmt.Errorf("count to-do items of user %d: %w", by.ID, err)
	}
	if c.Issues, err = s.Plan.CountAssigned(ctx, by, MaxCount); err != nil {
		return c, err
	}
	c.Merges, err = s.Merges.CountWaiting(ctx, by, MaxCount)
	return c, err
}

// changed sends a notice, when the transaction commits, that the counters of a user
// may have changed.
func (s *Service) changed(ctx context.Context, tx *db.Tx, userID int64) error {
	return s.Notices.Send(ctx, tx, topicChanged, strconv.FormatInt(userID, 10))
}

func (s *Service) listen() {
	s.Users.OnChange(s.followers.wake) // the session may have ended
	s.Notices.Subscribe(topicChanged, func(key string) {
		userID, err := strconv.ParseInt(key, 10, 64)
		if err != nil { // everything may have changed
			s.counts.Drop()
			s.followers.wake(0)
			return
		}
		s.counts.DropGroup(userID)
		s.followers.wake(userID)
	})
}

// followers are the open streams of counters on this node, by user.
type followers struct {
	mu   sync.Mutex
	open map[int64]map[chan struct{}]struct{}
}

func (f *followers) follow(userID int64) (wake chan struct{}, stop func(), err error) {
	wake = make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		f.open = map[int64]map[chan struct{}]struct{}{}
	}
	if len(f.open[userID]) >= maxFollowers {
		return nil, nil, errs.Unavailable("You have too many open pages with live counters.")
	}
	if f.open[userID] == nil {
		f.open[userID] = map[chan struct{}]struct{}{}
	}
	f.open[userID][wake] = struct{}{}
	return wake, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.open[userID], wake)
		if len(f.open[userID]) == 0 {
			delete(f.open, userID)
		}
	}, nil
}

// wake wakes the streams of a user; 0 wakes all.
func (f *followers) wake(userID int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, streams := range f.open {
		if userID != 0 && id != userID {
			continue
		}
		for c := range streams {
			select {
			case c <- struct{}{}:
			default: // a wake-up is already pending
			}
		}
	}
}

// Follow calls send with the counters of a user, first immediately, then after each
// change, until the context ends or send fails. It regularly calls send with nil to
// detect closed connections. who authenticates the credential again before each
// call; Follow returns when the credential is no longer valid. Unavailable if the
// user has too many streams.
func (s *Service) Follow(ctx context.Context, who func(context.Context) (actor.Actor, error), send func(*Counts) error) error {
	by, err := who(ctx)
	if err != nil {
		return err
	}
	if err := by.RequireUser(); err != nil {
		return err
	}
	wake, stop, err := s.followers.follow(by.ID)
	if err != nil {
		return err
	}
	defer stop()
	userID, was := by.ID, Counts{Todos: -1}
	for {
		now, err := s.Counts(ctx, by)
		if err != nil {
			return err
		}
		var news *Counts
		if now != was {
			news, was = &now, now
		}
		if err := send(news); err != nil {
			return err
		}
		if news != nil && !s.wait(ctx, nil, pause) || !s.wait(ctx, wake, beat) {
			return nil
		}
		if by, err = who(ctx); err != nil {
			return err
		}
		if by.ID != userID {
			return errs.Unauthorized("")
		}
	}
}

// wait waits for a wake-up for at most d. It returns false if the request or the
// server ends.
func (s *Service) wait(ctx context.Context, wake <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-wake:
	case <-timer.C:
	case <-s.closed:
		return false
	case <-ctx.Done():
		return false
	}
	return true
}

// Close ends all streams. It is called once, when the server stops.
func (s *Service) Close() { close(s.closed) }
