package errortrack

import (
	"context"
	"time"

	"svc/internal/db"
)

const setupColumns = `id, project_id, active, integrated, project_name, external_url, api_url, token, updated_at`

func scanSetup(sc db.Scanner) (*Setup, error) {
	var s Setup
	err := sc.Scan(&s.ID, &s.ProjectID, &s.Active, &s.Integrated, &s.External.ProjectName, &s.External.URL, &s.External.APIURL, &s.token, db.Time(&s.UpdatedAt))
	return &s, err
}

func findSetup(ctx context.Context, q db.Q, projectID int64) (*Setup, error) {
	return scanSetup(q.QueryRowContext(ctx, `SELECT `+setupColumns+` FROM error_settings WHERE project_id = ?`, projectID))
}

func saveSetup(ctx context.Context, q db.Q, s *Setup) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO error_settings (project_id, active, integrated, project_name, external_url, api_url, token, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (project_id) DO UPDATE SET active = excluded.active, integrated = excluded.integrated, project_name = excluded.project_name,
			external_url = excluded.external_url, api_url = excluded.api_url, token = excluded.token, updated_at = excluded.updated_at
		RETURNING id`,
		s.ProjectID, s.Active, s.Integrated, s.External.ProjectName, s.External.URL, s.External.APIURL, s.token, s.UpdatedAt).Scan(&s.ID)
}

func scanKey(sc db.Scanner) (*Key, error) {
	var k Key
	err := sc.Scan(&k.ID, &k.ProjectID, &k.Active, &k.sealed, db.Time(&k.CreatedAt))
	return &k, err
}

func listKeys(ctx context.Context, d *db.DB, projectID int64, p db.Paging) (db.Page[*Key], error) {
	var w db.Where
	w.And(`k.project_id = ?`, projectID)
	return db.List(ctx, d, db.Query[*Key]{
		Columns: `k.id, k.project_id, k.active, k.sealed, k.created_at`, From: `error_keys k`, Where: w,
		Order: []db.Order{{Name: "k.id"}}, Scan: scanKey, Keys: func(k *Key) []any { return []any{k.ID} },
	}, p)
}

func countKeys(ctx context.Context, q db.Q, projectID int64) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM error_keys WHERE project_id = ?`, projectID).Scan(&n)
	return n, err
}

func insertKey(ctx context.Context, q db.Q, k *Key, digest string) error {
	return q.QueryRowContext(ctx, `INSERT INTO error_keys (project_id, active, digest, sealed, created_at) VALUES (?, ?, ?, ?, ?) RETURNING id`,
		k.ProjectID, k.Active, digest, k.sealed, k.CreatedAt).Scan(&k.ID)
}

func turnKey(ctx context.Context, q db.Q, projectID, id int64, active bool) error {
	return db.ExecOne(ctx, q, `UPDATE error_keys SET active = ? WHERE id = ? AND project_id = ?`, active, id, projectID)
}

func deleteKey(ctx context.Context, q db.Q, projectID, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM error_keys WHERE id = ? AND project_id = ?`, id, projectID)
}

// findSender finds an active key of a project p with integrated error tracking that
// meets the condition.
func findSender(ctx context.Context, q db.Q, monitored string, projectID int64, digest string) (id int64, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT k.id FROM error_keys k
		JOIN error_settings s ON s.project_id = k.project_id
		JOIN projects p ON p.id = k.project_id
		WHERE k.digest = ? AND k.project_id = ? AND k.active AND s.active AND s.integrated AND p.deleted_at IS NULL AND NOT p.archived AND `+monitored,
		digest, projectID).Scan(&id)
	return id, err
}

// deleteUnseen deletes errors that have not occurred since a time. The condition
// is repeated in the outer statement, because on PostgreSQL a concurrent
// occurrence is only rechecked there.
func deleteUnseen(ctx context.Context, q db.Q, before time.Time, limit int) (int64, error) {
	return db.ExecCount(ctx, q, `
		DELETE FROM errors WHERE last_seen_at < ? AND id IN (SELECT id FROM errors WHERE last_seen_at < ? ORDER BY last_seen_at LIMIT ?)`, before, before, limit)
}

// crowded returns the projects that have more than limit errors.
func crowded(ctx context.Context, q db.Q, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT project_id FROM errors GROUP BY project_id HAVING count(*) > ?`, limit)
}

// deleteBeyond deletes up to limit errors of a project beyond the keep most recent
// ones.
func deleteBeyond(ctx context.Context, q db.Q, projectID int64, keep, limit int) (int64, error) {
	return db.ExecCount(ctx, q, `
		DELETE FROM errors WHERE id IN (SELECT id FROM errors WHERE project_id = ? ORDER BY last_seen_at DESC, id DESC LIMIT ? OFFSET ?)`, projectID, limit, keep)
}

func deleteSeen(ctx context.Context, q db.Q, before time.Time, most int) (int64, error) {
	return db.ExecCount(ctx, q, `
		DELETE FROM error_seen WHERE (project_id, event_id) IN (SELECT project_id, event_id FROM error_seen WHERE seen_at < ? LIMIT ?)`, before, most)
}

func deleteHours(ctx context.Context, q db.Q, before int64, most int) (int64, error) {
	return db.ExecCount(ctx, q, `DELETE FROM error_hours WHERE (error_id, hour) IN (SELECT error_id, hour FROM error_hours WHERE hour < ? LIMIT ?)`, before, most)
}
