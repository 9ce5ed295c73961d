package db

import (
	"context"
	"fmt"
)

// Check checks the database and returns a description of it. On SQLite it reads
// the whole file and reports corruption.
func (d *DB) Check(ctx context.Context) (string, error) {
	if d.kind == postgresKind {
		var version string
		if err := d.QueryRowContext(ctx, "SHOW server_version").Scan(&version); err != nil {
			return "", err
		}
		return "PostgreSQL " + version, nil
	}
	var verdict, version string
	check, err := d.reader.query(ctx, "PRAGMA quick_check(1)", nil)
	if err != nil {
		return "", err
	}
	if err := (&Row{rows: &Rows{rows: check}}).Scan(&verdict); err != nil {
		return "", err
	}
	if verdict != "ok" {
		return "", fmt.Errorf("%s is damaged: %s", d.path, verdict)
	}
	if err := d.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version); err != nil {
		return "", err
	}
	return "SQLite " + version, nil
}
