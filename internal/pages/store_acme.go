package pages

import (
	"context"
	"errors"
	"strings"
	"time"

	"svc/internal/db"
)

func storeValue(ctx context.Context, q db.Q, name, sealed string, size int, now time.Time) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO pages_acme (name, value, size, updated_at) VALUES (?, ?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value, size = excluded.size, updated_at = excluded.updated_at`, name, sealed, size, now)
	return err
}

func findValue(ctx context.Context, q db.Q, name string) (sealed string, size int64, at time.Time, err error) {
	err = q.QueryRowContext(ctx, `SELECT value, size, updated_at FROM pages_acme WHERE name = ?`, name).Scan(&sealed, &size, db.Time(&at))
	return sealed, size, at, err
}

// belowName returns the LIKE pattern for the values in a directory.
func belowName(name string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(strings.TrimSuffix(name, "/")) + "/%"
}

// deleteValues deletes a value, or all values in a directory.
func deleteValues(ctx context.Context, q db.Q, name string) error {
	_, err := q.ExecContext(ctx, `DELETE FROM pages_acme WHERE name = ? OR name LIKE ? ESCAPE '\'`, name, belowName(name))
	return err
}

// listValues returns the names of a value, or of all values in a directory.
func listValues(ctx context.Context, q db.Q, name string, limit int) ([]string, error) {
	if name == "" {
		return db.All(ctx, q, db.Value[string], `SELECT name FROM pages_acme ORDER BY name LIMIT ?`, limit)
	}
	return db.All(ctx, q, db.Value[string], `SELECT name FROM pages_acme WHERE name = ? OR name LIKE ? ESCAPE '\' ORDER BY name LIMIT ?`,
		name, belowName(name), limit)
}

// takeLock takes a lock if it is free or has expired, and reports whether it did.
func takeLock(ctx context.Context, q db.Q, name, holder string, now time.Time, lease time.Duration) (bool, error) {
	var got string
	err := q.QueryRowContext(ctx, `
		INSERT INTO pages_acme_locks (name, holder, expires_at) VALUES (?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
		WHERE pages_acme_locks.expires_at < ? RETURNING holder`, name, holder, now.Add(lease), now).Scan(&got)
	if errors.Is(err, db.ErrNoRows) {
		return false, nil
	}
	return got == holder, err
}

// keepLock extends a lock. It returns db.ErrNoRows if another holder has it.
func keepLock(ctx context.Context, q db.Q, name, holder string, until time.Time) error {
	return db.ExecOne(ctx, q, `UPDATE pages_acme_locks SET expires_at = ? WHERE name = ? AND holder = ?`, until, name, holder)
}

func dropLock(ctx context.Context, q db.Q, name, holder string) error {
	_, err := q.ExecContext(ctx, `DELETE FROM pages_acme_locks WHERE name = ? AND holder = ?`, name, holder)
	return err
}
