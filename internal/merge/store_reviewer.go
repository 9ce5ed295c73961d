package merge

import (
	"context"
	"time"

	"svc/internal/db"
)

type reviewerRow struct {
	userID int64
	state  ReviewerState
	since  time.Time
	blocks bool
}

func findReviewers(ctx context.Context, q db.Q, id int64) ([]reviewerRow, error) {
	return db.All(ctx, q, func(s db.Scanner) (r reviewerRow, err error) {
		err = s.Scan(&r.userID, (*string)(&r.state), db.Time(&r.since), &r.blocks)
		return r, err
	}, `SELECT r.user_id, r.state, r.created_at, c.user_id IS NOT NULL FROM merge_request_reviewers r
			LEFT JOIN merge_request_change_requests c ON c.merge_request_id = r.merge_request_id AND c.user_id = r.user_id AND NOT c.bypassed
		WHERE r.merge_request_id = ? ORDER BY r.user_id`, id)
}

// dateReviewers sets created_at of new reviewers.
func dateReviewers(ctx context.Context, tx *db.Tx, id int64, at time.Time) error {
	_, err := tx.ExecContext(ctx, `UPDATE merge_request_reviewers SET created_at = ? WHERE merge_request_id = ? AND created_at = 0`, at, id)
	return err
}

func addReviewer(ctx context.Context, tx *db.Tx, id, userID int64, at time.Time) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO merge_request_reviewers (merge_request_id, user_id, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, id, userID, at)
	return err
}

// saveReviewerState sets the state of a user if they are a reviewer.
func saveReviewerState(ctx context.Context, tx *db.Tx, id, userID int64, state ReviewerState) error {
	_, err := tx.ExecContext(ctx, `UPDATE merge_request_reviewers SET state = ? WHERE merge_request_id = ? AND user_id = ?`, string(state), id, userID)
	return err
}

// moveReviewerState changes the state of a reviewer from one state to another.
func moveReviewerState(ctx context.Context, tx *db.Tx, id, userID int64, from, to ReviewerState) error {
	_, err := tx.ExecContext(ctx, `UPDATE merge_request_reviewers SET state = ? WHERE merge_request_id = ? AND user_id = ? AND state = ?`, string(to), id, userID, string(from))
	return err
}

func saveChangeRequest(ctx context.Context, tx *db.Tx, id, userID int64, at time.Time) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO merge_request_change_requests (merge_request_id, user_id, created_at) VALUES (?, ?, ?)
		ON CONFLICT (merge_request_id, user_id) DO UPDATE SET created_at = excluded.created_at, bypassed = FALSE`, id, userID, at)
	return err
}

func deleteChangeRequest(ctx context.Context, tx *db.Tx, id, userID int64) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM merge_request_change_requests WHERE merge_request_id = ? AND user_id = ?`, id, userID)
	return err
}

func bypassChangeRequests(ctx context.Context, tx *db.Tx, id int64) error {
	_, err := tx.ExecContext(ctx, `UPDATE merge_request_change_requests SET bypassed = TRUE WHERE merge_request_id = ?`, id)
	return err
}

func findChangeRequesters(ctx context.Context, q db.Q, id int64) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT user_id FROM merge_request_change_requests WHERE merge_request_id = ? AND NOT bypassed ORDER BY user_id`, id)
}

// countChangeRequests counts the requests for changes that block merge requests.
func countChangeRequests(ctx context.Context, q db.Q, ids []int64) (map[int64]int64, error) {
	type row struct{ id, n int64 }
	list, err := db.All(ctx, q, func(s db.Scanner) (r row, err error) {
		err = s.Scan(&r.id, &r.n)
		return r, err
	}, `SELECT merge_request_id, count(*) FROM merge_request_change_requests WHERE NOT bypassed AND merge_request_id IN `+db.In(len(ids))+` GROUP BY merge_request_id`, db.Any(ids)...)
	found := map[int64]int64{}
	for _, r := range list {
		found[r.id] = r.n
	}
	return found, err
}
