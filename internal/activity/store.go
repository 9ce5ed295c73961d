package activity

import (
	"context"

	"svc/internal/db"
)

func insertEvent(ctx context.Context, q db.Q, e Event, push string) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO activity_events (project_id, author_id, action, target_type, target_id, target_iid, target_title, push, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		e.ProjectID, e.AuthorID, string(e.Action), e.TargetType, e.TargetID, e.TargetIID, e.TargetTitle, push, e.CreatedAt)
	return err
}

func changeAuthor(ctx context.Context, q db.Q, from, to int64) error {
	_, err := q.ExecContext(ctx, `UPDATE activity_events SET author_id = ? WHERE author_id = ?`, to, from)
	return err
}
