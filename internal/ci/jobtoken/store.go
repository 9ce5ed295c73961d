package jobtoken

import (
	"context"
	"errors"
	"time"

	"svc/internal/db"
	"svc/internal/project"
)

// inboundScope reports whether a project accepts only job tokens of its allowlist.
func inboundScope(ctx context.Context, q db.Q, projectID int64) (inbound bool, err error) {
	err = q.QueryRowContext(ctx, `SELECT inbound FROM job_token_settings WHERE project_id = ?`, projectID).Scan(&inbound)
	if errors.Is(err, db.ErrNoRows) {
		return true, nil
	}
	return inbound, err
}

func saveInbound(ctx context.Context, tx *db.Tx, projectID int64, inbound bool) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO job_token_settings (project_id, inbound) VALUES (?, ?)
		ON CONFLICT (project_id) DO UPDATE SET inbound = excluded.inbound`, projectID, inbound)
	return err
}

func allowedProjects(ctx context.Context, q db.Q, projectID int64) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT a.target_project_id FROM job_token_allowlist a JOIN projects t ON t.id = a.target_project_id
		WHERE a.project_id = ? AND t.deleted_at IS NULL ORDER BY a.id`, projectID)
}

func allowedGroups(ctx context.Context, q db.Q, projectID int64) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT a.target_namespace_id FROM job_token_allowlist a JOIN namespaces n ON n.id = a.target_namespace_id
		WHERE a.project_id = ? AND n.deleted_at IS NULL ORDER BY a.id`, projectID)
}

func countAllowed(ctx context.Context, q db.Q, projectID int64) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT COUNT(*) FROM job_token_allowlist WHERE project_id = ?`, projectID).Scan(&n)
	return n, err
}

// insertAllowed adds an entry; column is that of the target.
func insertAllowed(ctx context.Context, tx *db.Tx, projectID int64, column string, target int64, addedBy *int64, at time.Time) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO job_token_allowlist (project_id, `+column+`, added_by, created_at) VALUES (?, ?, ?, ?)`, projectID, target, addedBy, at)
	return err
}

func deleteAllowed(ctx context.Context, tx *db.Tx, projectID int64, column string, target int64) error {
	return db.NotFound(db.ExecOne(ctx, tx, `DELETE FROM job_token_allowlist WHERE project_id = ? AND `+column+` = ?`, projectID, target), "")
}

// allowlisted reports whether a project lists another project or a group that contains
// it.
func allowlisted(ctx context.Context, q db.Q, projectID int64, source *project.Project) (bool, error) {
	return db.Exists(ctx, q, `
		SELECT 1 FROM job_token_allowlist a WHERE a.project_id = ? AND (a.target_project_id = ?
			OR a.target_namespace_id IN (SELECT t.ancestor_id FROM namespace_tree t WHERE t.descendant_id = ?)) LIMIT 1`,
		projectID, source.ID, source.NamespaceID)
}

// directGroups returns the paths of the groups that a user is a direct member of.
func directGroups(ctx context.Context, q db.Q, userID int64, now time.Time, limit int) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `
		SELECT n.full_path FROM members m JOIN namespaces n ON n.id = m.namespace_id
		WHERE m.user_id = ? AND m.requested_at IS NULL AND (m.expires_at IS NULL OR m.expires_at > ?) ORDER BY n.full_path LIMIT ?`,
		userID, now.UTC().Format(time.DateOnly), limit)
}
