package transfer

import (
	"context"
	"sync"
	"time"

	"svc/internal/queue"
)

// The workers of each lane of this package on a node, and the maximum that one user
// may occupy, so that a slow source or a large file leaves workers to others.
const (
	workers = 4
	perUser = workers / 2
)

// turns counts the running jobs of this node by lane and user.
type turns struct {
	mu      sync.Mutex
	running map[turn]int
}

type turn struct {
	lane string
	user int64
}

// take returns nil if the user has perUser jobs in the lane.
func (t *turns) take(of turn) (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running[of] >= perUser {
		return nil
	}
	if t.running == nil {
		t.running = map[turn]int{}
	}
	t.running[of]++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.running[of]--; t.running[of] == 0 {
			delete(t.running, of)
		}
	}
}

// inTurn returns a handler that runs at most perUser jobs of a user at once and
// postpones the others. of returns the user of a job, nil if there is none, and the
// number of pending jobs of the user.
func inTurn[W queue.Work](s *Service, lane string, do func(context.Context, W) error, of func(context.Context, W) (*int64, error), waiting func(context.Context, int64) (int, error)) func(context.Context, W) error {
	return func(ctx context.Context, w W) error {
		user, err := of(ctx, w)
		if err != nil {
			return err
		}
		if user == nil {
			return do(ctx, w)
		}
		end := s.turns.take(turn{lane, *user})
		if end == nil {
			n, err := waiting(ctx, *user)
			if err != nil {
				return err
			}
			return queue.PostponeTurn(n)
		}
		defer end()
		return do(ctx, w)
	}
}

// handleInTurn registers the handler of exports or imports of files in a lane.
func handleInTurn[W queue.Work](s *Service, lane, table string, id func(W) int64, do func(context.Context, W) error) {
	of := func(ctx context.Context, w W) (*int64, error) { return userOf(ctx, s.DB, table, id(w)) }
	waiting := func(ctx context.Context, user int64) (int, error) { return countQueued(ctx, s.DB, table, user) }
	queue.Handle(s.Queue, inTurn(s, lane, do, of, waiting), queue.Timeout(12*time.Hour))
}
