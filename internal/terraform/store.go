package terraform

import (
	"context"
	"encoding/json"
	"time"

	"svc/internal/db"
)

const stateColumns = `s.id, s.project_id, s.name, s.lock_id, s.lock_info, s.locked_by, coalesce(l.username, ''), s.locked_at, s.created_at, s.updated_at,
	coalesce(v.id, 0), coalesce(v.serial, 0), coalesce(v.size, 0), coalesce(v.sha256, ''), v.created_by, coalesce(u.username, ''), v.job_id, v.created_at,
	coalesce(v.blob, ''), coalesce(v.sealed_key, '')`

const stateFrom = `terraform_states s
	LEFT JOIN users l ON l.id = s.locked_by
	LEFT JOIN terraform_state_versions v ON v.id = (SELECT max(n.id) FROM terraform_state_versions n WHERE n.state_id = s.id)
	LEFT JOIN users u ON u.id = v.created_by`

func scanState(sc db.Scanner) (*State, error) {
	var st State
	var lock Lock
	var info string
	var at, saved *time.Time
	var v Version
	err := sc.Scan(&st.ID, &st.ProjectID, &st.Name, &lock.ID, &info, &lock.UserID, &lock.User, db.NullTime(&at), db.Time(&st.CreatedAt), db.Time(&st.UpdatedAt),
		&v.ID, &v.Serial, &v.Size, &v.SHA256, &v.CreatedBy, &v.Author, &v.JobID, db.NullTime(&saved), &v.blob, &v.sealedKey)
	if err != nil {
		return nil, err
	}
	if lock.ID != "" && at != nil {
		lock.At = *at
		if err := json.Unmarshal([]byte(info), &lock.Info); err != nil {
			return nil, err
		}
		st.Lock = &lock
	}
	if v.ID != 0 && saved != nil {
		v.StateID, v.CreatedAt = st.ID, *saved
		st.Current = &v
	}
	return &st, nil
}

func findState(ctx context.Context, q db.Q, projectID int64, name string) (*State, error) {
	return scanState(q.QueryRowContext(ctx, `SELECT `+stateColumns+` FROM `+stateFrom+` WHERE s.project_id = ? AND s.name = ?`, projectID, name))
}

func listStates(ctx context.Context, d *db.DB, projectID int64, p db.Paging) (db.Page[*State], error) {
	var w db.Where
	w.And(`s.project_id = ?`, projectID)
	return db.List(ctx, d, db.Query[*State]{
		Columns: stateColumns, From: stateFrom, Where: w, Order: []db.Order{{Name: "s.name"}}, Scan: scanState,
		Keys: func(st *State) []any { return []any{st.Name} },
	}, p)
}

func countStates(ctx context.Context, q db.Q, projectID int64) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM terraform_states WHERE project_id = ?`, projectID).Scan(&n)
	return n, err
}

func findStateIDs(ctx context.Context, q db.Q, projectID int64) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT id FROM terraform_states WHERE project_id = ?`, projectID)
}

func insertState(ctx context.Context, q db.Q, projectID int64, name string, now time.Time) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO terraform_states (project_id, name, created_at, updated_at) VALUES (?, ?, ?, ?)
		ON CONFLICT (project_id, name) DO NOTHING`, projectID, name, now, now)
	return err
}

func touchState(ctx context.Context, q db.Q, id int64, now time.Time) error {
	return db.ExecOne(ctx, q, `UPDATE terraform_states SET updated_at = ? WHERE id = ?`, now, id)
}

func deleteState(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM terraform_states WHERE id = ?`, id)
}

func saveLock(ctx context.Context, q db.Q, id int64, l *Lock, info string) error {
	return db.ExecOne(ctx, q, `UPDATE terraform_states SET lock_id = ?, lock_info = ?, locked_by = ?, locked_at = ?, updated_at = ? WHERE id = ? AND lock_id = ''`,
		l.ID, info, l.UserID, l.At, l.At, id)
}

func clearLock(ctx context.Context, q db.Q, id int64, now time.Time) error {
	return db.ExecOne(ctx, q, `UPDATE terraform_states SET lock_id = '', lock_info = '', locked_by = NULL, locked_at = NULL, updated_at = ? WHERE id = ?`, now, id)
}

const (
	versionColumns = `v.id, v.state_id, v.serial, v.size, v.sha256, v.created_by, coalesce(u.username, ''), v.job_id, v.created_at, v.blob, v.sealed_key`
	versionFrom    = `terraform_state_versions v LEFT JOIN users u ON u.id = v.created_by`
)

func scanVersion(sc db.Scanner) (*Version, error) {
	var v Version
	err := sc.Scan(&v.ID, &v.StateID, &v.Serial, &v.Size, &v.SHA256, &v.CreatedBy, &v.Author, &v.JobID, db.Time(&v.CreatedAt), &v.blob, &v.sealedKey)
	return &v, err
}

func findVersion(ctx context.Context, q db.Q, stateID, serial int64) (*Version, error) {
	return scanVersion(q.QueryRowContext(ctx, `SELECT `+versionColumns+` FROM `+versionFrom+` WHERE v.state_id = ? AND v.serial = ?`, stateID, serial))
}

func listVersions(ctx context.Context, d *db.DB, stateID int64, p db.Paging) (db.Page[*Version], error) {
	var w db.Where
	w.And(`v.state_id = ?`, stateID)
	return db.List(ctx, d, db.Query[*Version]{
		Columns: versionColumns, From: versionFrom, Where: w, Order: []db.Order{{Name: "v.id"}}, Desc: true, Scan: scanVersion,
		Keys: func(v *Version) []any { return []any{v.ID} },
	}, p)
}

// findOldVersions returns some of the versions beyond the newest that are kept.
func findOldVersions(ctx context.Context, q db.Q, stateID int64, keep int) ([]*Version, error) {
	return db.All(ctx, q, scanVersion, `
		SELECT `+versionColumns+` FROM `+versionFrom+` WHERE v.state_id = ? ORDER BY v.id DESC LIMIT 100 OFFSET ?`, stateID, keep)
}

func findBlobs(ctx context.Context, q db.Q, stateID int64) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `SELECT blob FROM terraform_state_versions WHERE state_id = ?`, stateID)
}

func blobUsed(ctx context.Context, q db.Q, key string) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM terraform_state_versions WHERE blob = ?`, key)
}

func insertVersion(ctx context.Context, q db.Q, v *Version) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO terraform_state_versions (state_id, serial, size, sha256, blob, sealed_key, created_by, job_id, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		v.StateID, v.Serial, v.Size, v.SHA256, v.blob, v.sealedKey, v.CreatedBy, v.JobID, v.CreatedAt).Scan(&v.ID)
}

func deleteVersion(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM terraform_state_versions WHERE id = ?`, id)
}
