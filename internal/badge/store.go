package badge

import (
	"context"

	"svc/internal/db"
)

const columns = `b.id, b.project_id, b.namespace_id, b.name, b.link_url, b.image_url, b.created_at`

func scan(s db.Scanner) (*Badge, error) {
	var b Badge
	err := s.Scan(&b.ID, &b.ProjectID, &b.GroupID, &b.Name, &b.LinkURL, &b.ImageURL, db.Time(&b.CreatedAt))
	return &b, err
}

// has returns the condition on badges b of the owner itself and, with inherited,
// of the groups above it.
func (o owner) has(inherited bool) (string, []any) {
	cond, id, tree := `b.namespace_id = ?`, int64(0), int64(0)
	if o.project != nil {
		cond, id, tree = `b.project_id = ?`, o.project.ID, o.project.NamespaceID
	} else {
		id, tree = o.group.ID, o.group.ID
	}
	if !inherited {
		return cond, []any{id}
	}
	return cond + ` OR b.namespace_id IN (SELECT t.ancestor_id FROM namespace_tree t WHERE t.descendant_id = ?)`, []any{id, tree}
}

func list(ctx context.Context, d *db.DB, in owner, name string, p db.Paging) (db.Page[*Badge], error) {
	var w db.Where
	cond, args := in.has(in.project != nil)
	w.And(cond, args...)
	if name != "" {
		w.And(`b.name = ?`, name)
	}
	return db.List(ctx, d, db.Query[*Badge]{
		Columns: columns, From: "badges b", Where: w, Order: []db.Order{{Name: "b.id"}}, Scan: scan,
		Keys: func(b *Badge) []any { return []any{b.ID} },
	}, p)
}

func find(ctx context.Context, q db.Q, in owner, id int64, more bool) (*Badge, error) {
	cond, args := in.has(more)
	return scan(q.QueryRowContext(ctx, `SELECT `+columns+` FROM badges b WHERE b.id = ? AND (`+cond+`)`, append([]any{id}, args...)...))
}

func insert(ctx context.Context, q db.Q, b *Badge) error {
	return q.QueryRowContext(ctx, `INSERT INTO badges (project_id, namespace_id, name, link_url, image_url, created_at) VALUES (?, ?, ?, ?, ?, ?) RETURNING id`,
		b.ProjectID, b.GroupID, b.Name, b.LinkURL, b.ImageURL, b.CreatedAt).Scan(&b.ID)
}

func save(ctx context.Context, q db.Q, b *Badge) error {
	return db.NotFound(db.ExecOne(ctx, q, `UPDATE badges SET name = ?, link_url = ?, image_url = ? WHERE id = ?`, b.Name, b.LinkURL, b.ImageURL, b.ID), "Badge")
}

func remove(ctx context.Context, q db.Q, id int64) error {
	return db.NotFound(db.ExecOne(ctx, q, `DELETE FROM badges WHERE id = ?`, id), "Badge")
}

func countGroup(ctx context.Context, q db.Q, groupID int64) (n int64, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT count(*) FROM badges WHERE namespace_id IN (SELECT t.descendant_id FROM namespace_tree t WHERE t.ancestor_id = ?)`, groupID).Scan(&n)
	return n, err
}

func eachOf(ctx context.Context, q db.Q, in owner, f func(*Badge) error) error {
	cond, args := in.has(false)
	return db.Each(ctx, q, scan, f, `SELECT `+columns+` FROM badges b WHERE `+cond+` ORDER BY b.id`, args...)
}
