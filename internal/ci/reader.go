package ci

import (
	"context"
	"sync"
	"time"

	"svc/internal/actor"
	"svc/internal/errs"
)

// Reader returns the actor that follows a live stream. Each call authenticates
// the credential again, without extending its lifetime. It fails if the
// credential is no longer accepted.
type Reader func(context.Context) (actor.Actor, error)

// recheckAfter is the minimum time between two access checks while a long log
// is sent.
const recheckAfter = 2 * time.Second

// readers wakes the readers of live streams when their account or one of their
// credentials changes.
type readers struct {
	mu   sync.Mutex
	open map[*reading]struct{}
}

// reading is one live stream.
type reading struct {
	who   Reader
	first actor.Actor   // the actor who opened it
	wake  chan struct{} // access must be checked now
}

// begin registers a live stream until stop is called. The caller must check
// access afterwards, so that no change is missed.
func (r *readers) begin(ctx context.Context, who Reader) (l *reading, stop func(), err error) {
	l = &reading{who: who, wake: make(chan struct{}, 1)}
	if l.first, err = who(ctx); err != nil {
		return nil, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = map[*reading]struct{}{}
	}
	r.open[l] = struct{}{}
	return l, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.open, l)
	}, nil
}

// changed wakes the streams of a user, and of administrators who impersonate
// another user. 0 wakes all.
func (r *readers) changed(userID int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.open {
		if userID != 0 && l.first.ID != userID && impersonatorID(l.first) != userID {
			continue
		}
		select {
		case l.wake <- struct{}{}:
		default: // a wake-up is already pending
		}
	}
}

// actor returns the current actor of the stream. Unauthorized or Forbidden if
// the credential is no longer accepted or now belongs to another user.
func (l *reading) actor(ctx context.Context) (actor.Actor, error) {
	by, err := l.who(ctx)
	if err != nil {
		return actor.Actor{}, err
	}
	if by.ID != l.first.ID || impersonatorID(by) != impersonatorID(l.first) {
		return actor.Actor{}, errs.Unauthorized("")
	}
	return by, nil
}

// impersonatorID returns the ID of the impersonator of an actor, or 0.
func impersonatorID(by actor.Actor) int64 {
	if by.Impersonator == nil {
		return 0
	}
	return by.Impersonator.ID
}
