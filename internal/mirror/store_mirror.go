package mirror

import (
	"context"
	"strings"
	"time"

	"svc/internal/db"
)

const mirrorColumns = `m.id, m.project_id, m.user_id, m.direction, m.enabled, m.url, m.secrets, m.has_credentials, m.auth_method, m.public_key, m.host_keys,
	m.only_protected, m.keep_diverged, m.branch_regex, m.trigger_pipelines, m.status, m.last_error, m.started_at, m.updated_at, m.succeeded_at, m.failures, m.created_at`

func scanMirror(s db.Scanner) (*Mirror, error) {
	m := &Mirror{}
	var hostKeys string
	err := s.Scan(&m.ID, &m.ProjectID, &m.UserID, &m.Direction, &m.Enabled, &m.URL, &m.sealed, &m.HasCredentials, &m.AuthMethod, &m.PublicKey, &hostKeys,
		&m.OnlyProtected, &m.KeepDiverged, &m.BranchRegex, &m.TriggerPipelines, &m.Status, &m.LastError,
		db.NullTime(&m.StartedAt), db.NullTime(&m.UpdatedAt), db.NullTime(&m.SucceededAt), &m.Failures, db.Time(&m.CreatedAt))
	if hostKeys != "" {
		m.HostKeys = strings.Split(hostKeys, "\n")
	}
	return m, err
}

func listMirrors(ctx context.Context, d *db.DB, projectID int64, dir Direction, p db.Paging) (db.Page[*Mirror], error) {
	q := db.Query[*Mirror]{Columns: mirrorColumns, From: `mirrors m`, Order: []db.Order{{Name: "m.id"}}, Scan: scanMirror}
	q.Where.And("m.project_id = ?", projectID)
	q.Where.And("m.direction = ?", string(dir))
	return db.List(ctx, d, q, p)
}

func findMirror(ctx context.Context, q db.Q, id int64) (*Mirror, error) {
	return scanMirror(q.QueryRowContext(ctx, `SELECT `+mirrorColumns+` FROM mirrors m WHERE m.id = ?`, id))
}

func findMirrorOf(ctx context.Context, q db.Q, projectID int64, dir Direction, id int64) (*Mirror, error) {
	return scanMirror(q.QueryRowContext(ctx, `SELECT `+mirrorColumns+` FROM mirrors m WHERE m.id = ? AND m.project_id = ? AND m.direction = ?`, id, projectID, string(dir)))
}

func countMirrors(ctx context.Context, q db.Q, projectID int64, dir Direction) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM mirrors WHERE project_id = ? AND direction = ?`, projectID, string(dir)).Scan(&n)
	return n, err
}

// countScheduled returns the number of scheduled updates of a user; 0 without a user.
func countScheduled(ctx context.Context, q db.Q, userID *int64) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM mirrors WHERE user_id = ? AND status = ?`, userID, string(StatusScheduled)).Scan(&n)
	return n, err
}

func insertMirror(ctx context.Context, q db.Q, m *Mirror) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO mirrors (project_id, user_id, direction, enabled, url, auth_method, status, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		m.ProjectID, m.UserID, string(m.Direction), m.Enabled, m.URL, string(m.AuthMethod), string(m.Status), m.CreatedAt).Scan(&m.ID)
}

// saveMirror saves the fields that users set.
func saveMirror(ctx context.Context, q db.Q, m *Mirror) error {
	return db.ExecOne(ctx, q, `
		UPDATE mirrors SET user_id = ?, enabled = ?, url = ?, secrets = ?, has_credentials = ?, auth_method = ?, public_key = ?, host_keys = ?, only_protected = ?,
			keep_diverged = ?, branch_regex = ?, trigger_pipelines = ?
		WHERE id = ?`,
		m.UserID, m.Enabled, m.URL, m.sealed, m.HasCredentials, string(m.AuthMethod), m.PublicKey, strings.Join(m.HostKeys, "\n"), m.OnlyProtected,
		m.KeepDiverged, m.BranchRegex, m.TriggerPipelines, m.ID)
}

func deleteMirror(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM mirrors WHERE id = ?`, id)
}

// findEnabled finds the enabled mirrors of a project.
func findEnabled(ctx context.Context, q db.Q, projectID int64, dir Direction) ([]*Mirror, error) {
	return db.All(ctx, q, scanMirror, `SELECT `+mirrorColumns+` FROM mirrors m WHERE m.project_id = ? AND m.direction = ? AND m.enabled = ? ORDER BY m.id`,
		projectID, string(dir), true)
}

func findPullMirror(ctx context.Context, q db.Q, projectID int64) (*Mirror, error) {
	return scanMirror(q.QueryRowContext(ctx, `SELECT `+mirrorColumns+` FROM mirrors m WHERE m.project_id = ? AND m.direction = ?`, projectID, string(Pull)))
}

// findPullMirrors finds the enabled pull mirrors of projects.
func findPullMirrors(ctx context.Context, q db.Q, projectIDs []int64) ([]*Mirror, error) {
	if len(projectIDs) == 0 {
		return nil, nil
	}
	return db.All(ctx, q, scanMirror, `SELECT `+mirrorColumns+` FROM mirrors m WHERE m.direction = 'pull' AND m.enabled AND m.project_id IN `+db.In(len(projectIDs)),
		db.Any(projectIDs)...)
}

// resetFailures resets the failure count, so that the mirror is updated on schedule
// again.
func resetFailures(ctx context.Context, q db.Q, id int64) error {
	_, err := q.ExecContext(ctx, `UPDATE mirrors SET failures = 0 WHERE id = ?`, id)
	return err
}

// savePaused records that an update was skipped, and when the next one is due.
func savePaused(ctx context.Context, q db.Q, id int64, next *time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE mirrors SET status = ?, next_at = ? WHERE id = ? AND status <> ?`, string(StatusNone), next, id, string(StatusStarted))
	return err
}

// saveScheduled marks an update as pending, unless one is running, and sets when the
// next one is due.
func saveScheduled(ctx context.Context, q db.Q, id int64, at time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE mirrors SET next_at = ?, status = CASE WHEN status = ? THEN status ELSE ? END WHERE id = ?`,
		at, string(StatusStarted), string(StatusScheduled), id)
	return err
}

// findDue finds the mirrors whose next update is due.
func findDue(ctx context.Context, q db.Q, now time.Time, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT id FROM mirrors WHERE enabled = ? AND next_at <= ? ORDER BY next_at, id LIMIT ?`, true, now, limit)
}

// takeLease gives a run the lease of a mirror. It returns false if another run has
// the lease.
func takeLease(ctx context.Context, q db.Q, id int64, run string, now, until time.Time) (bool, error) {
	return db.ExecAny(ctx, q, `
		UPDATE mirrors SET run = ?, lease_until = ?, status = ?, started_at = ?, next_at = NULL WHERE id = ? AND (lease_until IS NULL OR lease_until < ?)`,
		run, until, string(StatusStarted), now, id, now)
}

// extendLease extends the lease of a run on an enabled mirror. It reports whether
// the run still has it.
func extendLease(ctx context.Context, q db.Q, id int64, run string, until time.Time) (bool, error) {
	return db.ExecAny(ctx, q, `UPDATE mirrors SET lease_until = ? WHERE id = ? AND run = ? AND enabled = ?`, until, id, run, true)
}

// endLease ends the lease of a run without a result.
func endLease(ctx context.Context, q db.Q, id int64, run string, status Status) error {
	_, err := q.ExecContext(ctx, `UPDATE mirrors SET run = '', lease_until = NULL, status = ? WHERE id = ? AND run = ?`, string(status), id, run)
	return err
}

// saveResult saves the result of a run, and when the next update is due unless one
// is pending. It reports whether the run had the lease.
func saveResult(ctx context.Context, q db.Q, m *Mirror, run string, next *time.Time) (bool, error) {
	return db.ExecAny(ctx, q, `
		UPDATE mirrors SET run = '', lease_until = NULL, status = ?, last_error = ?, updated_at = ?, succeeded_at = ?, failures = ?,
			next_at = COALESCE(next_at, ?)
		WHERE id = ? AND run = ?`,
		string(m.Status), m.LastError, m.UpdatedAt, m.SucceededAt, m.Failures, next, m.ID, run)
}
