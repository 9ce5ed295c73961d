package project

import (
	"context"
	"time"

	"svc/internal/db"
)

// Conditions on projects p and groups n that are marked for deletion and not in a
// group that is hidden.
const (
	projectMarked = `p.marked_for_deletion_at IS NOT NULL
		AND EXISTS (SELECT 1 FROM namespaces o WHERE o.id = p.namespace_id AND o.deleted_at IS NULL)`
	groupMarked = `n.marked_for_deletion_at IS NOT NULL
		AND (n.parent_id IS NULL OR EXISTS (SELECT 1 FROM namespaces o WHERE o.id = n.parent_id AND o.deleted_at IS NULL))`
)

// maxDue is the maximum number of projects, and of groups, that one run of
// DeleteMarked deletes.
const maxDue = 500

func findMarkedProject(ctx context.Context, q db.Q, ref Ref) (*Project, error) {
	cond, arg := `lower(p.full_path) = lower(?)`, any(string(ref))
	if id, ok := ref.id(); ok {
		cond, arg = `p.id = ?`, id
	}
	p, err := scanProject(q.QueryRowContext(ctx, `SELECT `+projectColumns+` FROM `+projectTables+` WHERE `+cond+` AND `+projectMarked, arg))
	return p, db.NotFound(err, "Project")
}

func findMarkedGroup(ctx context.Context, q db.Q, ref Ref) (*Namespace, error) {
	cond, arg := `lower(n.full_path) = lower(?)`, any(string(ref))
	if id, ok := ref.id(); ok {
		cond, arg = `n.id = ?`, id
	}
	n, err := scanNamespace(q.QueryRowContext(ctx, `SELECT `+namespaceColumns+` FROM namespaces n WHERE `+cond+` AND `+groupMarked, arg))
	return n, db.NotFound(err, "Group")
}

func findMarkedProjectsBefore(ctx context.Context, q db.Q, before time.Time) ([]*Project, error) {
	return db.All(ctx, q, scanProject, `SELECT `+projectColumns+` FROM `+projectTables+`
		WHERE p.marked_for_deletion_at <= ? ORDER BY p.marked_for_deletion_at, p.id LIMIT ?`, before, maxDue)
}

func findMarkedGroupsBefore(ctx context.Context, q db.Q, before time.Time) ([]*Namespace, error) {
	return db.All(ctx, q, scanNamespace, `SELECT `+namespaceColumns+` FROM namespaces n
		WHERE n.marked_for_deletion_at <= ? ORDER BY n.marked_for_deletion_at, n.id LIMIT ?`, before, maxDue)
}

// markProject hides a project and frees its path. ErrNoRows if it is hidden
// already.
func markProject(ctx context.Context, q db.Q, id int64, suffix string, now time.Time) error {
	return db.ExecOne(ctx, q, `
		UPDATE projects SET deleted_at = ?, marked_for_deletion_at = ?, updated_at = ?, path = path || ?, full_path = full_path || ?, name = name || ?
		WHERE id = ? AND deleted_at IS NULL`, now, now, now, suffix, suffix, suffix, id)
}

// unmarkProject prevents a hidden project from being restored.
func unmarkProject(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `UPDATE projects SET marked_for_deletion_at = NULL WHERE id = ? AND marked_for_deletion_at IS NOT NULL`, id)
}

func restoreProject(ctx context.Context, q db.Q, id int64, path, name, fullPath string, now time.Time) error {
	return taken(db.ExecOne(ctx, q, `
		UPDATE projects SET deleted_at = NULL, marked_for_deletion_at = NULL, updated_at = ?, path = ?, name = ?, full_path = ?
		WHERE id = ? AND marked_for_deletion_at IS NOT NULL`, now, path, name, fullPath, id))
}

// hasReadOnly reports whether a project in a group or its descendants is read-only
// because its repository is being moved.
func hasReadOnly(ctx context.Context, q db.Q, id int64) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM projects p WHERE p.read_only AND p.deleted_at IS NULL AND p.namespace_id IN `+below+` LIMIT 1`, id)
}

// markGroups hides a group and everything in it that is not hidden already, and
// renames the group. ErrNoRows if it is hidden already.
func markGroups(ctx context.Context, q db.Q, id int64, suffix string, now time.Time) error {
	err := db.ExecOne(ctx, q, `
		UPDATE namespaces SET deleted_at = ?, marked_for_deletion_at = ?, updated_at = ?, path = path || ?, name = name || ?
		WHERE id = ? AND deleted_at IS NULL`, now, now, now, suffix, suffix, id)
	if err != nil {
		return err
	}
	for _, table := range []string{"namespaces SET deleted_at = ?, deletion_group_id = ? WHERE id IN ", "projects SET deleted_at = ?, deletion_group_id = ? WHERE namespace_id IN "} {
		if _, err := q.ExecContext(ctx, `UPDATE `+table+below+` AND deleted_at IS NULL`, now, id, id); err != nil {
			return err
		}
	}
	return nil
}

// unmarkGroup prevents a hidden group from being restored.
func unmarkGroup(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `UPDATE namespaces SET marked_for_deletion_at = NULL WHERE id = ? AND marked_for_deletion_at IS NOT NULL`, id)
}

// restoreGroups makes a group, and everything that was hidden with it, visible
// again.
func restoreGroups(ctx context.Context, q db.Q, id int64, path, name string, now time.Time) error {
	err := db.ExecOne(ctx, q, `
		UPDATE namespaces SET deleted_at = NULL, marked_for_deletion_at = NULL, updated_at = ?, path = ?, name = ?
		WHERE id = ? AND marked_for_deletion_at IS NOT NULL`, now, path, name, id)
	if err != nil {
		return taken(err)
	}
	for _, table := range []string{"namespaces", "projects"} {
		if _, err := q.ExecContext(ctx, `UPDATE `+table+` SET deleted_at = NULL, deletion_group_id = NULL WHERE deletion_group_id = ?`, id); err != nil {
			return err
		}
	}
	return nil
}

// Marked is a filter on the deletion state.
type Marked int

// The states of deletion.
const (
	NotMarked  Marked = iota
	WithMarked        // include objects that are marked for deletion, for Owners
	OnlyMarked        // only objects that are marked for deletion, for Owners
)

// present adds the condition on the deletion state of projects p.
func (f Filter) present(w *db.Where, member string, args []any) {
	f.Marked.match(w, `p`, projectMarked, f.MarkedOn, member, args)
	switch {
	case f.Active == nil:
	case *f.Active:
		w.And(`NOT p.archived AND p.deleted_at IS NULL`)
	default:
		w.And(`p.archived OR p.deleted_at IS NOT NULL`)
	}
}

// match adds the condition on the deletion state of the rows of a table, which is
// given by its alias and the condition that a row is marked. on is the day of the
// deletion; nil for all. Marked rows must match the condition member as well, if it
// is not empty.
func (m Marked) match(w *db.Where, alias, marked string, on *time.Time, member string, args []any) {
	if member != "" {
		marked += ` AND (` + member + `)`
	}
	present := alias + `.deleted_at IS NULL`
	switch {
	case m == OnlyMarked || on != nil:
		w.And(marked, args...)
	case m == WithMarked:
		w.And(anyOf(present, marked), args...)
	default:
		w.And(present)
	}
	if on != nil {
		at := alias + `.marked_for_deletion_at`
		w.And(at+` >= ? AND `+at+` < ?`, *on, on.AddDate(0, 0, 1))
	}
}
