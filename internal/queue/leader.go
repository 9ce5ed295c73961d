package queue

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river/rivershared/startstop"
)

// leader is a maintenance service of River that only records whether this node is
// the leader, which maintains the queue. River starts it when this node is elected
// and stops it when another one is.
type leader struct {
	startstop.BaseStartStop
	active atomic.Bool
}

// Start implements startstop.Service.
func (l *leader) Start(ctx context.Context) error {
	ctx, start, started, stopped := l.StartInit(ctx)
	if !start {
		return nil
	}
	l.active.Store(true)
	go func() {
		started()
		defer stopped()
		<-ctx.Done()
		l.active.Store(false)
	}()
	return nil
}

// awaitElection waits until the client knows the result of an election, up to a limit,
// because without the database no node is elected. Stopping a client while it receives the
// result can deadlock: River's elector holds a lock while it waits for the listener, and
// the stopping listener waits for the lock.
func (q *Queue) awaitElection(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, electionGrace)
	defer cancel()
	for pause := time.Millisecond; !q.driver.pilot.leader.active.Load(); pause = min(2*pause, 50*time.Millisecond) {
		if q.DB.Postgres() { // SQLite has only one node
			if other, err := hasOtherLeader(ctx, q.DB, q.Node(), (clock{q.Now}).NowUTCOrNil()); err == nil && other {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
