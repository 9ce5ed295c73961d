package limit

import (
	"context"
	"slices"
	"sync"
	"time"

	"svc/internal/errs"
)

// ShareLimits are the limits of a Share.
type ShareLimits struct {
	Total int // number of slots
	// Reserve is the number of slots that anonymous callers cannot take.
	Reserve int
	// PerUser and PerAddress are the maximum numbers of slots of a user, and of an
	// address of anonymous callers. 0 means no limit besides Total and Reserve.
	PerUser, PerAddress int
	// Wait is how long a call waits for a slot before it fails.
	Wait time.Duration
	// Queue is the maximum number of waiting calls per caller: 0 means 4 for each
	// slot that the caller can have.
	Queue int
}

// Share is a number of slots for expensive operations of one kind (git processes,
// renderings, long queries), which callers share fairly: no caller can take all, and
// anonymous callers cannot displace users. Slots are assigned in the order of the
// calls, but calls whose caller has its maximum number of slots are skipped.
type Share struct {
	name   string // name of the operations, for error messages
	limits ShareLimits

	mu        sync.Mutex
	held      map[Caller]int // slots by caller; only callers with slots have an entry
	waiting   map[Caller]int
	total     int
	anonymous int
	queue     []*waiter
}

// waiter is a call that waits for a slot.
type waiter struct {
	caller Caller
	given  chan struct{} // closed when the slot is assigned
}

// NewShare returns a Share. name is what callers wait for, such as "git transfers".
func NewShare(name string, l ShareLimits) *Share {
	return &Share{name: name, limits: l, held: map[Caller]int{}, waiting: map[Caller]int{}}
}

// Acquire takes a slot for the caller of ctx and returns the function that frees it,
// which may be called more than once. If there is no slot within the wait, or too
// many calls of the caller are waiting, it returns errs.Busy; if ctx ends first, the
// error of ctx.
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
	if !s.leave(w) { // the slot was assigned concurrently
		s.releaser(c)()
	}
	return nil, err
}

// key returns the caller by which slots are counted: for users without their
// address.
func key(c Caller) Caller {
	if c.User != 0 {
		c.Address = ""
	}
	return c
}

func (s *Share) busy() error {
	return errs.Busy(time.Second, "The server is busy with other %s. Try again in a moment.", s.name)
}

// most returns how many slots a caller can have.
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

// fits reports whether a caller can get a slot now.
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

// releaser returns a function that frees a slot once.
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

// next assigns free slots to waiting calls.
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

// leave removes a call from the queue. It reports false if the call already has its
// slot.
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

// Held returns the number of slots in use, for metrics.
func (s *Share) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Waiting returns the number of waiting calls.
func (s *Share) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}
