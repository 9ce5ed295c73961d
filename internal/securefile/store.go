package securefile

import (
	"context"

	"svc/internal/db"
)

const columns = `f.id, f.project_id, f.name, f.size, f.sha256, f.blob, f.sealed_key, f.created_at`

func scan(sc db.Scanner) (*File, error) {
	var f File
	err := sc.Scan(&f.ID, &f.ProjectID, &f.Name, &f.Size, &f.SHA256, &f.blob, &f.sealedKey, db.Time(&f.CreatedAt))
	return &f, err
}

func find(ctx context.Context, q db.Q, projectID, id int64) (*File, error) {
	return scan(q.QueryRowContext(ctx, `SELECT `+columns+` FROM secure_files f WHERE f.project_id = ? AND f.id = ?`, projectID, id))
}

func list(ctx context.Context, d *db.DB, projectID int64, p db.Paging) (db.Page[*File], error) {
	var w db.Where
	w.And(`f.project_id = ?`, projectID)
	return db.List(ctx, d, db.Query[*File]{
		Columns: columns, From: `secure_files f`, Where: w, Order: []db.Order{{Name: "f.name"}}, Scan: scan,
		Keys: func(f *File) []any { return []any{f.Name} },
	}, p)
}

func count(ctx context.Context, q db.Q, projectID int64) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM secure_files WHERE project_id = ?`, projectID).Scan(&n)
	return n, err
}

func insert(ctx context.Context, q db.Q, f *File) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO secure_files (project_id, name, size, sha256, blob, sealed_key, created_at) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		f.ProjectID, f.Name, f.Size, f.SHA256, f.blob, f.sealedKey, f.CreatedAt).Scan(&f.ID)
}

func remove(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM secure_files WHERE id = ?`, id)
}

func blobs(ctx context.Context, q db.Q, projectID int64) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `SELECT blob FROM secure_files WHERE project_id = ?`, projectID)
}

func blobUsed(ctx context.Context, q db.Q, key string) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM secure_files WHERE blob = ?`, key)
}
