package db

import "context"

// OutsideChanges returns a number that changes when another process has written to the
// SQLite file. Writes of this process do not change it.
func (d *DB) OutsideChanges(ctx context.Context) (int64, error) {
	var version int64
	err := d.writer.db.QueryRowContext(ctx, "PRAGMA data_version").Scan(&version)
	return version, mapError(err)
}
