package upload

import (
	"context"
	"slices"

	"svc/internal/db"
)

const columns = `f.id, f.project_id, f.secret, f.name, f.size, f.author_id, f.created_at`

func scan(s db.Scanner) (*Upload, error) {
	var u Upload
	err := s.Scan(&u.ID, &u.ProjectID, &u.Secret, &u.Name, &u.Size, &u.AuthorID, db.Time(&u.CreatedAt))
	return &u, err
}

func insert(ctx context.Context, q db.Q, u *Upload) error {
	return q.QueryRowContext(ctx, `INSERT INTO uploads (project_id, secret, name, size, author_id, created_at) VALUES (?, ?, ?, ?, ?, ?) RETURNING id`,
		u.ProjectID, u.Secret, u.Name, u.Size, u.AuthorID, u.CreatedAt).Scan(&u.ID)
}

func list(ctx context.Context, d *db.DB, projectID int64, p db.Paging) (db.Page[*Upload], error) {
	var w db.Where
	w.And(`f.project_id = ?`, projectID)
	return db.List(ctx, d, db.Query[*Upload]{
		Columns: columns, From: "uploads f", Where: w, Order: []db.Order{{Name: "f.id"}}, Desc: true, Scan: scan,
		Keys: func(u *Upload) []any { return []any{u.ID} },
	}, p)
}

func find(ctx context.Context, q db.Q, projectID, id int64, secret string) (*Upload, error) {
	return scan(q.QueryRowContext(ctx, `SELECT `+columns+` FROM uploads f WHERE f.project_id = ? AND (f.id = ? OR f.secret = ?)`, projectID, id, secret))
}

// findAll returns the files of a project among secrets.
func findAll(ctx context.Context, q db.Q, projectID int64, secrets []string) ([]*Upload, error) {
	var found []*Upload
	for part := range slices.Chunk(secrets, 500) {
		list, err := db.All(ctx, q, scan, `SELECT `+columns+` FROM uploads f WHERE f.project_id = ? AND f.secret IN `+db.In(len(part)), append([]any{projectID}, db.Any(part)...)...)
		if err != nil {
			return nil, err
		}
		found = append(found, list...)
	}
	return found, nil
}

func exists(ctx context.Context, q db.Q, projectID int64, secret string) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM uploads WHERE project_id = ? AND secret = ?`, projectID, secret)
}

func remove(ctx context.Context, q db.Q, id int64) error {
	return db.NotFound(db.ExecOne(ctx, q, `DELETE FROM uploads WHERE id = ?`, id), "File")
}

func findSecrets(ctx context.Context, q db.Q, projectID int64) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `SELECT secret FROM uploads WHERE project_id = ?`, projectID)
}
