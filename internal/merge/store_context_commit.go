package merge

import (
	"context"
	"time"

	"svc/internal/db"
)

func findContextCommits(ctx context.Context, q db.Q, mergeID int64) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `SELECT sha FROM merge_request_context_commits WHERE merge_request_id = ? ORDER BY id`, mergeID)
}

func insertContextCommit(ctx context.Context, q db.Q, mergeID int64, sha string, at time.Time) error {
	_, err := q.ExecContext(ctx, `INSERT INTO merge_request_context_commits (merge_request_id, sha, created_at) VALUES (?, ?, ?)`, mergeID, sha, at)
	return err
}

func deleteContextCommit(ctx context.Context, q db.Q, mergeID int64, sha string) error {
	return db.ExecOne(ctx, q, `DELETE FROM merge_request_context_commits WHERE merge_request_id = ? AND sha = ?`, mergeID, sha)
}
