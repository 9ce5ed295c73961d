package ci

import (
	"context"
	"time"

	"svc/internal/db"
)

// saveClaim assigns a pending job to a runner.
func saveClaim(ctx context.Context, tx *db.Tx, j *Job, token []byte, at time.Time) error {
	return db.ExecOne(ctx, tx, `
		UPDATE jobs SET runner_id = ?, runner_manager_id = ?, token_digest = ?, claimed_at = ?, heard_at = ?, updated_at = ?
		WHERE id = ? AND status = 'pending'`,
		j.RunnerID, j.ManagerID, token, at, at, at, j.ID)
}

// dropClaim takes a job back from a runner that has not started it.
func dropClaim(ctx context.Context, tx *db.Tx, id int64, at time.Time) error {
	return db.ExecOne(ctx, tx, `
		UPDATE jobs SET runner_id = NULL, runner_manager_id = NULL, token_digest = NULL, claimed_at = NULL, heard_at = NULL, updated_at = ?
		WHERE id = ? AND status = 'pending' AND claimed_at IS NOT NULL`, at, id)
}

func rootNamespace(ctx context.Context, q db.Q, id int64) (root int64, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT t.ancestor_id FROM namespace_tree t JOIN namespaces n ON n.id = t.ancestor_id
		WHERE t.descendant_id = ? AND n.parent_id IS NULL`, id).Scan(&root)
	return root, err
}

func runningShared(ctx context.Context, q db.Q, projectID int64) (n int64, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT COUNT(*) FROM jobs j JOIN runners r ON r.id = j.runner_id
		WHERE j.status = 'running' AND j.project_id = ? AND r.kind = 'instance_type'`, projectID).Scan(&n)
	return n, err
}
