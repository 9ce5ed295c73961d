package plan

import (
	"context"

	"svc/internal/db"
)

const badgeColumns = `b.id, b.project_id, b.namespace_id, b.name, b.link_url, b.image_url, b.created_at`

func scanBadge(s db.Scanner) (*Badge, error) {
	var b Badge
	err := s.Scan(&b.ID, &b.ProjectID, &b.GroupID, &b.Name, &b.LinkURL, &b.ImageURL, db.Time(&b.CreatedAt))
	return &b, err
}

func listBadges(ctx context.Context, d *db.DB, in place, name string, p db.Paging) (db.Page[*Badge], error) {
	var w db.Where
	cond, args := in.owns("b", in.project != nil)
	w.And(cond, args...)
	if name != "" {
		w.And(`b.name = ?`, name)
	}
	return db.List(ctx, d, db.Query[*Badge]{
		Columns: badgeColumns, From: "badges b", Where: w, Order: []db.Order{{Name: "b.id"}}, Scan: scanBadge,
		Keys: func(b *Badge) []any { return []any{b.ID} },
	}, p)
}

func findBadge(ctx context.Context, q db.Q, in place, id int64, more bool) (*Badge, error) {
	cond, args := in.owns("b", more)
	return scanBadge(q.QueryRowContext(ctx, `SELECT `+badgeColumns+` FROM badges b WHERE b.id = ? AND (`+cond+`)`, append([]any{id}, args...)...))
}

func insertBadge(ctx context.Context, q db.Q, b *Badge) error {
	return q.QueryRowContext(ctx, `INSERT INTO badges (project_id, namespace_id, name, link_url, image_url, created_at) VALUES (?, ?, ?, ?, ?, ?) RETURNING id`,
		b.ProjectID, b.GroupID, b.Name, b.LinkURL, b.ImageURL, b.CreatedAt).Scan(&b.ID)
}

func saveBadge(ctx context.Context, q db.Q, b *Badge) error {
	return db.NotFound(db.ExecOne(ctx, q, `UPDATE badges SET name = ?, link_url = ?, image_url = ? WHERE id = ?`, b.Name, b.LinkURL, b.ImageURL, b.ID), "Badge")
}

func deleteBadge(ctx context.Context, q db.Q, id int64) error {
	return db.NotFound(db.ExecOne(ctx, q, `DELETE FROM badges WHERE id = ?`, id), "Badge")
}
