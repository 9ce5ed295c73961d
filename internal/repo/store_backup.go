package repo

import (
	"context"

	"svc/internal/db"
)

// findStorage returns the storage of a repository. It works with the oldest
// schema: a backup is made before a newer release migrates it.
func findStorage(ctx context.Context, q db.Q, table string, id int64) (storage string, err error) {
	err = q.QueryRowContext(ctx, `SELECT storage FROM `+table+` WHERE id = ?`, id).Scan(&storage)
	return storage, err
}
