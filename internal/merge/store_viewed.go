package merge

import (
	"context"

	"svc/internal/db"
)

func findViewed(ctx context.Context, q db.Q, requestID, userID int64) (Viewed, error) {
	type row struct{ file, content string }
	list, err := db.All(ctx, q, func(s db.Scanner) (row, error) {
		var r row
		err := s.Scan(&r.file, &r.content)
		return r, err
	}, `SELECT file, content FROM merge_request_viewed_files WHERE merge_request_id = ? AND user_id = ?`, requestID, userID)
	found := Viewed{}
	for _, r := range list {
		found[r.file] = r.content
	}
	return found, err
}

func countViewed(ctx context.Context, q db.Q, requestID, userID int64) (n int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM merge_request_viewed_files WHERE merge_request_id = ? AND user_id = ?`, requestID, userID).Scan(&n)
	return n, err
}

func insertViewed(ctx context.Context, q db.Q, requestID, userID int64, file, content string) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO merge_request_viewed_files (merge_request_id, user_id, file, content) VALUES (?, ?, ?, ?)
		ON CONFLICT (merge_request_id, user_id, file) DO UPDATE SET content = excluded.content`, requestID, userID, file, content)
	return err
}

func deleteViewed(ctx context.Context, q db.Q, requestID, userID int64, file string) error {
	_, err := q.ExecContext(ctx, `DELETE FROM merge_request_viewed_files WHERE merge_request_id = ? AND user_id = ? AND file = ?`, requestID, userID, file)
	return err
}
