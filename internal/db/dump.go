package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// DumpTable is the content of a table that is copied to another database, which may be of
// another kind.
type DumpTable struct {
	Name    string
	Columns []string
	Last    int64 // the highest ID that was ever used; 0 without IDs
	// Rows returns the values: nil, bool, int64, float64, string or []byte.
	Rows iter.Seq2[[]any, error]
}

// workTable is the table of background jobs. Its schema differs between the databases; a
// dump has the columns that both have.
const workTable = "river_job"

func workColumns() []string {
	return []string{"kind", "args", "queue", "priority", "max_attempts", "scheduled_ms"}
}

// Dump calls each for all tables, in a consistent snapshot, and returns the
// version of the schema and the post-deployment migrations below it that have not
// run. Others can read and write concurrently. began is called when the snapshot
// exists, before the first table. Periodic jobs, the list of nodes, and derived
// data (code indexes) are left out, and so are repositories in object stores.
func (d *DB) Dump(ctx context.Context, began func() error, each func(DumpTable) error) (version DumpVersion, err error) {
	pool := d.writer.db
	if d.kind == sqliteKind {
		// A separate connection, so that writers are not blocked.
		drv, err := sqliteDriver()
		if err != nil {
			return DumpVersion{}, fmt.Errorf("dump: %w", err)
		}
		pool = sql.OpenDB(connector{drv, dsn(d.path, "deferred", []string{"busy_timeout(5000)", "query_only(1)"})})
		defer pool.Close()
	}
	tx, err := pool.BeginTx(ctx, d.snapshot())
	if err != nil {
		return DumpVersion{}, fmt.Errorf("dump: %w", err)
	}
	defer tx.Rollback()
	if err := d.allowIdle(ctx, tx); err != nil {
		return DumpVersion{}, fmt.Errorf("dump: %w", err)
	}
	names, err := d.tables(ctx, tx) // the first read creates the snapshot
	if err == nil {
		version, err = d.dumpVersion(ctx, tx)
	}
	if err == nil {
		err = began()
	}
	if err != nil {
		return DumpVersion{}, fmt.Errorf("dump: %w", err)
	}
	for _, name := range append(names, workTable) {
		t := DumpTable{Name: name}
		if name != workTable {
			if t.Last, err = d.lastID(ctx, tx, name); err != nil {
				return DumpVersion{}, fmt.Errorf("dump %s: %w", name, err)
			}
		}
		if err := d.dumpTable(ctx, tx, &t, each); err != nil {
			return DumpVersion{}, fmt.Errorf("dump %s: %w", name, err)
		}
	}
	return version, nil
}

// allowIdle lets a transaction wait between its statements for as long as it likes, for example
// for a slow disk.
func (d *DB) allowIdle(ctx context.Context, tx *sql.Tx) error {
	if d.kind != postgresKind {
		return nil
	}
	_, err := tx.ExecContext(ctx, "SET LOCAL "+idleTimeout+" = 0")
	return err
}

// DumpVersion is the schema of a dump.
type DumpVersion struct {
	Newest  int64   // migration
	Pending []int64 // migrations below it that had not run
}

// dumpVersion returns the version of the dumped schema, as of the snapshot, because a newer
// release may be migrating the database.
func (d *DB) dumpVersion(ctx context.Context, q plainQuery) (DumpVersion, error) {
	found, err := column[int64](ctx, q, `SELECT version_id FROM goose_db_version WHERE is_applied ORDER BY version_id DESC LIMIT 1`)
	if err != nil {
		return DumpVersion{}, err
	}
	if len(found) == 0 || found[0] == 0 {
		return DumpVersion{}, errors.New("the database is empty")
	}
	v := DumpVersion{Newest: found[0]}
	pending, err := d.pending(ctx, q)
	for _, m := range pending {
		if m.version < v.Newest {
			v.Pending = append(v.Pending, m.version)
		}
	}
	return v, err
}

func (d *DB) snapshot() *sql.TxOptions {
	if d.kind == postgresKind {
		return &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	}
	return nil
}

// plainQuery runs queries without the features of this package: a pool, a connection or a
// transaction of database/sql.
type plainQuery interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// tables returns the names of all tables with data of users.
func (d *DB) tables(ctx context.Context, q plainQuery) ([]string, error) {
	// Text indexes are virtual tables, and keep their entries in shadow tables.
	query := `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name`
	if d.kind == postgresKind {
		query = `SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename`
	}
	names, err := column[string](ctx, q, query)
	return slices.DeleteFunc(names, func(name string) bool {
		switch name {
		case "goose_db_version", "schema_versions", "nodes", "code_indexes",
			"bucket_storages", "bucket_repositories", "bucket_refs", "bucket_ref_marks", "bucket_packs": // repositories are dumped otherwise
			return true
		}
		return strings.HasPrefix(name, "river_")
	}), err
}

func column[T any](ctx context.Context, q plainQuery, query string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []T
	for rows.Next() {
		var one T
		if err := rows.Scan(&one); err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, rows.Err()
}

// lastID returns the highest ID that a table has ever used, because IDs are not
// reused.
func (d *DB) lastID(ctx context.Context, q plainQuery, table string) (int64, error) {
	if d.kind == sqliteKind {
		found, err := column[int64](ctx, q, `SELECT seq FROM sqlite_sequence WHERE name = ?`, table)
		if err != nil || len(found) == 0 {
			return 0, err
		}
		return found[0], nil
	}
	sequence, err := d.sequence(ctx, q, table)
	if err != nil || sequence == "" {
		return 0, err
	}
	found, err := column[int64](ctx, q, `SELECT greatest(CASE WHEN s.is_called THEN s.last_value ELSE 0 END, (SELECT COALESCE(max(t.id), 0) FROM `+table+` t)) FROM `+sequence+` s`)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	return found[0], nil
}

// sequence returns the sequence of the IDs of a table, or an empty string.
func (d *DB) sequence(ctx context.Context, q plainQuery, table string) (string, error) {
	columns, err := column[string](ctx, q, `SELECT column_name FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name = $1 AND column_name = 'id' AND is_identity = 'YES'`, table)
	if err != nil || len(columns) == 0 {
		return "", err
	}
	found, err := column[sql.NullString](ctx, q, `SELECT pg_get_serial_sequence($1, 'id')`, table)
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0].String, nil
}

func (d *DB) dumpTable(ctx context.Context, q plainQuery, t *DumpTable, each func(DumpTable) error) error {
	query := `SELECT * FROM ` + t.Name
	if t.Name == workTable {
		query = d.workQuery()
	}
	types, err := d.columnTypes(ctx, q, t.Name)
	if err != nil {
		return err
	}
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	if t.Columns, err = rows.Columns(); err != nil {
		return err
	}
	t.Rows = func(yield func([]any, error) bool) {
		for rows.Next() {
			values := make([]any, len(t.Columns))
			to := make([]any, len(values))
			for i := range values {
				to[i] = &values[i]
			}
			err := rows.Scan(to...)
			for i := range values { // SQLite stores booleans as numbers
				if kind := types[t.Columns[i]]; err == nil && t.Name != workTable {
					values[i], err = fitted(values[i], kind)
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(values, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, err)
		}
	}
	return each(*t)
}

// workQuery returns the query for unfinished background jobs.
func (d *DB) workQuery() string {
	args, at := "CAST(args AS TEXT)", "CAST((julianday(scheduled_at) - 2440587.5) * 86400000 AS INTEGER)"
	if d.kind == postgresKind {
		args, at = "CAST(args AS TEXT)", "CAST(extract(epoch FROM scheduled_at) * 1000 AS BIGINT)"
	}
	return `SELECT kind, ` + args + ` AS args, queue, CAST(priority AS BIGINT) AS priority, CAST(max_attempts AS BIGINT) AS max_attempts, ` + at + ` AS scheduled_ms
		FROM river_job WHERE state IN ('available', 'pending', 'retryable', 'running', 'scheduled') AND kind <> 'queue.every' ORDER BY id`
}
