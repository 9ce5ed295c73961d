package repo

import (
	"context"
	"time"

	"svc/internal/db"
)

// findStorage returns the storage of a repository. It works with the oldest
// schema: a backup is made before a newer release migrates it.
func findStorage(ctx context.Context, q db.Q, table string, id int64) (storage string, err error) {
	err = q.QueryRowContext(ctx, `SELECT storage FROM `+table+` WHERE id = ?`, id).Scan(&storage)
	return storage, err
}

// RecordedTable is the table of recorded pushes, whose IDs a backup collects.
const RecordedTable = "recorded_pushes"

// insertRecorded records the changes of a push, for backups. One of the IDs is 0.
func insertRecorded(ctx context.Context, q db.Q, projectID, auxRepoID, pushID int64, changes string, at time.Time) error {
	_, err := q.ExecContext(ctx, `INSERT INTO recorded_pushes (project_id, annex_id, push_id, changes, created_at) VALUES (NULLIF(?, 0), NULLIF(?, 0), ?, ?, ?)`,
		projectID, auxRepoID, pushID, changes, at)
	return err
}

// recordedPush is a row of recorded_pushes.
type recordedPush struct {
	id, pushID int64
	changes    string
}

func scanRecorded(s db.Scanner) (p recordedPush, err error) {
	err = s.Scan(&p.id, &p.pushID, &p.changes)
	return p, err
}

// findRecorded finds the recorded pushes to a repository after an ID.
func findRecorded(ctx context.Context, q db.Q, h Held, after int64, limit int) ([]recordedPush, error) {
	column, id := h.column()
	return db.All(ctx, q, scanRecorded, `SELECT id, push_id, changes FROM recorded_pushes WHERE `+column+` = ? AND id > ? ORDER BY id LIMIT ?`, id, after, limit)
}

// findRecordedPush finds what was recorded of the push with an ID.
func findRecordedPush(ctx context.Context, q db.Q, h Held, pushID int64) ([]recordedPush, error) {
	column, id := h.column()
	return db.All(ctx, q, scanRecorded, `SELECT id, push_id, changes FROM recorded_pushes WHERE `+column+` = ? AND push_id = ?`, id, pushID)
}

// findPushesInProgress finds the pushes to a repository that are in progress.
func findPushesInProgress(ctx context.Context, q db.Q, h Held) ([]leftover, error) {
	if h.ProjectID != 0 {
		return findBegun(ctx, q, h.ProjectID)
	}
	return db.All(ctx, q, scanLeftover, `SELECT id, annex_id, actor, push FROM annex_pushes WHERE annex_id = ? ORDER BY id LIMIT 1000`, h.AuxRepoID)
}

// column returns the column that has the ID of the repository, and that ID.
func (h Held) column() (string, int64) {
	if h.ProjectID != 0 {
		return "project_id", h.ProjectID
	}
	return "annex_id", h.AuxRepoID
}

// deleteRecorded deletes the recorded pushes before a time.
func deleteRecorded(ctx context.Context, q db.Q, before time.Time) error {
	_, err := q.ExecContext(ctx, `DELETE FROM recorded_pushes WHERE created_at < ?`, before)
	return err
}
