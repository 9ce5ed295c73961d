package queue

import (
	"context"
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
// for later, such as retries, are not due.
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
