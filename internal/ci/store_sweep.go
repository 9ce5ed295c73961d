package ci

import (
	"context"
	"time"

	"svc/internal/db"
)

// sweepCondition is an SQL condition that selects jobs by a time.
type sweepCondition string

const (
	scheduledBefore sweepCondition = `status = 'scheduled' AND scheduled_at <= ?`
	claimedBefore   sweepCondition = `claimed_at IS NOT NULL AND claimed_at <= ?`
	runningSilent   sweepCondition = `status = 'running' AND NOT bridge AND heard_at <= ?`
	cancelingSince  sweepCondition = `canceling AND finished_at <= ?`
	overdue         sweepCondition = `status = 'running' AND NOT bridge AND started_at + timeout * 1000000 <= ?`
)

// findSwept returns the jobs with the lowest IDs. They are few and have an index, which SQLite
// would not use if the primary key had the order.
func findSwept(ctx context.Context, q db.Q, c sweepCondition, at time.Time, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT id FROM jobs WHERE `+string(c)+` ORDER BY +id LIMIT ?`, at, limit)
}
