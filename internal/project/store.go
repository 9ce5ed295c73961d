package project

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/db"
	"svc/internal/errs"
)

const namespaceColumns = `n.id, n.kind, n.parent_id, n.user_id, n.path, n.name, n.full_path, n.full_name, n.description, n.visibility,
	n.avatar, n.settings, n.created_by, n.created_at, n.updated_at, n.marked_for_deletion_at`

func scanNamespace(s db.Scanner) (*Namespace, error) {
	n := &Namespace{Settings: defaultGroupSettings()}
	var settings string
	err := s.Scan(&n.ID, &n.Kind, &n.ParentID, &n.UserID, &n.Path, &n.Name, &n.FullPath, &n.FullName, &n.Description, &n.Visibility,
		&n.Avatar, &settings, &n.CreatedBy, db.Time(&n.CreatedAt), db.Time(&n.UpdatedAt), db.NullTime(&n.MarkedAt))
	if err != nil {
		return nil, err
	}
	// Missing settings have their defaults: a setting may be newer than the row.
	if err := json.Unmarshal([]byte(settings), &n.Settings); err != nil {
		return nil, fmt.Errorf("settings of namespace %d: %w", n.ID, err)
	}
	return n, nil
}

func findNamespace(ctx context.Context, q db.Q, id int64) (*Namespace, error) {
	n, err := scanNamespace(q.QueryRowContext(ctx, `SELECT `+namespaceColumns+` FROM namespaces n WHERE n.id = ? AND n.deleted_at IS NULL`, id))
	return n, db.NotFound(err, "Namespace")
}

func findNamespaceByPath(ctx context.Context, q db.Q, path string) (*Namespace, error) {
	n, err := scanNamespace(q.QueryRowContext(ctx, `SELECT `+namespaceColumns+` FROM namespaces n
		WHERE lower(n.full_path) = lower(?) AND n.deleted_at IS NULL`, path))
	return n, db.NotFound(err, "Namespace")
}

// findGroupByRef finds a group by ID, path or old path.
func findGroupByRef(ctx context.Context, q db.Q, ref Ref) (n *Namespace, moved bool, err error) {
	if id, ok := ref.id(); ok {
		n, err = findNamespace(ctx, q, id)
	} else if n, err = findNamespaceByPath(ctx, q, string(ref)); errs.Is(err, errs.KindNotFound) {
		moved = true
		n, err = scanNamespace(q.QueryRowContext(ctx, `SELECT `+namespaceColumns+`
			FROM path_redirects r JOIN namespaces n ON n.id = r.namespace_id
			WHERE lower(r.path) = lower(?) AND n.deleted_at IS NULL`, string(ref)))
		err = db.NotFound(err, "Group")
	}
	if errs.Is(err, errs.KindNotFound) || err == nil && n.Kind != GroupNamespace {
		return nil, false, errs.NotFound("Group")
	}
	return n, moved, err
}

// insertGroup inserts a group below its parent, and its rows in the tree.
func insertGroup(ctx context.Context, q db.Q, n *Namespace) error {
	settings, err := json.Marshal(n.Settings)
	if err != nil {
		return err
	}
	err = q.QueryRowContext(ctx, `
		INSERT INTO namespaces (kind, parent_id, path, name, full_path, full_name, description, visibility, settings, created_by, created_at, updated_at)
		VALUES ('group', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		n.ParentID, n.Path, n.Name, n.FullPath, n.FullName, n.Description, string(n.Visibility), string(settings), n.CreatedBy, n.CreatedAt, n.UpdatedAt).
		Scan(&n.ID)
	if err != nil {
		return taken(err)
	}
	if _, err := q.ExecContext(ctx, `INSERT INTO namespace_tree (ancestor_id, descendant_id, depth) VALUES (?, ?, 0)`, n.ID, n.ID); err != nil {
		return err
	}
	if n.ParentID == nil {
		return nil
	}
	return joinTree(ctx, q, *n.ParentID, n.ID)
}

// joinTree attaches a subtree to a parent. The subtree must be detached.
func joinTree(ctx context.Context, q db.Q, parentID, id int64) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO namespace_tree (ancestor_id, descendant_id, depth)
		SELECT a.ancestor_id, d.descendant_id, a.depth + d.depth + 1
		FROM namespace_tree a CROSS JOIN namespace_tree d WHERE a.descendant_id = ? AND d.ancestor_id = ?`, parentID, id)
	return err
}

// leaveTree detaches a namespace and its descendants from its ancestors.
func leaveTree(ctx context.Context, q db.Q, id int64) error {
	_, err := q.ExecContext(ctx, `
		DELETE FROM namespace_tree
		WHERE descendant_id IN (SELECT d.descendant_id FROM namespace_tree d WHERE d.ancestor_id = ?)
			AND ancestor_id NOT IN (SELECT d.descendant_id FROM namespace_tree d WHERE d.ancestor_id = ?)`, id, id)
	return err
}

// saveGroup saves a group, except its full path and name: see moveBelow.
func saveGroup(ctx context.Context, q db.Q, n *Namespace) error {
	settings, err := json.Marshal(n.Settings)
	if err != nil {
		return err
	}
	err = db.ExecOne(ctx, q, `
		UPDATE namespaces SET parent_id = ?, path = ?, name = ?, description = ?, visibility = ?, avatar = ?, settings = ?, updated_at = ?
		WHERE id = ? AND deleted_at IS NULL`,
		n.ParentID, n.Path, n.Name, n.Description, string(n.Visibility), n.Avatar, string(settings), n.UpdatedAt, n.ID)
	return taken(db.NotFound(err, "Group"))
}

// below selects a namespace and its descendants.
const below = `(SELECT d.descendant_id FROM namespace_tree d WHERE d.ancestor_id = ?)`

// moveBelow updates the full paths and names of a namespace, its descendants and
// their projects after the namespace was renamed or moved.
func moveBelow(ctx context.Context, q db.Q, id int64, fromPath, toPath, fromName, toName string) error {
	_, err := q.ExecContext(ctx, `
		UPDATE namespaces SET full_path = CAST(? AS TEXT) || substr(full_path, ?), full_name = CAST(? AS TEXT) || substr(full_name, ?)
		WHERE id IN `+below, toPath, len(fromPath)+1, toName, utf8.RuneCountInString(fromName)+1, id)
	if err != nil {
		return taken(err)
	}
	if fromPath == toPath {
		return nil
	}
	return moveProjects(ctx, q, id, fromPath, toPath)
}

// moveProjects is moveBelow for projects only.
func moveProjects(ctx context.Context, q db.Q, id int64, fromPath, toPath string) error {
	_, err := q.ExecContext(ctx, `
		UPDATE projects SET full_path = CAST(? AS TEXT) || substr(full_path, ?) WHERE namespace_id IN `+below,
		toPath, len(fromPath)+1, id)
	return taken(err)
}

// placed is a project with its path.
type placed struct {
	id         int64
	name, path string
}

// findPlacesBelow returns the projects of a group and its descendants.
func findPlacesBelow(ctx context.Context, q db.Q, id int64) ([]placed, error) {
	return db.All(ctx, q, func(s db.Scanner) (p placed, err error) {
		err = s.Scan(&p.id, &p.name, &p.path)
		return p, err
	}, `SELECT id, name, full_path FROM projects WHERE deleted_at IS NULL AND namespace_id IN `+below+` ORDER BY id`, id)
}

// keepPaths records the current paths of a namespace, its descendants and their
// projects as redirects, before they are moved.
func keepPaths(ctx context.Context, q db.Q, id int64, now time.Time) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO path_redirects (path, namespace_id, created_at)
		SELECT n.full_path, n.id, CAST(? AS BIGINT) FROM namespaces n WHERE n.kind = 'group' AND n.deleted_at IS NULL AND n.id IN `+below+`
		ON CONFLICT (lower(path)) DO UPDATE SET namespace_id = excluded.namespace_id, project_id = NULL, created_at = excluded.created_at`, now, id)
	if err != nil {
		return err
	}
	_, err = q.ExecContext(ctx, `
		INSERT INTO path_redirects (path, project_id, created_at)
		SELECT p.full_path, p.id, CAST(? AS BIGINT) FROM projects p WHERE p.deleted_at IS NULL AND p.namespace_id IN `+below+`
		ON CONFLICT (lower(path)) DO UPDATE SET project_id = excluded.project_id, namespace_id = NULL, created_at = excluded.created_at`, now, id)
	return err
}

// keepPath is keepPaths for one project.
func keepPath(ctx context.Context, q db.Q, p *Project, now time.Time) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO path_redirects (path, project_id, created_at) VALUES (?, ?, ?)
		ON CONFLICT (lower(path)) DO UPDATE SET project_id = excluded.project_id, namespace_id = NULL, created_at = excluded.created_at`,
		p.FullPath, p.ID, now)
	return err
}

// dropRedirect deletes the redirect of a path that is used again.
func dropRedirect(ctx context.Context, q db.Q, path string) error {
	_, err := q.ExecContext(ctx, `DELETE FROM path_redirects WHERE lower(path) = lower(?)`, path)
	return err
}

// requireFree returns an error if a path is taken. The caller has locked the
// parent namespace, so that the result stays valid.
func requireFree(ctx context.Context, q db.Q, fullPath string) error {
	for _, table := range []string{"namespaces", "projects"} {
		there, err := db.Exists(ctx, q, `SELECT 1 FROM `+table+` WHERE lower(full_path) = lower(?)`, fullPath)
		if err != nil {
			return err
		}
		if there {
			return errs.InvalidField("path", hasBeenTaken)
		}
	}
	return nil
}

const hasBeenTaken = "has already been taken"

// taken converts a violation of a unique index to a validation error.
func taken(err error) error {
	for _, index := range []string{"namespaces_path", "namespaces_full_path", "projects_path", "projects_full_path"} {
		if db.IsUnique(err, index) {
			return errs.InvalidField("path", hasBeenTaken)
		}
	}
	return err
}

const projectColumns = `p.id, p.namespace_id, p.path, p.name, p.full_path, p.description, p.visibility, p.default_branch, p.initial_branch, p.readme, p.archived,
	p.avatar, p.creator_id, p.forked_from_id, p.star_count, p.storage, p.read_only, p.import_status, p.import_error, p.import_type, p.import_url,
	p.issues_access_level, p.repository_access_level, p.merge_requests_access_level, p.builds_access_level, p.settings,
	p.last_activity_at, p.created_at, p.updated_at, p.marked_for_deletion_at,
	n.id, n.kind, n.parent_id, n.user_id, n.path, n.name, n.full_path, n.full_name, n.visibility, n.avatar, n.merge_rules`

const projectTables = `projects p JOIN namespaces n ON n.id = p.namespace_id`

func scanProject(s db.Scanner) (*Project, error) {
	p := &Project{Settings: defaultSettings()}
	n := &p.Namespace
	var settings, rules string
	err := s.Scan(&p.ID, &p.NamespaceID, &p.Path, &p.Name, &p.FullPath, &p.Description, &p.Visibility, &p.DefaultBranch, &p.InitialBranch, &p.Readme, &p.Archived,
		&p.Avatar, &p.CreatorID, &p.ForkedFromID, &p.Stars, &p.Storage, &p.ReadOnly, &p.Import, &p.ImportError, &p.ImportType, &p.ImportURL,
		&p.Issues, &p.Repository, &p.MergeRequests, &p.Builds, &settings,
		db.Time(&p.LastActivityAt), db.Time(&p.CreatedAt), db.Time(&p.UpdatedAt), db.NullTime(&p.MarkedAt),
		&n.ID, &n.Kind, &n.ParentID, &n.UserID, &n.Path, &n.Name, &n.FullPath, &n.FullName, &n.Visibility, &n.Avatar, &rules)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(settings), &p.Settings); err != nil {
		return nil, fmt.Errorf("settings of project %d: %w", p.ID, err)
	}
	if p.Inherited, err = parseRules(rules); err != nil {
		return nil, fmt.Errorf("project %d: %w", p.ID, err)
	}
	return p, nil
}

func findProject(ctx context.Context, q db.Q, id int64) (*Project, error) {
	p, err := scanProject(q.QueryRowContext(ctx, `SELECT `+projectColumns+` FROM `+projectTables+` WHERE p.id = ? AND p.deleted_at IS NULL`, id))
	return p, db.NotFound(err, "Project")
}

func findProjects(ctx context.Context, q db.Q, ids []int64) ([]*Project, error) {
	return db.All(ctx, q, scanProject, `SELECT `+projectColumns+` FROM `+projectTables+`
		WHERE p.deleted_at IS NULL AND p.id IN `+db.In(len(ids))+` ORDER BY p.id`, db.Any(ids)...)
}

// findByRef finds a project by ID, path or old path.
func findByRef(ctx context.Context, q db.Q, ref Ref) (p *Project, moved bool, err error) {
	if id, ok := ref.id(); ok {
		p, err = findProject(ctx, q, id)
		return p, false, err
	}
	if !strings.Contains(string(ref), "/") {
		return nil, false, errs.NotFound("Project")
	}
	p, err = scanProject(q.QueryRowContext(ctx, `SELECT `+projectColumns+` FROM `+projectTables+`
		WHERE lower(p.full_path) = lower(?) AND p.deleted_at IS NULL`, string(ref)))
	if !errors.Is(err, db.ErrNoRows) {
		return p, false, err
	}
	p, err = scanProject(q.QueryRowContext(ctx, `SELECT `+projectColumns+` FROM path_redirects r JOIN projects p ON p.id = r.project_id
		JOIN namespaces n ON n.id = p.namespace_id WHERE lower(r.path) = lower(?) AND p.deleted_at IS NULL`, string(ref)))
	return p, true, db.NotFound(err, "Project")
}

func insertProject(ctx context.Context, q db.Q, p *Project) error {
	settings, err := json.Marshal(p.Settings)
	if err != nil {
		return err
	}
	err = q.QueryRowContext(ctx, `
		INSERT INTO projects (namespace_id, path, name, full_path, description, visibility, default_branch, initial_branch, creator_id, storage,
			forked_from_id, import_status, import_type, import_url,
			issues_access_level, repository_access_level, merge_requests_access_level, builds_access_level, snippets_access_level,
			releases_access_level, package_registry_access_level, settings,
			last_activity_at, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		p.NamespaceID, p.Path, p.Name, p.FullPath, p.Description, string(p.Visibility), p.DefaultBranch, p.InitialBranch, p.CreatorID, p.Storage,
		p.ForkedFromID, string(p.Import), p.ImportType, p.ImportURL,
		string(p.Issues), string(p.Repository), string(p.MergeRequests), string(p.Builds), string(p.Settings.Snippets),
		string(p.Settings.Releases), string(p.Settings.PackageRegistry), string(settings),
		p.LastActivityAt, p.CreatedAt, p.UpdatedAt).Scan(&p.ID)
	return taken(err)
}

func saveProject(ctx context.Context, q db.Q, p *Project) error {
	settings, err := json.Marshal(p.Settings)
	if err != nil {
		return err
	}
	err = db.ExecOne(ctx, q, `
		UPDATE projects SET namespace_id = ?, path = ?, name = ?, full_path = ?, description = ?, visibility = ?, default_branch = ?,
			archived = ?, avatar = ?, storage = ?, read_only = ?,
			issues_access_level = ?, repository_access_level = ?, merge_requests_access_level = ?, builds_access_level = ?, snippets_access_level = ?,
			releases_access_level = ?, package_registry_access_level = ?, settings = ?,
			last_activity_at = ?, updated_at = ?
		WHERE id = ? AND deleted_at IS NULL`,
		p.NamespaceID, p.Path, p.Name, p.FullPath, p.Description, string(p.Visibility), p.DefaultBranch,
		p.Archived, p.Avatar, p.Storage, p.ReadOnly,
		string(p.Issues), string(p.Repository), string(p.MergeRequests), string(p.Builds), string(p.Settings.Snippets),
		string(p.Settings.Releases), string(p.Settings.PackageRegistry), string(settings),
		p.LastActivityAt, p.UpdatedAt, p.ID)
	return taken(db.NotFound(err, "Project"))
}

// findRemoved returns the projects for which Deleted is published.
func findRemoved(ctx context.Context, q db.Q, which string, args ...any) ([]Deleted, error) {
	return db.All(ctx, q, func(s db.Scanner) (Deleted, error) {
		var r Deleted
		err := s.Scan(&r.ID, &r.Storage)
		return r, err
	}, `SELECT p.id, p.storage FROM projects p WHERE `+which+` ORDER BY p.id`, args...)
}

// findAbove returns a namespace and its ancestors, nearest first.
func findAbove(ctx context.Context, q db.Q, namespaceID int64) ([]*Namespace, error) {
	return db.All(ctx, q, scanNamespace, `
		SELECT `+namespaceColumns+` FROM namespace_tree t JOIN namespaces n ON n.id = t.ancestor_id WHERE t.descendant_id = ? ORDER BY t.depth`, namespaceID)
}

// branchOf returns the default branch for new projects that the nearest ancestor
// group has set, or an empty string.
func branchOf(ctx context.Context, q db.Q, namespaceID int64) (string, error) {
	above, err := findAbove(ctx, q, namespaceID)
	if err != nil {
		return "", err
	}
	for _, n := range above {
		if n.Settings.DefaultBranch != "" {
			return n.Settings.DefaultBranch, nil
		}
	}
	return "", nil
}

func findUserNamespace(ctx context.Context, q db.Q, userID int64) (*Namespace, error) {
	return scanNamespace(q.QueryRowContext(ctx, `SELECT `+namespaceColumns+` FROM namespaces n WHERE n.user_id = ?`, userID))
}

// projectLimit returns the project limit of a user, and the number of projects in
// their namespace.
func projectLimit(ctx context.Context, q db.Q, userID, namespaceID int64) (external bool, limit, have int64, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT u.external, u.projects_limit, (SELECT count(*) FROM projects p WHERE p.namespace_id = ? AND p.deleted_at IS NULL)
		FROM users u WHERE u.id = ?`, namespaceID, userID).Scan(&external, &limit, &have)
	return external, limit, have, err
}

// hasPath reports whether a namespace has a path, in a group or at the top level
// (0).
func hasPath(ctx context.Context, q db.Q, path string, parentID int64) (bool, error) {
	return db.Exists(ctx, q, `
		SELECT 1 FROM namespaces n WHERE lower(n.path) = lower(?) AND COALESCE(n.parent_id, 0) = ? AND n.deleted_at IS NULL`, path, parentID)
}
