package queue

import (
	"context"
	"time"
)

// State says how far a piece of work is.
type State string

// The states of work that is not finished well.
const (
	Waiting State = "waiting" // for a free worker, or for its time
	Running State = "running"
	Retry   State = "retry"  // failed, and will be retried
	Failed  State = "failed" // its tries are used up
	GivenUp State = "given_up"
)

// Count is how much work of a kind is in a state.
type Count struct {
	Kind  string
	State State
	N     int64
}

// Idle waits until no work is due or running, on any node. Work that waits
// for its time, as after a failure, is not due before that.
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
