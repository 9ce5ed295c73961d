package repo

import (
	"context"

	"svc/internal/db"
)

// findStorage tells on which storage a repository lies. It needs no more than
// the oldest schema has: a backup is made before a newer release changes it.
func findStorage(ctx context.Context, q db.Q, table string, id int64) (storage string, err error) {
	err = q.QueryRowContext(ctx, `SELECT storage FROM `+table+` WHERE id = ?`, id).Scan(&storage)
	return storage, err
}
