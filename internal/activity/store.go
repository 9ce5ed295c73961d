package activity

import (
	"context"
	"time"

	"svc/internal/db"
)

func insertEvent(ctx context.Context, q db.Q, e Event, push string) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO activity_events (project_id, author_id, action, target_type, target_id, target_iid, target_title, push, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		e.ProjectID, e.AuthorID, string(e.Action), e.TargetType, e.TargetID, e.TargetIID, e.TargetTitle, push, e.CreatedAt)
	return err
}

// findContributed looks at so many of a user's acts that a busy one costs no
// more than others.
func findContributed(ctx context.Context, q db.Q, userID int64, since time.Time) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT DISTINCT e.project_id FROM (SELECT project_id FROM activity_events
			WHERE author_id = ? AND created_at >= ? AND project_id IS NOT NULL AND action NOT IN ('joined', 'left', 'expired') ORDER BY id DESC LIMIT 10000) e`,
		userID, since)
}

func changeAuthor(ctx context.Context, q db.Q, from, to int64) error {
	_, err := q.ExecContext(ctx, `UPDATE activity_events SET author_id = ? WHERE author_id = ?`, to, from)
	return err
}
