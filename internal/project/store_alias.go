package project

import (
	"context"
	"time"

	"svc/internal/db"
)

func scanAlias(s db.Scanner) (*Alias, error) {
	var a Alias
	err := s.Scan(&a.ID, &a.ProjectID, &a.Name)
	return &a, err
}

func listAliases(ctx context.Context, d *db.DB, p db.Paging) (db.Page[*Alias], error) {
	return db.List(ctx, d, db.Query[*Alias]{
		Columns: `a.id, a.project_id, a.name`, From: `project_aliases a`, Order: []db.Order{{Name: "a.id"}}, Scan: scanAlias,
	}, p)
}

func findAlias(ctx context.Context, q db.Q, name string) (*Alias, error) {
	return scanAlias(q.QueryRowContext(ctx, `SELECT id, project_id, name FROM project_aliases WHERE name = ?`, name))
}

func insertAlias(ctx context.Context, tx *db.Tx, a *Alias, at time.Time) error {
	return tx.QueryRowContext(ctx, `INSERT INTO project_aliases (project_id, name, created_at) VALUES (?, ?, ?) RETURNING id`,
		a.ProjectID, a.Name, at).Scan(&a.ID)
}

func deleteAlias(ctx context.Context, tx *db.Tx, id int64) error {
	return db.ExecOne(ctx, tx, `DELETE FROM project_aliases WHERE id = ?`, id)
}
