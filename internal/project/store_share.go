package project

import (
	"context"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
)

// insertShare inserts a share. Conflict if the group is invited already.
func insertShare(ctx context.Context, q db.Q, in source, h *Share, now time.Time) error {
	namespaceID, projectID := in.ids()
	err := q.QueryRowContext(ctx, `
		INSERT INTO group_shares (namespace_id, project_id, group_id, access_level, expires_at, created_at) VALUES (?, ?, ?, ?, ?, ?) RETURNING id`,
		namespaceID, projectID, h.GroupID, int64(h.Level), db.NullText(h.ExpiresAt), now).Scan(&h.ID)
	if db.IsUnique(err, "group_shares_namespace_id_group_id") || db.IsUnique(err, "group_shares_project_id_group_id") {
		return errs.Conflict("Group has already been invited")
	}
	return err
}

// countShares counts the groups invited to a group or a project.
func countShares(ctx context.Context, q db.Q, in source) (n int, err error) {
	column, id := in.column()
	return n, q.QueryRowContext(ctx, `SELECT count(*) FROM group_shares m WHERE `+column+` = ?`, id).Scan(&n)
}

// findShare returns the ID of the share of a source with a group, and the path of
// the group.
func findShare(ctx context.Context, q db.Q, in source, groupID int64) (id int64, path string, level Level, err error) {
	column, sourceID := in.column()
	err = q.QueryRowContext(ctx, `SELECT s.id, n.full_path, s.access_level FROM group_shares s JOIN namespaces n ON n.id = s.group_id
		WHERE s`+column[1:]+` = ? AND s.group_id = ?`, sourceID, groupID).Scan(&id, &path, (*int64)(&level))
	return id, path, level, err
}

// findShares returns the shares of a source that have not expired.
func findShares(ctx context.Context, q db.Q, in source, today string) ([]Share, error) {
	column, id := in.column()
	return db.All(ctx, q, func(sc db.Scanner) (Share, error) {
		h := Share{SourceID: id}
		err := sc.Scan(&h.ID, &h.GroupID, &h.GroupName, &h.GroupPath, (*int64)(&h.Level), &h.ExpiresAt)
		return h, err
	}, `SELECT s.id, s.group_id, n.name, n.full_path, s.access_level, COALESCE(s.expires_at, '')
		FROM group_shares s JOIN namespaces n ON n.id = s.group_id
		WHERE s`+column[1:]+` = ? AND `+activeShare+` ORDER BY s.id`, id, today)
}

func deleteShare(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM group_shares WHERE id = ?`, id)
}

func deleteExpiredShares(ctx context.Context, q db.Q, today string) error {
	_, err := q.ExecContext(ctx, `DELETE FROM group_shares WHERE expires_at <= ?`, today)
	return err
}

// onlyRelated limits w to the ancestor groups of a project and, if requested, the
// groups that it is shared with.
func onlyRelated(w *db.Where, p *Project, f RelatedFilter, today string) {
	cond, args := `n.id IN (SELECT t.ancestor_id FROM namespace_tree t WHERE t.descendant_id = ?)`, []any{p.NamespaceID}
	if f.Shared {
		cond = anyOf(cond, `n.id IN (SELECT s.group_id FROM group_shares s WHERE s.project_id = ? AND s.access_level >= ? AND `+activeShare+`)`)
		args = append(args, p.ID, int64(f.SharedMin), today)
	}
	w.And(cond, args...)
}

// onlyInvited limits w to the groups that the source is shared with, directly, by
// inheritance, or both.
func onlyInvited(w *db.Where, in source, least Level, direct, inherited bool, today string) {
	var conds []string
	var args []any
	if direct {
		column, id := in.column()
		conds, args = append(conds, "s"+column[1:]+" = ?"), append(args, id)
	}
	if inherited {
		at, project := in.tree()
		conds = append(conds, `s.namespace_id IN (SELECT t.ancestor_id FROM namespace_tree t WHERE t.descendant_id = ? AND (t.depth > 0 OR ?))`)
		args = append(args, at, project != 0)
	}
	w.And(`n.id IN (SELECT s.group_id FROM group_shares s WHERE s.access_level >= ? AND `+activeShare+` AND (`+anyOf(conds...)+`))`,
		append([]any{int64(least), today}, args...)...)
}
