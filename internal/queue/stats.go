package queue

import (
	"context"
	"maps"
	"sync"
	"time"
)

// State is the state of a job.
type State string

// The states of jobs that have not succeeded.
const (
	Waiting State = "waiting" // for a free worker or for its scheduled time
	Running State = "running"
	Retry   State = "retry"  // failed, and will be retried
	Failed  State = "failed" // all tries failed
	GivenUp State = "given_up"
)

// Count is the number of jobs of a kind in a state.
type Count struct {
	Kind  string
	State State
	N     int64
}

// Idle waits until no job is due or running on any node. Jobs that are scheduled
// for later, such as retries, are not due. Jobs that have run here successfully are
// done, although River marks their rows up to a quarter of a second later.
func (q *Queue) Idle(ctx context.Context) error {
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		busy, err := q.busy(ctx)
		if err != nil || !busy {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// recent remembers the IDs of the last jobs that have run successfully.
type recent struct {
	mu   sync.Mutex
	ids  map[int64]bool
	ring [1024]int64
	next int
}

func (r *recent) add(id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil {
		r.ids = make(map[int64]bool, len(r.ring))
	}
	delete(r.ids, r.ring[r.next])
	r.ids[id] = true
	r.ring[r.next] = id
	r.next = (r.next + 1) % len(r.ring)
}

// copy returns the IDs.
func (r *recent) copy() map[int64]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.ids)
}
