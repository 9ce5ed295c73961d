package queue

import (
	"context"
	"time"

	"svc/internal/db"
)

// left is a job that is marked as running but was abandoned, with its number of tries.
type left struct {
	id       int64
	kind     string
	try, max int
}

func scanLeft(s db.Scanner) (left, error) {
	var l left
	err := s.Scan(&l.id, &l.kind, &l.try, &l.max)
	return l, err
}

const leftColumns = `id, kind, attempt, max_attempts`

// findRunning returns all jobs that are marked as running.
func findRunning(ctx context.Context, q db.Q) ([]left, error) {
	return db.All(ctx, q, scanLeft, `SELECT `+leftColumns+` FROM river_job WHERE state = 'running'`)
}

// findLeft returns the jobs that are marked as running on nodes without a recent
// heartbeat.
func findLeft(ctx context.Context, q db.Q, silent time.Duration) ([]left, error) {
	return db.All(ctx, q, scanLeft, `
		SELECT `+leftColumns+` FROM river_job
		WHERE state = 'running' AND NOT EXISTS (
			SELECT 1 FROM river_client c
			WHERE c.id = attempted_by[array_upper(attempted_by, 1)] AND c.updated_at > now() - make_interval(secs => ?))`,
		silent.Seconds())
}

// findTaken returns the jobs that a node took some time ago and that are still marked
// as running there.
func findTaken(ctx context.Context, q db.Q, node string, ago time.Duration) ([]left, error) {
	return db.All(ctx, q, scanLeft, `
		SELECT `+leftColumns+` FROM river_job
		WHERE state = 'running' AND attempted_by[array_upper(attempted_by, 1)] = ? AND attempted_at <= now() - make_interval(secs => ?)`,
		node, ago.Seconds())
}

// saveFreed makes a job available again, or discards it if that was its last try.
// It returns false if the job has ended or was freed by another node.
func saveFreed(ctx context.Context, q db.Q, l left) (bool, error) {
	set := "state = 'available'"
	if l.try >= l.max {
		set = "state = 'discarded', finalized_at = CURRENT_TIMESTAMP"
	}
	return db.ExecAny(ctx, q, "UPDATE river_job SET "+set+" WHERE id = ? AND state = 'running' AND attempt = ?", l.id, l.try)
}

func deleteLeader(ctx context.Context, q db.Q) error {
	_, err := q.ExecContext(ctx, `DELETE FROM river_leader`)
	return err
}

// saveNode records the heartbeat of a node.
func saveNode(ctx context.Context, q db.Q, id string) error {
	_, err := q.ExecContext(ctx, `INSERT INTO river_client (id, updated_at) VALUES (?, now()) ON CONFLICT (id) DO UPDATE SET updated_at = now()`, id)
	return err
}

// findNodes returns the nodes with a recent heartbeat.
func findNodes(ctx context.Context, q db.Q, within time.Duration) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `SELECT id FROM river_client WHERE updated_at > now() - make_interval(secs => ?) ORDER BY id`, within.Seconds())
}

func deleteNode(ctx context.Context, q db.Q, id string) error {
	_, err := q.ExecContext(ctx, `DELETE FROM river_client WHERE id = ?`, id)
	return err
}

// deleteOldNodes deletes nodes without a heartbeat for a day.
func deleteOldNodes(ctx context.Context, q db.Q) error {
	_, err := q.ExecContext(ctx, `DELETE FROM river_client WHERE updated_at < now() - INTERVAL '1 day'`)
	return err
}

// hasOtherLeader reports whether another node is the leader at a time; nil means
// now.
func hasOtherLeader(ctx context.Context, q db.Q, id string, now *time.Time) (bool, error) {
	var at *string
	if now != nil {
		text := now.Format("2006-01-02 15:04:05.000Z07:00")
		at = &text
	}
	return db.Exists(ctx, q, `SELECT 1 FROM river_leader WHERE leader_id <> ? AND expires_at > COALESCE(CAST(? AS TIMESTAMPTZ), now())`, id, at)
}
