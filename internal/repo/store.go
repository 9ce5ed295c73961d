package repo

import (
	"context"
	"time"

	"svc/internal/db"
)

func insertPush(ctx context.Context, q db.Q, projectID int64, who, what string, at time.Time) (id int64, err error) {
	err = q.QueryRowContext(ctx, `INSERT INTO pushes (project_id, actor, push, created_at) VALUES (?, ?, ?, ?) RETURNING id`,
		projectID, who, what, at).Scan(&id)
	return id, err
}

func deletePush(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM pushes WHERE id = ?`, id)
}

// leftover is a push that was begun and is not recorded.
type leftover struct {
	id, projectID int64 // of the annex, for a push to one
	who, what     string
}

func scanLeftover(s db.Scanner) (l leftover, err error) {
	err = s.Scan(&l.id, &l.projectID, &l.who, &l.what)
	return l, err
}

func findLeftovers(ctx context.Context, q db.Q, before time.Time) ([]leftover, error) {
	return db.All(ctx, q, scanLeftover, `SELECT id, project_id, actor, push FROM pushes WHERE created_at <= ? ORDER BY id LIMIT 1000`, before)
}
