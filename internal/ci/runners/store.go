package runners

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"svc/internal/db"
	"svc/internal/secret"
)

const runnerColumns = `r.id, r.kind, r.namespace_id, r.description, r.paused, r.locked, r.run_untagged, r.protected_only, r.tags, r.maximum_timeout,
	r.maintenance_note, r.creator_id, r.token_expires_at, r.contacted_at, r.created_at, r.updated_at`

func scanRunner(s db.Scanner) (*Runner, error) {
	r := &Runner{}
	var tags string
	err := s.Scan(&r.ID, &r.Type, &r.GroupID, &r.Description, &r.Paused, &r.Locked, &r.RunUntagged, &r.ProtectedOnly, &tags, &r.MaximumTimeout,
		&r.MaintenanceNote, &r.CreatorID, db.NullTime(&r.TokenExpiresAt), db.NullTime(&r.ContactedAt), db.Time(&r.CreatedAt), db.Time(&r.UpdatedAt))
	r.Tags = SplitTags(tags)
	return r, err
}

// SplitTags returns the tags of a column, which has one tag per line, sorted.
func SplitTags(tags string) []string {
	if tags == "" {
		return nil
	}
	return strings.Split(tags, "\n")
}

func find(ctx context.Context, q db.Q, id int64) (*Runner, error) {
	r, err := scanRunner(q.QueryRowContext(ctx, `SELECT `+runnerColumns+` FROM runners r WHERE r.id = ?`, id))
	return r, db.NotFound(err, "Runner")
}

func findByToken(ctx context.Context, q db.Q, token string) (*Runner, error) {
	return scanRunner(q.QueryRowContext(ctx, `SELECT `+runnerColumns+` FROM runners r WHERE r.token_digest = ?`, []byte(secret.Digest(token))))
}

// ByID returns runners by their IDs, with whether they are busy.
func ByID(ctx context.Context, q db.Q, ids []int64) (map[int64]*Runner, error) {
	found := make(map[int64]*Runner, len(ids))
	if len(ids) == 0 {
		return found, nil
	}
	list, err := db.All(ctx, q, scanRunner, `SELECT `+runnerColumns+` FROM runners r WHERE r.id IN `+db.In(len(ids)), db.Any(ids)...)
	if err != nil {
		return nil, err
	}
	busy, err := busyRunners(ctx, q, ids)
	for _, r := range list {
		r.Busy = busy[r.ID]
		found[r.ID] = r
	}
	return found, err
}

func insertRow(ctx context.Context, tx *db.Tx, r *Runner) error {
	return tx.QueryRowContext(ctx, `
		INSERT INTO runners (kind, namespace_id, description, token_digest, token_expires_at, paused, locked, run_untagged, protected_only, tags,
			maximum_timeout, maintenance_note, creator_id, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		string(r.Type), r.GroupID, r.Description, []byte(secret.Digest(r.Secret)), r.TokenExpiresAt, r.Paused, r.Locked, r.RunUntagged, r.ProtectedOnly,
		strings.Join(r.Tags, "\n"), r.MaximumTimeout, r.MaintenanceNote, r.CreatorID, r.CreatedAt, r.UpdatedAt).Scan(&r.ID)
}

func save(ctx context.Context, tx *db.Tx, r *Runner) error {
	return db.ExecOne(ctx, tx, `
		UPDATE runners SET description = ?, paused = ?, locked = ?, run_untagged = ?, protected_only = ?, tags = ?, maximum_timeout = ?,
			maintenance_note = ?, updated_at = ? WHERE id = ?`,
		r.Description, r.Paused, r.Locked, r.RunUntagged, r.ProtectedOnly, strings.Join(r.Tags, "\n"), r.MaximumTimeout, r.MaintenanceNote,
		r.UpdatedAt, r.ID)
}

func saveToken(ctx context.Context, tx *db.Tx, r *Runner, at time.Time) error {
	return db.ExecOne(ctx, tx, `UPDATE runners SET token_digest = ?, updated_at = ? WHERE id = ?`, []byte(secret.Digest(r.Secret)), at, r.ID)
}

func deleteRow(ctx context.Context, tx *db.Tx, id int64) error {
	return db.ExecOne(ctx, tx, `DELETE FROM runners WHERE id = ?`, id)
}

// ProjectIDs returns the projects of a project runner, its owner first.
func ProjectIDs(ctx context.Context, q db.Q, runnerID int64) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT rp.project_id FROM runner_projects rp JOIN projects p ON p.id = rp.project_id
		WHERE rp.runner_id = ? AND p.deleted_at IS NULL ORDER BY rp.position`, runnerID)
}

// ownerProjects returns the owner of each project runner: the first of its
// projects.
func ownerProjects(ctx context.Context, q db.Q, runners []int64) (map[int64]int64, error) {
	type home struct{ runner, project int64 }
	scan := func(s db.Scanner) (home, error) {
		var h home
		err := s.Scan(&h.runner, &h.project)
		return h, err
	}
	list, err := db.All(ctx, q, scan, `
		SELECT rp.runner_id, rp.project_id FROM runner_projects rp JOIN projects p ON p.id = rp.project_id
		WHERE rp.runner_id IN `+db.In(len(runners))+` AND p.deleted_at IS NULL AND NOT EXISTS (
			SELECT 1 FROM runner_projects o JOIN projects op ON op.id = o.project_id
			WHERE o.runner_id = rp.runner_id AND o.position < rp.position AND op.deleted_at IS NULL)`, db.Any(runners)...)
	found := make(map[int64]int64, len(list))
	for _, h := range list {
		found[h.runner] = h.project
	}
	return found, err
}

func insertProject(ctx context.Context, tx *db.Tx, runnerID, projectID int64) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO runner_projects (runner_id, project_id, position)
		SELECT CAST(? AS BIGINT), CAST(? AS BIGINT), COALESCE(MAX(position), 0) + 1 FROM runner_projects WHERE runner_id = ?`, runnerID, projectID, runnerID)
	return err
}

func deleteProject(ctx context.Context, tx *db.Tx, runnerID, projectID int64) error {
	return db.ExecOne(ctx, tx, `DELETE FROM runner_projects WHERE runner_id = ? AND project_id = ?`, runnerID, projectID)
}

const managerColumns = `m.id, m.runner_id, m.system_id, m.info, m.ip, m.contacted_at, m.created_at`

func scanManager(s db.Scanner) (*Manager, error) {
	m := &Manager{}
	var info string
	err := s.Scan(&m.ID, &m.RunnerID, &m.SystemID, &info, &m.IP, db.NullTime(&m.ContactedAt), db.Time(&m.CreatedAt))
	if err != nil {
		return nil, err
	}
	return m, m.readInfo(info)
}

func findManager(ctx context.Context, q db.Q, runnerID int64, systemID string) (*Manager, error) {
	return scanManager(q.QueryRowContext(ctx, `SELECT `+managerColumns+` FROM runner_managers m WHERE m.runner_id = ? AND m.system_id = ?`, runnerID, systemID))
}

// ManagersByID returns runner managers by their IDs.
func ManagersByID(ctx context.Context, q db.Q, ids []int64) (map[int64]*Manager, error) {
	found := make(map[int64]*Manager, len(ids))
	if len(ids) == 0 {
		return found, nil
	}
	list, err := db.All(ctx, q, scanManager, `SELECT `+managerColumns+` FROM runner_managers m WHERE m.id IN `+db.In(len(ids)), db.Any(ids)...)
	for _, m := range list {
		found[m.ID] = m
	}
	return found, err
}

// saveManager saves a runner manager and the contact with its runner.
func saveManager(ctx context.Context, tx *db.Tx, m *Manager, info string) error {
	err := tx.QueryRowContext(ctx, `
		INSERT INTO runner_managers (runner_id, system_id, info, version, ip, contacted_at, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (runner_id, system_id) DO UPDATE SET info = excluded.info, version = excluded.version, ip = excluded.ip, contacted_at = excluded.contacted_at
		RETURNING id, created_at`,
		m.RunnerID, m.SystemID, info, m.Info.Version, m.IP, m.ContactedAt, m.CreatedAt).Scan(&m.ID, db.Time(&m.CreatedAt))
	if err != nil {
		return err
	}
	return db.ExecOne(ctx, tx, `UPDATE runners SET contacted_at = ? WHERE id = ?`, m.ContactedAt, m.RunnerID)
}

func deleteManager(ctx context.Context, tx *db.Tx, runnerID int64, systemID string) error {
	return db.ExecOne(ctx, tx, `DELETE FROM runner_managers WHERE runner_id = ? AND system_id = ?`, runnerID, systemID)
}

// latestManagers returns the runner manager of each runner with the last contact.
func latestManagers(ctx context.Context, q db.Q, runners []int64) (map[int64]*Manager, error) {
	list, err := db.All(ctx, q, scanManager, `SELECT `+managerColumns+` FROM runner_managers m WHERE m.runner_id IN `+db.In(len(runners))+`
		AND NOT EXISTS (SELECT 1 FROM runner_managers o WHERE o.runner_id = m.runner_id AND
			(o.contacted_at > m.contacted_at OR o.contacted_at = m.contacted_at AND o.id > m.id))`, db.Any(runners)...)
	found := make(map[int64]*Manager, len(list))
	for _, m := range list {
		found[m.RunnerID] = m
	}
	return found, err
}

// busyRunners returns which runners have a running job.
func busyRunners(ctx context.Context, q db.Q, runners []int64) (map[int64]bool, error) {
	if len(runners) == 0 {
		return nil, nil
	}
	// The unary plus keeps the databases from using the index by runner, which has
	// all jobs of the runner; few jobs are running.
	list, err := db.All(ctx, q, db.Value[int64], `
		SELECT DISTINCT +j.runner_id FROM jobs j WHERE j.status = 'running' AND +j.runner_id IN `+db.In(len(runners)), db.Any(runners)...)
	found := make(map[int64]bool, len(list))
	for _, id := range list {
		found[id] = true
	}
	return found, err
}

func listManagers(ctx context.Context, q db.Q, runnerID int64) ([]*Manager, error) {
	return db.All(ctx, q, scanManager, `SELECT `+managerColumns+` FROM runner_managers m WHERE m.runner_id = ? ORDER BY m.id DESC`, runnerID)
}

// busyManagers returns the runner managers of a runner that have a job.
func busyManagers(ctx context.Context, q db.Q, runnerID int64) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT DISTINCT +j.runner_manager_id FROM jobs j WHERE +j.runner_id = ? AND j.status = 'running' AND j.runner_manager_id IS NOT NULL`, runnerID)
}

func namespacePath(ctx context.Context, q db.Q, id int64) (path string, err error) {
	err = q.QueryRowContext(ctx, `SELECT full_path FROM namespaces WHERE id = ?`, id).Scan(&path)
	return path, err
}

func projectPath(ctx context.Context, q db.Q, id int64) (path string, err error) {
	err = q.QueryRowContext(ctx, `SELECT full_path FROM projects WHERE id = ?`, id).Scan(&path)
	return path, err
}

// CancelsGracefully reports whether a runner manager runs the after_script of canceled
// jobs.
func CancelsGracefully(ctx context.Context, q db.Q, managerID int64) (bool, error) {
	var text string
	err := q.QueryRowContext(ctx, `SELECT info FROM runner_managers WHERE id = ?`, managerID).Scan(&text)
	if errors.Is(err, db.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var info struct {
		Features map[string]any `json:"features"`
	}
	if err := json.Unmarshal([]byte(text), &info); err != nil {
		return false, nil // reports of runners may be invalid
	}
	can, _ := info.Features["cancel_gracefully"].(bool)
	return can, nil
}

// deleteOfProject deletes the project runners that have no other project.
func deleteOfProject(ctx context.Context, tx *db.Tx, projectID int64) error {
	_, err := tx.ExecContext(ctx, `
		DELETE FROM runners WHERE kind = 'project_type' AND id IN (SELECT runner_id FROM runner_projects WHERE project_id = ?)
			AND NOT EXISTS (SELECT 1 FROM runner_projects rp WHERE rp.runner_id = runners.id AND rp.project_id <> ?)`, projectID, projectID)
	return err
}
