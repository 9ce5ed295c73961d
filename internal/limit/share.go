package limit

import (
	"context"
	"slices"
	"sync"
	"time"

	"svc/internal/errs"
)

// ShareLimits bounds a Share.
type ShareLimits struct {
	Total int // slots
	// Reserve is how many of them callers cannot take who have not signed in.
	Reserve int
	// PerUser and PerAddress are how many one user, and one address that has
	// not signed in, can hold. 0 means no more than Total and Reserve allow.
	PerUser, PerAddress int
	// Wait is how long a caller waits for a slot before it is turned away.
	Wait time.Duration
	// Queue is how many calls of one caller may wait at once: 0 means 4 for
	// each slot that the caller can hold.
	Queue int
}

// Share is a number of slots for one expensive kind of work (git processes,
// renderings, long queries), shared fairly: no caller can take all, and those
// who have not signed in cannot crowd out those who have. Slots are given in
// the order of the calls, passing over callers that hold their share.
type Share struct {
	name   string // of the work, for users
	limits ShareLimits

	mu        sync.Mutex
	held      map[Caller]int // slots of each caller; no entry when it has none
	waiting   map[Caller]int
	total     int
	anonymous int
	queue     []*waiter
}

// waiter is a call that waits for a slot.
type waiter struct {
	caller Caller
	given  chan struct{} // closed when it has the slot
}

// NewShare makes a Share. name says what is being waited for: "git transfers".
func NewShare(name string, l ShareLimits) *Share {
	return &Share{name: name, limits: l, held: map[Caller]int{}, waiting: map[Caller]int{}}
}

// Acquire takes a slot for the caller of ctx and returns the function that gives
// it back, which may be called more than once. When there is none within the
// wait, or too many calls of the same caller wait already, it returns
// errs.Busy; when ctx ends first, the error of ctx.
func (s *Share) Acquire(ctx context.Context) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := key(CallerOf(ctx))
	s.mu.Lock()
	if s.fits(c) && !slices.ContainsFunc(s.queue, func(w *waiter) bool { return s.fits(w.caller) }) {
		s.take(c)
		s.mu.Unlock()
		return s.releaser(c), nil
	}
	if s.waiting[c] >= s.queueOf(c) {
		s.mu.Unlock()
		return nil, s.busy()
	}
	w := &waiter{caller: c, given: make(chan struct{})}
	s.queue = append(s.queue, w)
	s.waiting[c]++
	s.mu.Unlock()

	timeout := time.NewTimer(s.limits.Wait)
	defer timeout.Stop()
	select {
	case <-w.given:
		return s.releaser(c), nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timeout.C:
		err = s.busy()
	}
	if !s.leave(w) { // the slot came at the same moment
		s.releaser(c)()
	}
	return nil, err
}

// key is what slots are counted by: users by themselves, wherever they are.
func key(c Caller) Caller {
	if c.User != 0 {
		c.Address = ""
	}
	return c
}

func (s *Share) busy() error {
	return errs.Busy(time.Second, "The server is busy with other %s. Try again in a moment.", s.name)
}

// most is how many slots a caller can hold.
func (s *Share) most(c Caller) int {
	limit := 0
	switch {
	case c.Anonymous():
		limit = s.limits.PerAddress
	case c.User != 0:
		limit = s.limits.PerUser
	}
	if limit == 0 {
		limit = s.limits.Total
	}
	return limit
}

func (s *Share) queueOf(c Caller) int {
	if s.limits.Queue > 0 {
		return s.limits.Queue
	}
	return 4 * s.most(c)
}

// fits reports whether a caller could have a slot now.
func (s *Share) fits(c Caller) bool {
	return s.total < s.limits.Total && s.held[c] < s.most(c) &&
		(!c.Anonymous() || s.anonymous < s.limits.Total-s.limits.Reserve)
}

func (s *Share) take(c Caller) {
	s.total++
	s.held[c]++
	if c.Anonymous() {
		s.anonymous++
	}
}

// releaser returns a slot once.
func (s *Share) releaser(c Caller) func() {
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.total--
		if s.held[c]--; s.held[c] == 0 {
			delete(s.held, c)
		}
		if c.Anonymous() {
			s.anonymous--
		}
		s.next()
	})
}

// next returns free slots to those who wait.
func (s *Share) next() {
	for s.total < s.limits.Total {
		i := slices.IndexFunc(s.queue, func(w *waiter) bool { return s.fits(w.caller) })
		if i < 0 {
			return
		}
		w := s.queue[i]
		s.drop(i)
		s.take(w.caller)
		close(w.given)
	}
}

// leave takes a call out of the queue. It reports false when the call has been
// given its slot.
func (s *Share) leave(w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.queue, w)
	if i >= 0 {
		s.drop(i)
	}
	return i >= 0
}

func (s *Share) drop(i int) {
	c := s.queue[i].caller
	s.queue = slices.Delete(s.queue, i, i+1)
	if s.waiting[c]--; s.waiting[c] == 0 {
		delete(s.waiting, c)
	}
}

// Held is how many slots are taken, for metrics.
func (s *Share) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Waiting is how many calls wait for a slot.
func (s *Share) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}
