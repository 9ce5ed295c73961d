package alert

import (
	"context"
	"time"

	"svc/internal/db"
)

const (
	imageColumns = `m.id, m.alert_id, a.project_id, m.secret, m.name, m.url, m.url_text, m.created_at`
	imageTables  = `alert_metric_images m JOIN alerts a ON a.id = m.alert_id`
)

func scanImage(s db.Scanner) (*MetricImage, error) {
	var m MetricImage
	err := s.Scan(&m.ID, &m.alertID, &m.projectID, &m.secret, &m.Name, &m.URL, &m.URLText, db.Time(&m.CreatedAt))
	return &m, err
}

func insertImage(ctx context.Context, q db.Q, m *MetricImage) error {
	return q.QueryRowContext(ctx, `INSERT INTO alert_metric_images (alert_id, secret, name, url, url_text, created_at) VALUES (?, ?, ?, ?, ?, ?) RETURNING id`,
		m.alertID, m.secret, m.Name, m.URL, m.URLText, m.CreatedAt).Scan(&m.ID)
}

func listImages(ctx context.Context, d *db.DB, alertID int64, p db.Paging) (db.Page[*MetricImage], error) {
	var w db.Where
	w.And(`m.alert_id = ?`, alertID)
	return db.List(ctx, d, db.Query[*MetricImage]{
		Columns: imageColumns, From: imageTables, Where: w, Order: []db.Order{{Name: "m.id"}}, Scan: scanImage,
		Keys: func(m *MetricImage) []any { return []any{m.ID} },
	}, p)
}

func countImages(ctx context.Context, q db.Q, alertID int64) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM alert_metric_images WHERE alert_id = ?`, alertID).Scan(&n)
	return n, err
}

func findImage(ctx context.Context, q db.Q, id int64) (*MetricImage, error) {
	return scanImage(q.QueryRowContext(ctx, `SELECT `+imageColumns+` FROM `+imageTables+` WHERE m.id = ?`, id))
}

func findProjectImages(ctx context.Context, q db.Q, projectID int64) ([]*MetricImage, error) {
	return db.All(ctx, q, scanImage, `SELECT `+imageColumns+` FROM `+imageTables+` WHERE a.project_id = ?`, projectID)
}

func findImagesOf(ctx context.Context, q db.Q, alertIDs []int64) ([]*MetricImage, error) {
	return db.All(ctx, q, scanImage, `SELECT `+imageColumns+` FROM `+imageTables+` WHERE m.alert_id IN `+db.In(len(alertIDs)), db.Any(alertIDs)...)
}

func saveImage(ctx context.Context, q db.Q, m *MetricImage) error {
	return db.NotFound(db.ExecOne(ctx, q, `UPDATE alert_metric_images SET url = ?, url_text = ? WHERE id = ?`, m.URL, m.URLText, m.ID), "Metric image")
}

func imageExists(ctx context.Context, q db.Q, alertID int64, secret string) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM alert_metric_images WHERE alert_id = ? AND secret = ?`, alertID, secret)
}

func deleteImage(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM alert_metric_images WHERE id = ?`, id)
}

// findOver returns alerts that are resolved or ignored and have not changed since a
// time.
func findOver(ctx context.Context, q db.Q, before time.Time, most int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT id FROM alerts WHERE status IN ('resolved', 'ignored') AND updated_at < ? ORDER BY updated_at LIMIT ?`, before, most)
}
