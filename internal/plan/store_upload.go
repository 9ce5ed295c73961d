package plan

import (
	"context"

	"svc/internal/db"
)

const uploadColumns = `f.id, f.project_id, f.secret, f.name, f.size, f.author_id, f.created_at`

func scanUpload(s db.Scanner) (*Upload, error) {
	var u Upload
	err := s.Scan(&u.ID, &u.ProjectID, &u.Secret, &u.Name, &u.Size, &u.AuthorID, db.Time(&u.CreatedAt))
	return &u, err
}

func insertUpload(ctx context.Context, q db.Q, u *Upload) error {
	return q.QueryRowContext(ctx, `INSERT INTO uploads (project_id, secret, name, size, author_id, created_at) VALUES (?, ?, ?, ?, ?, ?) RETURNING id`,
		u.ProjectID, u.Secret, u.Name, u.Size, u.AuthorID, u.CreatedAt).Scan(&u.ID)
}

func listUploads(ctx context.Context, d *db.DB, projectID int64, p db.Paging) (db.Page[*Upload], error) {
	var w db.Where
	w.And(`f.project_id = ?`, projectID)
	return db.List(ctx, d, db.Query[*Upload]{
		Columns: uploadColumns, From: "uploads f", Where: w, Order: []db.Order{{Name: "f.id"}}, Desc: true, Scan: scanUpload,
		Keys: func(u *Upload) []any { return []any{u.ID} },
	}, p)
}

func findUpload(ctx context.Context, q db.Q, projectID, id int64, secret string) (*Upload, error) {
	return scanUpload(q.QueryRowContext(ctx, `SELECT `+uploadColumns+` FROM uploads f WHERE f.project_id = ? AND (f.id = ? OR f.secret = ?)`, projectID, id, secret))
}

func deleteUpload(ctx context.Context, q db.Q, id int64) error {
	return db.NotFound(db.ExecOne(ctx, q, `DELETE FROM uploads WHERE id = ?`, id), "File")
}

func findSecrets(ctx context.Context, q db.Q, projectID int64) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `SELECT secret FROM uploads WHERE project_id = ?`, projectID)
}
