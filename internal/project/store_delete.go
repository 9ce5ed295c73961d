package project

import (
	"context"
	"time"

	"svc/internal/db"
)

// soleOwner is the condition on groups n of which a user is a direct Owner, and no
// other human user is an Owner, directly or inherited.
const soleOwner = `n.kind = 'group' AND n.deleted_at IS NULL
	AND n.id IN (SELECT m.namespace_id FROM members m WHERE m.user_id = ? AND m.access_level = 50 AND m.namespace_id IS NOT NULL AND ` + activeMember + `)
	AND NOT EXISTS (SELECT 1 FROM namespace_tree t JOIN members m ON m.namespace_id = t.ancestor_id JOIN users u ON u.id = m.user_id
		WHERE t.descendant_id = n.id AND m.user_id <> ? AND m.access_level = 50 AND u.kind = 'human' AND u.deleted_at IS NULL AND ` + activeMember + `)`

// projectBots returns the bot users of a project.
func projectBots(ctx context.Context, q db.Q, id int64) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT user_id FROM bots WHERE project_id = ? ORDER BY user_id`, id)
}

// groupBots returns the bot users and service accounts of a group and its
// descendants.
func groupBots(ctx context.Context, q db.Q, id int64) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT user_id FROM bots WHERE namespace_id IN `+below+`
		UNION SELECT user_id FROM service_accounts WHERE namespace_id IN `+below+` ORDER BY user_id`, id, id)
}

// deleteOnlyKeys deletes the private deploy keys that are enabled only in this
// project.
func deleteOnlyKeys(ctx context.Context, q db.Q, id int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM deploy_keys WHERE NOT public
		AND id IN (SELECT e.deploy_key_id FROM deploy_key_projects e WHERE e.project_id = ?)
		AND NOT EXISTS (SELECT 1 FROM deploy_key_projects e WHERE e.deploy_key_id = deploy_keys.id AND e.project_id <> ?)`, id, id)
	return err
}

// hideProject marks a project as deleted. The suffix frees its path. ErrNoRows if
// it was deleted already.
func hideProject(ctx context.Context, q db.Q, id int64, suffix string, now time.Time) error {
	return db.ExecOne(ctx, q, `
		UPDATE projects SET deleted_at = ?, path = path || ?, full_path = full_path || ? WHERE id = ? AND deleted_at IS NULL`, now, suffix, suffix, id)
}

// deleteProject deletes the row of a hidden project and, by foreign keys, all its
// data.
func deleteProject(ctx context.Context, q db.Q, id int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM projects WHERE id = ? AND deleted_at IS NOT NULL`, id)
	return err
}

// hideGroups marks a group, its descendants and their projects as deleted, and
// adds a suffix to the path of the group.
func hideGroups(ctx context.Context, q db.Q, id int64, suffix string, now time.Time) error {
	for _, table := range []string{"namespaces SET deleted_at = ? WHERE id IN ", "projects SET deleted_at = ? WHERE namespace_id IN "} {
		if _, err := q.ExecContext(ctx, `UPDATE `+table+below+` AND deleted_at IS NULL`, now, id); err != nil {
			return err
		}
	}
	_, err := q.ExecContext(ctx, `UPDATE namespaces SET path = path || ? WHERE id = ?`, suffix, id)
	return err
}

// deleteGroups deletes the rows of a hidden group and its descendants in one
// statement, because of the foreign keys between them.
func deleteGroups(ctx context.Context, q db.Q, id int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM namespaces WHERE deleted_at IS NOT NULL AND id IN `+below, id)
	return err
}

// Conditions for findRemoved: the projects that are deleted with a project, a
// group or a user.
const (
	hiddenProject       = `p.id = ? AND p.deleted_at IS NOT NULL`
	hiddenGroupProjects = `p.namespace_id IN (SELECT n.id FROM namespaces n WHERE n.deleted_at IS NOT NULL AND n.id IN ` + below + `)`
	userProjects        = `p.namespace_id IN (SELECT n.id FROM namespaces n WHERE n.user_id = ?)`
)

// isSoleOwner reports whether a user is the only owner of a group.
func isSoleOwner(ctx context.Context, q db.Q, userID int64, today string) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM namespaces n WHERE `+soleOwner+` LIMIT 1`, userID, today, userID, today)
}

// solelyOwned returns the groups of which a user is the only Owner.
func solelyOwned(ctx context.Context, q db.Q, userID int64, today string) ([]*Namespace, error) {
	return db.All(ctx, q, scanNamespace, `SELECT `+namespaceColumns+` FROM namespaces n WHERE `+soleOwner+` ORDER BY n.full_path`,
		userID, today, userID, today)
}

// deleteStars deletes the stars of a user and updates the star counts.
func deleteStars(ctx context.Context, q db.Q, userID int64) error {
	_, err := q.ExecContext(ctx, `UPDATE projects SET star_count = star_count - 1 WHERE id IN (SELECT s.project_id FROM stars s WHERE s.user_id = ?)`, userID)
	if err != nil {
		return err
	}
	_, err = q.ExecContext(ctx, `DELETE FROM stars WHERE user_id = ?`, userID)
	return err
}

// replaceCreator replaces the creator of projects, groups, memberships and deploy
// credentials.
func replaceCreator(ctx context.Context, q db.Q, userID, by int64) error {
	for _, query := range []string{
		`UPDATE projects SET creator_id = ? WHERE creator_id = ?`,
		`UPDATE namespaces SET created_by = ? WHERE created_by = ?`,
		`UPDATE members SET created_by = ? WHERE created_by = ?`,
		`UPDATE deploy_tokens SET created_by = ? WHERE created_by = ?`,
		`UPDATE deploy_keys SET created_by = ? WHERE created_by = ?`,
	} {
		if _, err := q.ExecContext(ctx, query, by, userID); err != nil {
			return err
		}
	}
	return nil
}
