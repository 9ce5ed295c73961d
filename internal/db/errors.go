package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"svc/internal/errs"
)

// ErrNoRows means that a query for one row, or a compare-and-set, matched none.
var ErrNoRows = sql.ErrNoRows

// errBusy means that another transaction caused a conflict and the operation can be retried.
var errBusy = errors.New("another transaction is in the way")

// errCut means that a connection was lost while it was used. Reads and uncommitted
// transactions are retried on another connection.
var errCut = errors.New("the connection to the database was lost")

// ConstraintError means that a statement violated a constraint.
type ConstraintError struct {
	Unique bool // otherwise a foreign key
	// Index is the name of the unique index: the table and its columns joined
	// by _ ("users_username"), for a primary key too ("settings_key"). SQLite
	// does not name foreign keys, so it is empty there.
	Index string
	cause error
}

// Error returns the text for logs.
func (e *ConstraintError) Error() string {
	if e.Unique {
		return "unique index " + e.Index + ": " + e.cause.Error()
	}
	return "foreign key: " + e.cause.Error()
}

// Unwrap returns the driver's error.
func (e *ConstraintError) Unwrap() error { return e.cause }

// IsUnique reports whether err is a violation of the named unique index.
func IsUnique(err error, index string) bool {
	e, ok := errors.AsType[*ConstraintError](err)
	return ok && e.Unique && e.Index == index
}

// IsForeignKey reports whether err is a violation of a foreign key.
func IsForeignKey(err error) bool {
	e, ok := errors.AsType[*ConstraintError](err)
	return ok && !e.Unique
}

// because is mapError for an operation with a context. If the context has ended,
// that is the error, whatever the driver returned.
func because(ctx context.Context, err error) error {
	end := ctx.Err()
	if deadline, ok := ctx.Deadline(); ok && end == nil && time.Now().After(deadline) {
		end = context.DeadlineExceeded // the network has its own timer, which may be ahead
	}
	if err == nil || end == nil {
		return mapError(err)
	}
	if errors.Is(err, end) {
		return err
	}
	return fmt.Errorf("%w: %w", end, err)
}

// mapError converts an error of a driver to one that is the same for both
// databases: ConstraintError, errBusy, or errs.Unavailable if the database does
// not work.
func mapError(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return mapSQLite(e.Code(), err)
	}
	if e, ok := errors.AsType[*sqliteFault](err); ok {
		return mapSQLite(e.code, err)
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return mapPostgres(e, err)
	}
	if errors.Is(err, driver.ErrBadConn) {
		// The connection was already closed, perhaps because the context of another
		// caller ended, so the database has not received the statement.
		return fmt.Errorf("%w: %w", errBusy, err)
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return away(err)
	}
	if pgconn.SafeToRetry(err) { // "conn closed": the database has not seen the statement
		return away(fmt.Errorf("%w: %w", errCut, err))
	}
	if _, ok := errors.AsType[*net.OpError](err); ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return away(fmt.Errorf("%w: %w", errCut, err))
	}
	return err
}

// unsure converts an error of a commit. If the connection was lost, the result of the
// commit is unknown, so it is not retried.
func unsure(err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == idleTooLong {
		return err // it was rolled back
	}
	if errors.Is(err, errCut) {
		return away(errors.New(err.Error()))
	}
	return err
}

// unmapped reports whether err is an unchanged error of the driver, as libraries with
// their own SQL return it.
func unmapped(err error) bool {
	if _, ok := errors.AsType[*ConstraintError](err); ok || err == nil {
		return false
	}
	return errs.KindOf(err) == 0 && !errors.Is(err, errBusy)
}

// away returns the error for an unreachable database.
func away(cause error) error {
	return errs.Unavailable("The database is not available. Try again in a moment.").Because(cause)
}

func mapSQLite(code int, err error) error {
	switch {
	case code&0xff == sqlite3.SQLITE_BUSY, code&0xff == sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%w: %w", errBusy, err)
	case code&0xff == sqlite3.SQLITE_FULL:
		return errs.StorageFull(err)
	case code == sqlite3.SQLITE_CONSTRAINT_UNIQUE, code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
		return &ConstraintError{Unique: true, Index: sqliteIndex(err.Error()), cause: err}
	case code == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
		return &ConstraintError{cause: err}
	}
	return err
}

// sqliteIndex returns the index from SQLite's messages: "UNIQUE constraint failed: index
// 'users_username' (2067)" for an index on an expression, and "UNIQUE constraint failed:
// follows.follower_id, follows.followed_id (1555)" for an index on columns.
func sqliteIndex(text string) string {
	_, what, ok := strings.Cut(text, "UNIQUE constraint failed: ")
	if !ok {
		return ""
	}
	if i := strings.LastIndex(what, " ("); i >= 0 {
		what = what[:i]
	}
	if name, ok := strings.CutPrefix(what, "index '"); ok {
		return strings.TrimSuffix(name, "'")
	}
	var name strings.Builder
	for i, column := range strings.Split(what, ", ") {
		table, column, _ := strings.Cut(column, ".")
		if i == 0 {
			name.WriteString(table)
		}
		name.WriteByte('_')
		name.WriteString(column)
	}
	return name.String()
}

// idleTooLong is the code of PostgreSQL's error after idleTimeout.
const idleTooLong = "25P03"

func mapPostgres(e *pgconn.PgError, err error) error {
	switch e.Code {
	case "40001", "40P01", "55P03": // serialization failure, deadlock, lock not available
		return fmt.Errorf("%w: %w", errBusy, err)
	case "23505":
		return &ConstraintError{Unique: true, Index: postgresIndex(e), cause: err}
	case "23503", "23001": // foreign key, restrict
		return &ConstraintError{Index: e.ConstraintName, cause: err}
	case "54000":
		// SQLite has no such limit, so features should refuse long values first.
		return errs.Invalid("A value is too long to be indexed by the database.").Because(err)
	case "53100":
		return errs.StorageFull(err)
	case "53300", "57P03": // too many connections; starting or stopping
		return away(err)
	case "57P01", "57P02", idleTooLong: // shut down, crashed
		return away(fmt.Errorf("%w: %w", errCut, err))
	}
	if strings.HasPrefix(e.Code, "08") { // connection exceptions
		return away(fmt.Errorf("%w: %w", errCut, err))
	}
	return err
}

// postgresIndex returns the name of the index by our convention. PostgreSQL calls the index
// of a primary key users_pkey; its columns are in the detail: "Key (follower_id,
// followed_id)=(1, 2) already exists."
func postgresIndex(e *pgconn.PgError) string {
	if e.ConstraintName != e.TableName+"_pkey" {
		return e.ConstraintName
	}
	_, columns, _ := strings.Cut(e.Detail, "(")
	columns, _, ok := strings.Cut(columns, ")=(")
	if !ok {
		return e.ConstraintName
	}
	return e.TableName + "_" + strings.ReplaceAll(columns, ", ", "_")
}
