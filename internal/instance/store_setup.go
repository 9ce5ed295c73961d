package instance

import (
	"context"
	"errors"
	"time"

	"svc/internal/db"
)

// countInstanceRunners returns whether there are runners that all projects can use,
// and how many of them had contact since a time. Paused runners do not count.
func countInstanceRunners(ctx context.Context, q db.Q, since time.Time) (all, online int64, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT count(*), count(CASE WHEN contacted_at >= ? THEN 1 END) FROM runners WHERE kind = 'instance_type' AND NOT paused`, since).Scan(&all, &online)
	return all, online, err
}

// backupSetting is the key of the last backup in the settings table.
const backupSetting = "last_backup"

// lastBackup returns when the last backup was created, or nil.
func lastBackup(ctx context.Context, q db.Q) (*time.Time, error) {
	var text string
	err := q.QueryRowContext(ctx, `SELECT value FROM settings WHERE key = ?`, backupSetting).Scan(&text)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	at, err := time.Parse(time.RFC3339, text)
	return &at, err
}

func saveBackup(ctx context.Context, q db.Q, made time.Time) error {
	_, err := q.ExecContext(ctx, `INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
		backupSetting, made.UTC().Format(time.RFC3339))
	return err
}
