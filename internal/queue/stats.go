package queue

import (
	"context"
	"time"

	"svc/internal/db"
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

// Stats counts the work that is not finished well, by kind and state, in that
// order.
func (q *Queue) Stats(ctx context.Context) ([]Count, error) {
	return db.All(ctx, q.DB, func(s db.Scanner) (Count, error) {
		var c Count
		err := s.Scan(&c.Kind, &c.State, &c.N)
		return c, err
	}, `SELECT kind, `+stateCase+` AS s, count(*)
		FROM river_job WHERE state <> 'completed' AND kind <> ?
		GROUP BY kind, s ORDER BY kind, s`, everyKind)
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

func (q *Queue) busy(ctx context.Context) (bool, error) {
	due, args := "now()", []any(nil)
	if !q.DB.Postgres() {
		due = "datetime('now', 'subsec')"
	}
	if q.Now != nil {
		due, args = "CAST(? AS TIMESTAMPTZ)", []any{q.now().Format("2006-01-02 15:04:05.000Z07:00")}
		if !q.DB.Postgres() {
			due, args = "?", []any{q.now().Format("2006-01-02 15:04:05.000")}
		}
	}
	var busy bool
	err := q.DB.QueryRowContext(ctx, `
		SELECT EXISTS (SELECT 1 FROM river_job WHERE state = 'running')
			OR EXISTS (SELECT 1 FROM river_job WHERE state IN ('available', 'pending', 'scheduled', 'retryable') AND scheduled_at <= `+due+`)`,
		args...).Scan(&busy)
	return busy, err
}
