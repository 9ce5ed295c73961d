package repo

import (
	"context"

	"svc/internal/db"
	"svc/internal/project"
)

const protectedColumns = `r.id, COALESCE(r.project_id, 0), COALESCE(r.namespace_id, 0), r.kind, r.name, r.allow_force_push, r.code_owner_approval, r.created_at`

func scanProtected(s db.Scanner) (*Protected, error) {
	var p Protected
	err := s.Scan(&p.ID, &p.ProjectID, &p.GroupID, &p.Kind, &p.Name, &p.AllowForcePush, &p.CodeOwnerApproval, db.Time(&p.CreatedAt))
	return &p, err
}

// listProtected reads one page of the rules of a project and of its groups. A
// project has at most maxRules of its own, so the search needs no index.
func listProtected(ctx context.Context, d *db.DB, p *project.Project, kind RefKind, search string, pg db.Paging) (db.Page[*Protected], error) {
	var w db.Where
	w.And(`r.id IN (
		SELECT o.id FROM protected_refs o WHERE o.project_id = ? AND o.kind = ?
		UNION ALL SELECT g.id FROM namespace_tree t JOIN protected_refs g ON g.namespace_id = t.ancestor_id WHERE t.descendant_id = ? AND g.kind = ?)`,
		p.ID, kind, p.NamespaceID, kind)
	return pageProtected(ctx, d, w, search, pg)
}

func listGroupProtected(ctx context.Context, d *db.DB, groupID int64, kind RefKind, search string, pg db.Paging) (db.Page[*Protected], error) {
	var w db.Where
	w.And("r.namespace_id = ? AND r.kind = ?", groupID, kind)
	return pageProtected(ctx, d, w, search, pg)
}

// pageProtected reads one page of rules: those of projects before those of groups.
func pageProtected(ctx context.Context, d *db.DB, w db.Where, search string, pg db.Paging) (db.Page[*Protected], error) {
	if search != "" {
		w.And(`fold(r.name) LIKE ? ESCAPE '\'`, db.Like(search))
	}
	return db.List(ctx, d, db.Query[*Protected]{
		Columns: protectedColumns, From: "protected_refs r", Where: w, Order: []db.Order{{Name: "COALESCE(r.namespace_id, 0)"}, {Name: "r.id"}}, Scan: scanProtected,
		Keys: func(p *Protected) []any { return []any{p.GroupID, p.ID} },
	}, pg)
}

// allProtected returns all rules of a project and of its groups, without their
// entries.
func allProtected(ctx context.Context, q db.Q, projectID int64) ([]*Protected, error) {
	return db.All(ctx, q, scanProtected, `
		SELECT `+protectedColumns+` FROM protected_refs r WHERE r.project_id = ?
		UNION ALL
		SELECT `+protectedColumns+` FROM projects p
			JOIN namespace_tree t ON t.descendant_id = p.namespace_id JOIN protected_refs r ON r.namespace_id = t.ancestor_id
		WHERE p.id = ?
		ORDER BY 1`, projectID, projectID)
}

// where is a condition on the owner of rules r.
func (o ruleOwner) where() (string, int64) {
	if o.groupID != 0 {
		return `r.namespace_id = ?`, o.groupID
	}
	return `r.project_id = ?`, o.projectID
}

func findProtected(ctx context.Context, q db.Q, of ruleOwner, kind RefKind, name string) (*Protected, error) {
	cond, id := of.where()
	return scanProtected(q.QueryRowContext(ctx, `
		SELECT `+protectedColumns+` FROM protected_refs r WHERE `+cond+` AND r.kind = ? AND r.name = ?`, id, kind, name))
}

// findInherited returns the rule of the topmost group of a namespace that has one
// with the name.
func findInherited(ctx context.Context, q db.Q, namespaceID int64, kind RefKind, name string) (*Protected, error) {
	return scanProtected(q.QueryRowContext(ctx, `
		SELECT `+protectedColumns+` FROM namespace_tree t JOIN protected_refs r ON r.namespace_id = t.ancestor_id
		WHERE t.descendant_id = ? AND r.kind = ? AND r.name = ? ORDER BY r.id LIMIT 1`, namespaceID, kind, name))
}

func countProtected(ctx context.Context, q db.Q, of ruleOwner, kind RefKind) (n int, err error) {
	cond, id := of.where()
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM protected_refs r WHERE `+cond+` AND r.kind = ?`, id, kind).Scan(&n)
	return n, err
}

func insertProtected(ctx context.Context, q db.Q, p *Protected) error {
	err := q.QueryRowContext(ctx, `
		INSERT INTO protected_refs (project_id, namespace_id, kind, name, allow_force_push, code_owner_approval, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		idOrNull(p.ProjectID), idOrNull(p.GroupID), p.Kind, p.Name, p.AllowForcePush, p.CodeOwnerApproval, p.CreatedAt).Scan(&p.ID)
	if err != nil {
		return err
	}
	for _, a := range p.Access {
		if err := insertAccess(ctx, q, p.ID, a); err != nil {
			return err
		}
	}
	return nil
}

func idOrNull(id int64) *int64 {
	if id == 0 {
		return nil
	}
	return &id
}

func saveProtected(ctx context.Context, q db.Q, p *Protected) error {
	return db.ExecOne(ctx, q, `UPDATE protected_refs SET allow_force_push = ?, code_owner_approval = ? WHERE id = ?`,
		p.AllowForcePush, p.CodeOwnerApproval, p.ID)
}

func deleteProtected(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM protected_refs WHERE id = ?`, id)
}

// readAccess reads the entries of rules, in the order of their creation.
func readAccess(ctx context.Context, q db.Q, ids []int64, take func(of int64, a RefAccess)) error {
	_, err := db.All(ctx, q, func(s db.Scanner) (struct{}, error) {
		var of int64
		var a RefAccess
		err := s.Scan(&a.ID, &of, &a.Action, &a.Level, &a.UserID, &a.GroupID, &a.DeployKeyID, &a.Name)
		if err == nil {
			take(of, a)
		}
		return struct{}{}, err
	}, `
		SELECT a.id, a.protected_ref_id, a.action, a.access_level, a.user_id, a.group_id, a.deploy_key_id, COALESCE(u.name, n.name, k.title, '')
		FROM protected_ref_access a
		LEFT JOIN users u ON u.id = a.user_id
		LEFT JOIN namespaces n ON n.id = a.group_id
		LEFT JOIN deploy_keys k ON k.id = a.deploy_key_id
		WHERE a.protected_ref_id IN `+db.In(len(ids))+` ORDER BY a.id`, db.Any(ids)...)
	return err
}

func insertAccess(ctx context.Context, q db.Q, ruleID int64, a RefAccess) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO protected_ref_access (protected_ref_id, action, access_level, user_id, group_id, deploy_key_id) VALUES (?, ?, ?, ?, ?, ?)`,
		ruleID, a.Action, a.Level, a.UserID, a.GroupID, a.DeployKeyID)
	return err
}

func updateAccess(ctx context.Context, q db.Q, ruleID int64, a RefAccess) error {
	return db.ExecOne(ctx, q, `
		UPDATE protected_ref_access SET access_level = ?, user_id = ?, group_id = ?, deploy_key_id = ?
		WHERE id = ? AND protected_ref_id = ? AND action = ?`,
		a.Level, a.UserID, a.GroupID, a.DeployKeyID, a.ID, ruleID, a.Action)
}

func deleteAccess(ctx context.Context, q db.Q, ruleID int64, a RefAccess) error {
	return db.ExecOne(ctx, q, `DELETE FROM protected_ref_access WHERE id = ? AND protected_ref_id = ? AND action = ?`, a.ID, ruleID, a.Action)
}

// groupHasAccess reports whether a project is in a group or shared with it.
func groupHasAccess(ctx context.Context, q db.Q, groupID int64, p *project.Project) (bool, error) {
	return db.Exists(ctx, q, `
		SELECT 1 WHERE EXISTS (SELECT 1 FROM namespace_tree t WHERE t.descendant_id = ? AND t.ancestor_id = ?)
			OR EXISTS (SELECT 1 FROM group_shares s WHERE s.project_id = ? AND s.group_id = ?)`, p.NamespaceID, groupID, p.ID, groupID)
}

func keyIsEnabled(ctx context.Context, q db.Q, keyID, projectID int64) (bool, error) {
	return db.Exists(ctx, q, `
		SELECT 1 FROM deploy_key_projects e WHERE e.project_id = ? AND e.deploy_key_id = ? AND e.can_push`, projectID, keyID)
}

// findDefaultBranch returns the default branch of a project; empty before the
// first push.
func findDefaultBranch(ctx context.Context, q db.Q, projectID int64) (branch string, err error) {
	err = q.QueryRowContext(ctx, `SELECT p.default_branch FROM projects p WHERE p.id = ?`, projectID).Scan(&branch)
	return branch, err
}
