package ci

import (
	"context"
	"sync"
	"time"

	"svc/internal/actor"
	"svc/internal/errs"
)

// Reader returns the actor for whom something is followed. It authenticates
// their credential again at each call, without prolonging it, and fails when
// the credential is no longer accepted.
type Reader func(context.Context) (actor.Actor, error)

// recheckAfter is how long a reader who is sent a long log is not checked again.
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
	first actor.Actor   // who opened it
	wake  chan struct{} // access is to be checked now
}

// begin registers a live stream until stop is called. The caller checks access
// after it, so that no change is missed.
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

// changed wakes the streams of a user, and those of administrators who act as
// another user; 0 wakes all.
func (r *readers) changed(userID int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.open {
		if userID != 0 && l.first.ID != userID && impersonatorID(l.first) != userID {
			continue
		}
		select {
		case l.wake <- struct{}{}:
		default: // it is awake already
		}
	}
}

// actor returns the reader as they are now: Unauthorized or Forbidden when
// their credential is no longer accepted, or is that of another user now.
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

// impersonatorID is the id of the administrator who acts as the actor, or 0.
func impersonatorID(by actor.Actor) int64 {
	if by.Impersonator == nil {
		return 0
	}
	return by.Impersonator.ID
}
