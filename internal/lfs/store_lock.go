package lfs

import (
	"context"

	"svc/internal/db"
)

const lockColumns = `l.id, l.project_id, l.user_id, l.path, l.created_at, u.name`

const lockTables = `lfs_locks l JOIN users u ON u.id = l.user_id`

func scanLock(s db.Scanner) (*Lock, error) {
	l := &Lock{}
	err := s.Scan(&l.ID, &l.projectID, &l.UserID, &l.Path, db.Time(&l.LockedAt), &l.Owner)
	return l, err
}

func findLock(ctx context.Context, q db.Q, projectID, id int64) (*Lock, error) {
	l, err := scanLock(q.QueryRowContext(ctx, `SELECT `+lockColumns+` FROM `+lockTables+` WHERE l.project_id = ? AND l.id = ?`, projectID, id))
	return l, db.NotFound(err, "Lock")
}

func findLockByPath(ctx context.Context, q db.Q, projectID int64, path string) (*Lock, error) {
	l, err := scanLock(q.QueryRowContext(ctx, `SELECT `+lockColumns+` FROM `+lockTables+` WHERE l.project_id = ? AND l.path = ?`, projectID, path))
	return l, db.NotFound(err, "Lock")
}

func findLocks(ctx context.Context, q db.Q, projectID int64, f LockFilter) ([]*Lock, error) {
	var w db.Where
	w.And(`l.project_id = ?`, projectID)
	w.And(`l.id >= ?`, f.From)
	if f.Path != "" {
		w.And(`l.path = ?`, f.Path)
	}
	if f.ID != 0 {
		w.And(`l.id = ?`, f.ID)
	}
	return db.All(ctx, q, scanLock, `SELECT `+lockColumns+` FROM `+lockTables+w.SQL()+` ORDER BY l.id LIMIT ?`, w.Args(f.Limit)...)
}

// findLocksOf returns the locks of other users on paths.
func findLocksOf(ctx context.Context, q db.Q, projectID, userID int64, paths []string) ([]*Lock, error) {
	return db.All(ctx, q, scanLock, `SELECT `+lockColumns+` FROM `+lockTables+`
		WHERE l.project_id = ? AND l.user_id <> ? AND l.path IN `+db.In(len(paths))+` ORDER BY l.id LIMIT 1`,
		append([]any{projectID, userID}, db.Any(paths)...)...)
}

// othersLock reports whether other users have locks in a project.
func othersLock(ctx context.Context, q db.Q, projectID, userID int64) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM lfs_locks WHERE project_id = ? AND user_id <> ? LIMIT 1`, projectID, userID)
}

func countLocks(ctx context.Context, q db.Q, projectID int64) (int, error) {
	var n int
	err := q.QueryRowContext(ctx, `SELECT count(*) FROM lfs_locks WHERE project_id = ?`, projectID).Scan(&n)
	return n, err
}

func insertLock(ctx context.Context, tx *db.Tx, l *Lock) error {
	return tx.QueryRowContext(ctx, `INSERT INTO lfs_locks (project_id, user_id, path, created_at) VALUES (?, ?, ?, ?) RETURNING id`,
		l.projectID, l.UserID, l.Path, l.LockedAt).Scan(&l.ID)
}

func deleteLock(ctx context.Context, q db.Q, id int64) error {
	return db.NotFound(db.ExecOne(ctx, q, `DELETE FROM lfs_locks WHERE id = ?`, id), "Lock")
}
