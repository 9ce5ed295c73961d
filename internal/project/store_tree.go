package project

import (
	"context"
	"time"

	"svc/internal/db"
	"svc/internal/user"
)

// findTree returns a group and its descendants with their full paths.
func findTree(ctx context.Context, q db.Q, id int64) ([]Branch, error) {
	return db.All(ctx, q, func(s db.Scanner) (b Branch, err error) {
		err = s.Scan(&b.ID, &b.Path)
		return b, err
	}, `SELECT n.id, n.full_path FROM namespaces n WHERE n.deleted_at IS NULL AND n.id IN `+below, id)
}

// lasting selects the memberships m of human users u that have not expired.
const lasting = `members m JOIN users u ON u.id = m.user_id WHERE u.kind = 'human' AND u.deleted_at IS NULL AND ` + activeMember

func eachMember(ctx context.Context, q db.Q, in source, today string, f func(*Member) error) error {
	column, id := "m.namespace_id", int64(0)
	if in.project != nil {
		column, id = "m.project_id", in.project.ID
	} else {
		id = in.group.ID
	}
	return db.Each(ctx, q, func(s db.Scanner) (*Member, error) {
		m := &Member{User: &user.User{}}
		err := s.Scan(&m.ID, &m.UserID, (*int64)(&m.Level), &m.ExpiresAt, db.Time(&m.CreatedAt),
			&m.User.Username, &m.User.Name, &m.User.Email, db.NullTime(&m.User.ConfirmedAt))
		return m, err
	}, f, `SELECT m.id, m.user_id, m.access_level, COALESCE(m.expires_at, ''), m.created_at, u.username, u.name, u.email, u.confirmed_at
		FROM `+lasting+` AND `+column+` = ? ORDER BY m.id`, today, id)
}

func countMembers(ctx context.Context, q db.Q, id int64, today string) (n int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM `+lasting+` AND m.namespace_id IN `+below, today, id).Scan(&n)
	return n, err
}

// hideGroup hides a group that was just created.
func hideGroup(ctx context.Context, q db.Q, n *Namespace) error {
	return db.ExecOne(ctx, q, `UPDATE namespaces SET deleted_at = ? WHERE id = ?`, n.CreatedAt, n.ID)
}

func saveDraftAvatar(ctx context.Context, q db.Q, id int64, name string) error {
	return db.ExecOne(ctx, q, `UPDATE namespaces SET avatar = ? WHERE id = ? AND deleted_at IS NOT NULL`, name, id)
}

func findDraft(ctx context.Context, q db.Q, id int64) (*Namespace, error) {
	return scanNamespace(q.QueryRowContext(ctx, `SELECT `+namespaceColumns+` FROM namespaces n WHERE n.id = ? AND n.deleted_at IS NOT NULL`, id))
}

// draftDepth returns the depth of the groups in a draft.
func draftDepth(ctx context.Context, q db.Q, id int64) (depth int, err error) {
	err = q.QueryRowContext(ctx, `SELECT max(t.depth) FROM namespace_tree t WHERE t.ancestor_id = ?`, id).Scan(&depth)
	return depth, err
}

// showDraft makes a draft and its descendants visible.
func showDraft(ctx context.Context, q db.Q, n *Namespace) error {
	err := db.ExecOne(ctx, q, `UPDATE namespaces SET parent_id = ?, path = ?, name = ?, updated_at = ? WHERE id = ? AND deleted_at IS NOT NULL`,
		n.ParentID, n.Path, n.Name, n.UpdatedAt, n.ID)
	if err != nil {
		return taken(err)
	}
	_, err = q.ExecContext(ctx, `UPDATE namespaces SET visibility = ?, deleted_at = NULL WHERE id IN `+below, string(n.Visibility), n.ID)
	return err
}

// saveGroupOwner makes a user an Owner of a group without expiration, replacing
// any other membership.
func saveGroupOwner(ctx context.Context, q db.Q, m *Member, groupID int64) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO members (namespace_id, user_id, access_level, created_by, created_at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (namespace_id, user_id) DO UPDATE SET access_level = excluded.access_level, expires_at = NULL, requested_at = NULL`,
		groupID, m.UserID, int64(Owner), m.UserID, m.CreatedAt)
	return err
}

// widerThan are the visibilities that are wider than another one, as a list in SQL.
var widerThan = map[Visibility]string{Private: `('internal', 'public')`, Internal: `('public')`}

// findWiderBelow returns the projects in a group that are more visible than a limit
// narrower than public, without those that are marked for deletion.
func findWiderBelow(ctx context.Context, q db.Q, groupID int64, limit Visibility) ([]*Project, error) {
	return db.All(ctx, q, scanProject, `SELECT `+projectColumns+` FROM `+projectTables+`
		WHERE p.visibility IN `+widerThan[limit]+` AND p.deleted_at IS NULL AND p.namespace_id IN `+below+` ORDER BY p.id`, groupID)
}

// lowerGroups reduces the visibility of a group and its subgroups to a limit narrower
// than public, also of those that are marked for deletion.
func lowerGroups(ctx context.Context, q db.Q, id int64, limit Visibility, at time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE namespaces SET visibility = ?, updated_at = ? WHERE visibility IN `+widerThan[limit]+` AND id IN `+below, string(limit), at, id)
	return err
}

// widerBelow reports whether something in a group is more visible than the group.
func widerBelow(ctx context.Context, q db.Q, n *Namespace) (bool, error) {
	wider := widerThan[n.Visibility]
	if wider == "" {
		return false, nil
	}
	return db.Exists(ctx, q, `
		SELECT 1 FROM namespaces n WHERE n.visibility IN `+wider+` AND n.deleted_at IS NULL AND n.id <> ? AND n.id IN `+below+`
		UNION ALL
		SELECT 1 FROM projects p WHERE p.visibility IN `+wider+` AND p.deleted_at IS NULL AND p.namespace_id IN `+below+` LIMIT 1`,
		n.ID, n.ID, n.ID)
}

// isBelow reports whether a namespace is equal to or below another one.
func isBelow(ctx context.Context, q db.Q, id, above int64) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM namespace_tree t WHERE t.ancestor_id = ? AND t.descendant_id = ?`, above, id)
}

// depthBelow returns the depth of a group's subtree plus the depth of its new
// parent.
func depthBelow(ctx context.Context, q db.Q, id, parentID int64) (depth int, err error) {
	err = q.QueryRowContext(ctx, `SELECT COALESCE(MAX(t.depth), 0) + (SELECT COALESCE(MAX(a.depth), 0) FROM namespace_tree a WHERE a.descendant_id = ?)
		FROM namespace_tree t WHERE t.ancestor_id = ?`, parentID, id).Scan(&depth)
	return depth, err
}

// hideNewProject hides a project that was just created.
func hideNewProject(ctx context.Context, q db.Q, p *Project) error {
	return db.ExecOne(ctx, q, `UPDATE projects SET deleted_at = ? WHERE id = ?`, p.CreatedAt, p.ID)
}

// findDraftProject returns the draft of a project. ErrNoRows.
func findDraftProject(ctx context.Context, q db.Q, id int64) (*Project, error) {
	return scanProject(q.QueryRowContext(ctx, `SELECT `+projectColumns+` FROM `+projectTables+`
		WHERE p.id = ? AND p.deleted_at IS NOT NULL AND p.import_type = '`+FromFile+`' AND p.import_status = 'started' AND n.deleted_at IS NULL`, id))
}

func showProject(ctx context.Context, q db.Q, p *Project) error {
	return db.ExecOne(ctx, q, `UPDATE projects SET deleted_at = NULL, import_status = ?, created_at = ? WHERE id = ? AND deleted_at IS NOT NULL`,
		string(ImportFinished), p.CreatedAt, p.ID)
}

// freeDraftPath marks the import of a draft as failed, so that it cannot be shown,
// and makes its path available.
func freeDraftPath(ctx context.Context, q db.Q, id int64, suffix string) error {
	return db.ExecOne(ctx, q, `UPDATE projects SET import_status = ?, path = path || ?, full_path = full_path || ? WHERE id = ? AND deleted_at IS NOT NULL`,
		string(ImportFailed), suffix, suffix, id)
}

func saveDraftProjectAvatar(ctx context.Context, q db.Q, id int64, name string) error {
	return db.ExecOne(ctx, q, `UPDATE projects SET avatar = ? WHERE id = ? AND deleted_at IS NOT NULL`, name, id)
}
