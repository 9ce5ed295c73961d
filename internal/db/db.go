// Package db provides one interface to SQLite and PostgreSQL.
//
// SQL is written once, with ? placeholders; this package rebinds them, keeps
// prepared statements, maps unique and foreign-key violations to one error
// type and stores times as microseconds since 1970 on both databases. On
// SQLite all writes go through one connection, so that a writer waits for its
// turn instead of getting the error that the database is locked.
package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"time"

	"svc/internal/errs"
	"svc/internal/limit"
)

// Q runs queries: the whole database or one transaction. Store functions
// take a Q, so that the operation above them decides which.
type Q interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *Row
}

// Scanner is a row that can be read: *Row or *Rows.
type Scanner interface {
	Scan(dest ...any) error
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	kind      kind
	writer    pool
	generic   pool    // PostgreSQL only: see planned
	reader    *reader // SQLite only; PostgreSQL reads and writes with one pool
	path      string
	url       string
	counts    overCache
	snapshots snapshotCache // PostgreSQL only
	limits    ReadLimits
	searches  *limit.Share

	hasTrigrams atomic.Pointer[bool] // of PostgreSQL; nil: not known yet

	watches []watch
	extra   fs.FS // migrations in addition to those of the program

	// SQLite only: the lock of writers, the open group, and its statements.
	turn   *turn
	group  *group
	points points
}

type kind int

const (
	sqliteKind kind = iota
	postgresKind
)

// patience is the maximum time that a statement or transaction waits for others. It is
// far above normal waiting times: if it is exceeded, something blocks the database.
const patience = 30 * time.Second

// Open opens the PostgreSQL database that url names, or, when url is empty,
// the SQLite file at path, which it creates if need be. It changes no schema:
// see Migrate.
func Open(ctx context.Context, url, path string) (*DB, error) {
	open := func() (*DB, error) { return openSQLite(ctx, path) }
	if url != "" {
		if !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://") {
			return nil, errors.New("open database: the URL must start with postgres://")
		}
		open = func() (*DB, error) { return openPostgres(ctx, url) }
	}
	d, err := open()
	if err != nil {
		return nil, err
	}
	d.LimitReads(DefaultReadLimits)
	return d, nil
}

// Close closes all connections. On SQLite it first folds the write-ahead log
// into the file.
func (d *DB) Close() error {
	if d.kind == postgresKind {
		return errors.Join(d.generic.db.Close(), d.writer.db.Close())
	}
	d.reader.close()
	return d.writer.db.Close()
}

// Ping reports whether the database answers.
func (d *DB) Ping(ctx context.Context) error {
	var one int
	return d.QueryRowContext(ctx, "SELECT 1").Scan(&one)
}

// Postgres reports whether the database is PostgreSQL. Only platform packages may depend
// on it, for locks, notices and background jobs.
func (d *DB) Postgres() bool { return d.kind == postgresKind }

// URL is the PostgreSQL URL, empty on SQLite.
func (d *DB) URL() string { return d.url }

// SQL returns the pool that may write, for libraries with their own SQL.
func (d *DB) SQL() *sql.DB { return d.writer.db }

// Stats returns the state of the pools by name, for metrics.
func (d *DB) Stats() map[string]sql.DBStats {
	if d.kind == postgresKind {
		return map[string]sql.DBStats{"postgres": d.writer.db.Stats(), "candidates": d.generic.db.Stats()}
	}
	writer := d.writer.db.Stats()
	writer.WaitCount += d.turn.waits.Load()
	writer.WaitDuration += time.Duration(d.turn.waited.Load())
	return map[string]sql.DBStats{"writer": writer, "reader": d.reader.stats()}
}

// Size returns the size of the database in bytes.
func (d *DB) Size(ctx context.Context) (int64, error) {
	query := "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
	if d.Postgres() {
		query = "SELECT pg_database_size(current_database())"
	}
	var n int64
	err := d.QueryRowContext(ctx, query).Scan(&n)
	return n, err
}

// ExecContext runs a statement outside any transaction. It must not be called
// while the same goroutine runs the function of a transaction: on SQLite that
// transaction is the only writer, and the call fails.
func (d *DB) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	var res sql.Result
	if d.kind == sqliteKind || d.watched(query) {
		err := d.Tx(ctx, func(tx *Tx) (err error) {
			res, err = tx.ExecContext(ctx, query, args...)
			return err
		})
		return res, err
	}
	err := retryBusy(ctx, func() (err error) {
		res, err = d.writer.exec(ctx, query, args)
		return err
	})
	return res, err
}

// QueryContext runs a query outside of a transaction. On SQLite a query that only
// reads uses a reader, everything else the writer.
func (d *DB) QueryContext(ctx context.Context, query string, args ...any) (*Rows, error) {
	return d.queryRows(ctx, &d.writer, query, args)
}

// queryRows is QueryContext with the given pool on PostgreSQL.
func (d *DB) queryRows(ctx context.Context, on *pool, query string, args []any) (*Rows, error) {
	writes := !reads(query)
	if writes && d.watched(query) {
		return nil, errors.New("a write to a watched table needs a transaction")
	}
	var found rows
	run := retryBusy
	if !writes {
		run = retryLost
	}
	err := run(ctx, func() (err error) {
		switch {
		case d.reader == nil:
			found, err = on.query(ctx, query, args)
		case writes:
			found, err = d.writeRows(ctx, query, args)
		default:
			found, err = d.reader.query(ctx, query, args)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Rows{rows: found, writes: writes, reads: limit.ReadsOf(ctx)}, nil
}

// writeRows runs a statement on SQLite that writes and returns rows. It is
// committed when the rows have been read.
func (d *DB) writeRows(ctx context.Context, query string, args []any) (rows, error) {
	if err := d.turn.take(ctx); err != nil {
		return nil, err
	}
	defer d.turn.give()
	d.settle(ctx)
	return d.writer.query(ctx, query, args)
}

// QueryRowContext is QueryContext for at most one row.
func (d *DB) QueryRowContext(ctx context.Context, query string, args ...any) *Row {
	rows, err := d.QueryContext(ctx, query, args...)
	return &Row{rows: rows, err: err}
}

// Rows is the result of a query. It maps errors as all other functions do.
type Rows struct {
	rows   rows
	tx     *Tx  // the transaction that reads them, if any
	writes bool // the statement writes outside of a transaction
	reads  *limit.Reads
}

// rows is the common interface of database/sql and the SQLite reader.
type rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close() error
}

// Next prepares the next row, as in database/sql.
func (r *Rows) Next() bool {
	if r.rows.Next() {
		return true
	}
	r.closed()
	return false
}

// Scan scans the row, as in database/sql. It returns limit.ErrLargeAnswer if the
// request has read too much.
func (r *Rows) Scan(dest ...any) error {
	if err := r.rows.Scan(dest...); err != nil || r.reads == nil {
		return err
	}
	return r.reads.Add(textSize(dest))
}

// textSize returns the number of bytes of the texts of a row, which dominate its
// size. Long texts count as in JSON, where a control character has six bytes.
func textSize(dest []any) int {
	n := 0
	for _, d := range dest {
		switch d := d.(type) {
		case *string:
			n += escapedSize(*d)
		case *[]byte:
			n += len(*d)
		case **string:
			if *d != nil {
				n += escapedSize(**d)
			}
		}
	}
	return n
}

func escapedSize(text string) int {
	n := len(text)
	if n < 4<<10 {
		return n
	}
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\n', c == '\t', c == '\r', c == '"', c == '\\':
			n++
		case c < ' ':
			n += 5
		}
	}
	return n
}

// Err returns the error that ended the iteration, if any.
func (r *Rows) Err() error { return mapError(r.rows.Err()) }

// Close ends the iteration; it may be called more than once.
func (r *Rows) Close() error {
	err := mapError(r.rows.Close())
	r.closed()
	return err
}

func (r *Rows) closed() {
	if r.tx != nil && r.tx.open == r {
		r.tx.open = nil
	}
}

// Row is the result of a query for one row.
type Row struct {
	rows *Rows
	err  error
}

// Scan reads the row, or returns ErrNoRows.
func (r *Row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	if r.rows.writes {
		// SQLite commits INSERT … RETURNING at its last step, so only that step reports
		// whether the row was written.
		for r.rows.Next() {
		}
		if err := r.rows.Err(); err != nil {
			return err
		}
	}
	return r.rows.Close()
}

// All runs a query and scans every row. It never returns a nil slice, so that
// an empty list is written as [].
func All[T any](ctx context.Context, q Q, scan func(Scanner) (T, error), query string, args ...any) ([]T, error) {
	list := []T{}
	err := Each(ctx, q, scan, func(item T) error {
		list = append(list, item)
		return nil
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Each runs a query and calls f for each row, until f returns an error. It holds a
// connection, so f must not use the database.
func Each[T any](ctx context.Context, q Q, scan func(Scanner) (T, error), f func(T) error, query string, args ...any) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		item, err := scan(rows)
		if err != nil {
			return err
		}
		if err := f(item); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Value scans one column of each row, for All.
func Value[T any](s Scanner) (T, error) {
	var v T
	err := s.Scan(&v)
	return v, err
}

// Sums returns the numbers that a query selects for IDs: its rows are an ID and a number,
// and its arguments are the IDs.
func Sums(ctx context.Context, q Q, query string, ids []int64) (map[int64]int64, error) {
	found := make(map[int64]int64, len(ids))
	if len(ids) == 0 {
		return found, nil
	}
	_, err := All(ctx, q, func(s Scanner) (none struct{}, err error) {
		var id, n int64
		err = s.Scan(&id, &n)
		found[id] = n
		return none, err
	}, query, Any(ids)...)
	return found, err
}

// ExecOne runs a statement that must change exactly one row, and returns ErrNoRows if it
// changed none. State changes use it as compare-and-set.
func ExecOne(ctx context.Context, q Q, query string, args ...any) error {
	res, err := q.ExecContext(ctx, query, args...)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err != nil {
		return err
	}
	switch n {
	case 0:
		return ErrNoRows
	case 1:
		return nil
	}
	return fmt.Errorf("statement touched %d rows, not one", n)
}

// ExecCount runs a statement and returns the number of rows that it changed.
func ExecCount(ctx context.Context, q Q, query string, args ...any) (int64, error) {
	res, err := q.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// ExecAny runs a statement and reports whether it changed any row.
func ExecAny(ctx context.Context, q Q, query string, args ...any) (bool, error) {
	n, err := ExecCount(ctx, q, query, args...)
	return n > 0, err
}

// Exists reports whether a query that begins with SELECT 1 returns a row.
func Exists(ctx context.Context, q Q, query string, args ...any) (bool, error) {
	var one int
	err := q.QueryRowContext(ctx, query, args...).Scan(&one)
	if errors.Is(err, ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// NotFound replaces ErrNoRows with errs.NotFound, which names the missing
// object to the caller. It returns any other error, and nil, unchanged.
func NotFound(err error, object string) error {
	if errors.Is(err, ErrNoRows) {
		return errs.NotFound(object)
	}
	return err
}

// NullText returns the argument for a text column that stores NULL for an empty text.
func NullText(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
