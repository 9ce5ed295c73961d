package db

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Load fills an empty database with the tables of Dump, of a database with the
// given schema version, and migrates it to the newest version. tables calls put
// with each table. After an error the database is empty again. It refuses a
// version that is newer than this program, and a database that is not empty.
func (d *DB) Load(ctx context.Context, version DumpVersion, tables func(put func(DumpTable) error) error) (err error) {
	list, err := d.listMigrations()
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	if know := list[len(list)-1].version; version.Newest > know {
		return fmt.Errorf("load: it has schema version %d, this program knows %d: use a newer release", version.Newest, know)
	}
	if err := d.Empty(ctx); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("load: %w", err), d.Wipe(context.WithoutCancel(ctx)))
		}
	}()
	m, err := d.newMigrator()
	if err != nil {
		return err
	}
	defer m.close()
	for _, one := range list {
		if one.version > version.Newest || slices.Contains(version.Pending, one.version) {
			continue
		}
		if err := m.apply(ctx, one); err != nil {
			return err
		}
	}
	if err := m.migrateQueue(ctx); err != nil {
		return err
	}
	if err := d.loadAll(ctx, tables); err != nil {
		return err
	}
	if err := d.Migrate(ctx); err != nil || d.kind == sqliteKind {
		return err
	}
	// Without statistics, PostgreSQL assumes that the tables are empty.
	_, err = d.writer.db.ExecContext(ctx, `ANALYZE`)
	return err
}

// Empty returns an error if the database contains any table, whoever created it.
func (d *DB) Empty(ctx context.Context) error {
	query := `SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\' LIMIT 1`
	if d.kind == postgresKind {
		query = `SELECT relname FROM pg_class c WHERE relnamespace = current_schema()::regnamespace AND ` + ownPart("pg_class", "c.oid") + ` LIMIT 1`
	}
	found, err := column[string](ctx, d.writer.db, query)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("the database is not empty: there is %q", found[0])
	}
	return err
}

// ownPart returns the condition that an object of PostgreSQL belongs to no
// extension.
func ownPart(catalog, oid string) string {
	return `NOT EXISTS (SELECT 1 FROM pg_depend e WHERE e.classid = '` + catalog + `'::regclass AND e.objid = ` + oid + ` AND e.deptype = 'e')`
}

// Wipe deletes everything in a database that was empty when Load began. svc
// restore calls it after a later error.
func (d *DB) Wipe(ctx context.Context) error {
	queries := []string{`SELECT 'DROP TABLE "' || name || '"' FROM pragma_table_list
		WHERE schema = 'main' AND type IN ('table', 'virtual') AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY type DESC`}
	before := `PRAGMA foreign_keys = OFF` // its connection is closed afterwards
	if d.kind == postgresKind {
		before = `SELECT 1`
		queries = []string{
			`SELECT 'DROP TABLE ' || c.oid::regclass || ' CASCADE' FROM pg_class c
				WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace AND ` + ownPart("pg_class", "c.oid"),
			`SELECT 'DROP SEQUENCE ' || c.oid::regclass FROM pg_class c
				WHERE relkind = 'S' AND relnamespace = current_schema()::regnamespace AND ` + ownPart("pg_class", "c.oid"),
			`SELECT 'DROP FUNCTION ' || p.oid::regprocedure || ' CASCADE' FROM pg_proc p
				WHERE prokind = 'f' AND pronamespace = current_schema()::regnamespace AND ` + ownPart("pg_proc", "p.oid"),
			`SELECT 'DROP TYPE ' || t.oid::regtype || ' CASCADE' FROM pg_type t
				WHERE typtype = 'e' AND typnamespace = current_schema()::regnamespace AND ` + ownPart("pg_type", "t.oid"),
		}
	}
	conn, err := d.writer.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, before); err != nil {
		return err
	}
	if d.kind == sqliteKind {
		defer conn.ExecContext(ctx, `PRAGMA foreign_keys = ON`)
	}
	for _, query := range queries {
		statements, err := column[string](ctx, conn, query)
		if err != nil {
			return err
		}
		for _, statement := range statements {
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
	}
	return nil
}

func (d *DB) loadAll(ctx context.Context, tables func(put func(DumpTable) error) error) (err error) {
	conn, err := d.writer.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if d.kind == sqliteKind {
		// Foreign keys are checked at the end, because rows come in any order.
		if _, err := conn.ExecContext(ctx, `PRAGMA foreign_keys = OFF`); err != nil {
			return err
		}
		defer func() {
			_, off := conn.ExecContext(context.WithoutCancel(ctx), `PRAGMA foreign_keys = ON`)
			err = errors.Join(err, off)
		}()
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := d.allowIdle(ctx, tx); err != nil {
		return err
	}
	restore, err := d.suspend(ctx, tx)
	if err != nil {
		return err
	}
	names, err := d.tables(ctx, tx)
	if err != nil {
		return err
	}
	for _, name := range names { // the dump contains the rows that migrations inserted
		if _, err := tx.ExecContext(ctx, `DELETE FROM `+name); err != nil {
			return err
		}
	}
	err = tables(func(t DumpTable) error {
		if t.Name == workTable {
			return d.loadWork(ctx, tx, t)
		}
		if !slices.Contains(names, t.Name) {
			return fmt.Errorf("there is no table %q", t.Name)
		}
		if err := d.loadTable(ctx, tx, t); err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
		return nil
	})
	if err == nil {
		err = restore()
	}
	if err != nil {
		return err
	}
	return tx.Commit()
}

// suspend disables foreign keys until restore is called, because rows may refer to
// later rows.
func (d *DB) suspend(ctx context.Context, tx *sql.Tx) (restore func() error, err error) {
	if d.kind == sqliteKind {
		return func() error {
			broken, err := column[string](ctx, tx, `SELECT "table" || ' ' || rowid || ' -> ' || "parent" FROM pragma_foreign_key_check LIMIT 1`)
			if err == nil && len(broken) > 0 {
				err = fmt.Errorf("a row refers to a missing row: %s", broken[0])
			}
			return err
		}, nil
	}
	const which = ` FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid JOIN pg_namespace n ON n.oid = c.connamespace
		WHERE c.contype = 'f' AND n.nspname = current_schema() AND r.relname NOT LIKE 'river\_%' ORDER BY r.relname, c.conname`
	back, err := column[string](ctx, tx, `SELECT 'ALTER TABLE ' || r.relname || ' ADD CONSTRAINT ' || quote_ident(c.conname) || ' ' || pg_get_constraintdef(c.oid)`+which)
	if err != nil {
		return nil, err
	}
	away, err := column[string](ctx, tx, `SELECT 'ALTER TABLE ' || r.relname || ' DROP CONSTRAINT ' || quote_ident(c.conname)`+which)
	if err != nil {
		return nil, err
	}
	run := func(list []string) error {
		for _, statement := range list {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	}
	return func() error { return run(back) }, run(away)
}

const (
	// maxValues is the maximum number of values in a statement on both databases.
	maxValues = 30_000
	// maxBatch is the maximum number of bytes of text in a statement.
	maxBatch = 4 << 20
)

func (d *DB) loadTable(ctx context.Context, tx *sql.Tx, t DumpTable) error {
	types, err := d.columnTypes(ctx, tx, t.Name)
	if err != nil {
		return err
	}
	for _, c := range t.Columns {
		if _, ok := types[c]; !ok {
			return fmt.Errorf("there is no column %q", c)
		}
	}
	most := min(200, maxValues/max(len(t.Columns), 1))
	bytes := 0
	head := `INSERT INTO ` + t.Name + ` (` + strings.Join(t.Columns, ", ") + `) VALUES `
	var values []any
	flush := func() error {
		n := len(values) / max(len(t.Columns), 1)
		if n == 0 {
			return nil
		}
		one := "(" + strings.TrimSuffix(strings.Repeat("?, ", len(t.Columns)), ", ") + ")"
		_, err := tx.ExecContext(ctx, d.bound(head+strings.TrimSuffix(strings.Repeat(one+", ", n), ", ")), values...)
		clear(values)
		values, bytes = values[:0], 0
		return err
	}
	for row, err := range t.Rows {
		if err != nil {
			return err
		}
		if len(row) != len(t.Columns) {
			return fmt.Errorf("a row has %d values for %d columns", len(row), len(t.Columns))
		}
		for i, v := range row {
			fit, err := fitted(v, types[t.Columns[i]])
			if err != nil {
				return fmt.Errorf("column %s: %w", t.Columns[i], err)
			}
			switch v := fit.(type) {
			case string:
				fit = d.storable(v)
				bytes += len(v)
			case []byte:
				bytes += len(v)
			}
			values = append(values, fit)
		}
		if len(values) >= most*len(t.Columns) || bytes > maxBatch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	return d.setLast(ctx, tx, t)
}

// storable returns a text that the database can store: PostgreSQL accepts neither
// NUL characters nor invalid UTF-8.
func (d *DB) storable(text string) string {
	if d.kind == sqliteKind {
		return text
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// bound converts the placeholders of a statement to those of the driver.
func (d *DB) bound(query string) string {
	if d.kind == sqliteKind {
		return query
	}
	return rebind(query)
}

// setLast sets the sequence of the IDs, so that no ID is used again.
func (d *DB) setLast(ctx context.Context, tx *sql.Tx, t DumpTable) error {
	if t.Last <= 0 {
		return nil
	}
	if d.kind == sqliteKind {
		_, err := tx.ExecContext(ctx, `DELETE FROM sqlite_sequence WHERE name = ?`, t.Name)
		if err == nil {
			_, err = tx.ExecContext(ctx, `INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)`, t.Name, t.Last)
		}
		return err
	}
	sequence, err := d.sequence(ctx, tx, t.Name)
	if err != nil || sequence == "" {
		return err
	}
	_, err = tx.ExecContext(ctx, `SELECT setval($1::regclass, $2)`, sequence, t.Last)
	return err
}

// columnTypes returns the types of the columns of a table, in lower case.
func (d *DB) columnTypes(ctx context.Context, q plainQuery, table string) (map[string]string, error) {
	query := `SELECT name || ' ' || lower(type) FROM pragma_table_info(?)`
	if d.kind == postgresKind {
		query = `SELECT column_name || ' ' || data_type FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1`
	}
	list, err := column[string](ctx, q, query, table)
	types := map[string]string{}
	for _, one := range list {
		name, kind, _ := strings.Cut(one, " ")
		types[name] = kind
	}
	return types, err
}

// fitted converts a value to the type of a column.
func fitted(v any, kind string) (any, error) {
	switch kind {
	case "boolean":
		switch v := v.(type) {
		case int64:
			return v != 0, nil
		case json.Number:
			return v.String() != "0", nil
		case nil, bool:
			return v, nil
		}
	case "bigint", "integer":
		switch v := v.(type) {
		case json.Number:
			return v.Int64()
		case nil, int64:
			return v, nil
		}
	case "double precision":
		switch v := v.(type) {
		case json.Number:
			return v.Float64()
		case int64:
			return float64(v), nil
		case nil, float64:
			return v, nil
		}
	case "text":
		switch v := v.(type) {
		case []byte:
			return string(v), nil
		case nil, string:
			return v, nil
		}
	case "bytea", "blob":
		switch v := v.(type) {
		case string:
			return []byte(v), nil
		case nil, []byte:
			return v, nil
		}
	}
	return nil, fmt.Errorf("a value of type %T does not fit %q", v, kind)
}

// loadWork inserts the unfinished background jobs.
func (d *DB) loadWork(ctx context.Context, tx *sql.Tx, t DumpTable) error {
	if !slices.Equal(t.Columns, workColumns()) {
		return fmt.Errorf("work has the columns %v", t.Columns)
	}
	for row, err := range t.Rows {
		if err != nil {
			return err
		}
		var v [6]any
		for i, kind := range []string{"text", "text", "text", "bigint", "bigint", "bigint"} {
			if len(row) != len(v) {
				return fmt.Errorf("work has %d values", len(row))
			}
			if v[i], err = fitted(row[i], kind); err != nil || v[i] == nil {
				return fmt.Errorf("background job: invalid value %d: %w", i, err)
			}
		}
		at := time.UnixMilli(v[5].(int64)).UTC()
		state := "available"
		if at.After(time.Now()) {
			state = "scheduled"
		}
		if d.kind == postgresKind {
			_, err = tx.ExecContext(ctx, `
				INSERT INTO river_job (kind, args, queue, priority, max_attempts, scheduled_at, state)
				VALUES ($1, CAST($2 AS jsonb), $3, $4, $5, $6, CAST($7 AS river_job_state))`, v[0], v[1], v[2], v[3], v[4], at, state)
		} else {
			_, err = tx.ExecContext(ctx, `
				INSERT INTO river_job (kind, args, queue, priority, max_attempts, scheduled_at, state, created_at, metadata, tags)
				VALUES (?, ?, ?, ?, ?, ?, ?, datetime('now', 'subsec'), json('{}'), json('[]'))`,
				v[0], []byte(v[1].(string)), v[2], v[3], v[4], at.Format("2006-01-02 15:04:05.999"), state)
		}
		if err != nil {
			return fmt.Errorf("work: %w", err)
		}
	}
	return nil
}
