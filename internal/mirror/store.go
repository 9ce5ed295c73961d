package mirror

import (
	"context"

	"svc/internal/db"
)

const importColumns = `id, project_id, user_id, run, active, credentials, phase, percent, bytes, branches, tags, lfs_found, lfs_fetched, created_at`

func findImport(ctx context.Context, q db.Q, projectID int64) (*Import, error) {
	i := &Import{}
	err := q.QueryRowContext(ctx, `SELECT `+importColumns+` FROM project_imports WHERE project_id = ?`, projectID).
		Scan(&i.ID, &i.ProjectID, &i.UserID, &i.Run, &i.Active, &i.credentials, &i.Phase, &i.Percent, &i.Bytes, &i.Branches, &i.Tags, &i.LFSFound, &i.LFSFetched,
			db.Time(&i.CreatedAt))
	return i, err
}

// insertImport adds the first import of a project, or replaces an earlier one.
func insertImport(ctx context.Context, q db.Q, i *Import) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO project_imports (project_id, user_id, run, active, credentials, created_at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (project_id) DO UPDATE SET user_id = excluded.user_id, run = excluded.run, active = excluded.active, credentials = excluded.credentials,
			created_at = excluded.created_at, phase = '', percent = 0, bytes = 0, branches = 0, tags = 0, lfs_found = 0, lfs_fetched = 0, attempts = 0`,
		i.ProjectID, i.UserID, i.Run, true, i.credentials, i.CreatedAt)
	return err
}

// countActive counts the pending and running imports of a user.
func countActive(ctx context.Context, q db.Q, userID int64) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM project_imports WHERE user_id = ? AND active = ?`, userID, true).Scan(&n)
	return n, err
}

// endImport ends a run. It is not an error if the run does not exist.
func endImport(ctx context.Context, q db.Q, projectID int64, run string) error {
	_, err := q.ExecContext(ctx, `UPDATE project_imports SET active = ?, credentials = '', phase = ? WHERE project_id = ? AND run = ?`,
		false, string(Ended), projectID, run)
	return err
}

// saveProgress saves the progress of a run. It returns db.ErrNoRows if the run has
// ended.
func saveProgress(ctx context.Context, q db.Q, i Import) error {
	return db.ExecOne(ctx, q, `
		UPDATE project_imports SET phase = ?, percent = ?, bytes = ?, branches = ?, tags = ?, lfs_found = ?, lfs_fetched = ?
		WHERE project_id = ? AND run = ? AND active = ?`,
		string(i.Phase), i.Percent, i.Bytes, i.Branches, i.Tags, i.LFSFound, i.LFSFetched, i.ProjectID, i.Run, true)
}

// addAttempt counts a failed attempt.
func addAttempt(ctx context.Context, q db.Q, id int64) (n int, err error) {
	err = q.QueryRowContext(ctx, `UPDATE project_imports SET attempts = attempts + 1 WHERE id = ? RETURNING attempts`, id).Scan(&n)
	return n, err
}
