package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Tx is a transaction. It implements Q, and belongs to the goroutine that runs its
// function.
//
// Both databases behave like the stricter one: after a failed statement the transaction
// can only be rolled back, and rows must be closed before the next statement.
type Tx struct {
	db          *DB
	tx          *sql.Tx
	ctx         context.Context // its end rolls the transaction back
	open        *Rows           // of the last query, until they are closed
	failed      error           // of the first statement that failed
	unprepared  []string
	wrote       []string // watched tables that were written to
	afterCommit []func()
	afterUnsure []func()
}

// Tx runs f in a transaction and commits it if f returns nil. On SQLite there is only one
// writer, so f must be short and use nothing but the database, through its Tx; concurrent
// writers are committed together. f may run again after a conflict with another
// transaction.
func (d *DB) Tx(ctx context.Context, f func(tx *Tx) error) error {
	var tx *Tx
	err := retryLost(ctx, func() (err error) {
		tx, err = d.attempt(ctx, f)
		return err
	})
	if err != nil {
		return err
	}
	for _, after := range tx.afterCommit {
		after()
	}
	return nil
}

// Batches repeats a transaction as long as it changes something. Other writers get
// their turn in between.
func (d *DB) Batches(ctx context.Context, change func(tx *Tx) (int64, error)) error {
	for {
		var n int64
		err := d.Tx(ctx, func(tx *Tx) (err error) {
			n, err = change(tx)
			return err
		})
		if err != nil || n == 0 {
			return err
		}
	}
}

// attempt runs the transaction once.
func (d *DB) attempt(ctx context.Context, f func(tx *Tx) error) (*Tx, error) {
	if d.kind == sqliteKind {
		return d.joinGroup(ctx, f)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// Canceling ctx rolls the transaction back, but only until the commit: the result
	// of an interrupted commit would be unknown.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	detach := context.AfterFunc(ctx, cancel)
	defer detach()
	sqlTx, err := d.writer.db.BeginTx(inner, nil)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", because(ctx, err))
	}
	defer sqlTx.Rollback() // a no-op after the commit; rolls back if f panics
	tx := &Tx{db: d, tx: sqlTx, ctx: ctx}
	if err = tx.run(f); err == nil && tx.failed == nil {
		err = tx.callWatches(ctx)
	}
	if errors.Is(err, sql.ErrTxDone) || unmapped(err) {
		err = because(ctx, err) // database/sql has rolled back because the context ended
	}
	if err != nil {
		return nil, err
	}
	if tx.failed != nil {
		return nil, fmt.Errorf("commit: a statement has failed: %w", tx.failed)
	}
	if !detach() {
		return nil, fmt.Errorf("commit: %w", ctx.Err())
	}
	defer time.AfterFunc(patience, cancel).Stop()
	if err := sqlTx.Commit(); err != nil {
		for _, after := range tx.afterUnsure {
			after()
		}
		return nil, fmt.Errorf("commit: %w", unsure(mapError(err)))
	}
	return tx, nil
}

// run calls f. dbtest.InsideTx looks for its name on the stack.
func (t *Tx) run(f func(tx *Tx) error) error { return f(t) }

// AfterCommit registers a function that is called after the transaction is
// committed, but not if it is rolled back. It may use the database.
func (t *Tx) AfterCommit(f func()) { t.afterCommit = append(t.afterCommit, f) }

// AfterUnsure registers a function that is called if the commit fails. Unless the database has
// refused it, it is unknown then whether the transaction was committed, or will be in a moment.
// On SQLite, which is in this process, a commit that fails was not made.
func (t *Tx) AfterUnsure(f func()) { t.afterUnsure = append(t.afterUnsure, f) }

// SQL returns the transaction for libraries with their own SQL.
func (t *Tx) SQL() *sql.Tx { return t.tx }

// ExecContext runs a statement in the transaction.
func (t *Tx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s, err := t.statement(query)
	if err != nil {
		return nil, err
	}
	defer t.db.writer.stmts.release(s)
	var res sql.Result
	if s.stmt != nil {
		res, err = t.tx.StmtContext(ctx, s.stmt).ExecContext(ctx, plain(args)...)
	} else {
		text, args := s.bind(args)
		res, err = t.tx.ExecContext(ctx, text, plain(args)...)
	}
	if err != nil {
		t.failed = because(ctx, err)
		return nil, t.failed
	}
	t.note(query)
	return res, nil
}

// QueryContext runs a query in the transaction.
func (t *Tx) QueryContext(ctx context.Context, query string, args ...any) (*Rows, error) {
	s, err := t.statement(query)
	if err != nil {
		return nil, err
	}
	defer t.db.writer.stmts.release(s)
	var rows *sql.Rows
	if s.stmt != nil {
		rows, err = t.tx.StmtContext(ctx, s.stmt).QueryContext(ctx, plain(args)...)
	} else {
		text, args := s.bind(args)
		rows, err = t.tx.QueryContext(ctx, text, plain(args)...)
	}
	if err != nil {
		t.failed = because(ctx, err)
		return nil, t.failed
	}
	t.note(query)
	t.open = &Rows{rows: rows, tx: t}
	return t.open, nil
}

// QueryRowContext is QueryContext for at most one row.
func (t *Tx) QueryRowContext(ctx context.Context, query string, args ...any) *Row {
	rows, err := t.QueryContext(ctx, query, args...)
	return &Row{rows: rows, err: err}
}

// statement returns the prepared statement of a query. A new query is not prepared
// now, because on SQLite only the connection of the transaction could do that. It
// is prepared after the commit.
func (t *Tx) statement(query string) (*statement, error) {
	if t.failed != nil {
		return nil, fmt.Errorf("an earlier statement of the transaction has failed: %w", t.failed)
	}
	if err := t.ctx.Err(); err != nil { // also if the statement has another context
		return nil, err
	}
	if t.open != nil {
		return nil, errors.New("the rows of the transaction's last query are still open")
	}
	p := &t.db.writer
	if s := p.stmts.find(query); s != nil {
		return s, nil
	}
	if p.rebind {
		return p.stmts.add(rebound(query)), nil
	}
	t.unprepared = append(t.unprepared, query)
	return &statement{text: query, users: 1}, nil
}

// learn prepares queries for later transactions. The caller has committed and still has the
// turn, because with many writers there is no idle time.
func (p *pool) learn(ctx context.Context, queries []string) {
	for _, query := range queries {
		if s, err := p.statement(ctx, query); err == nil { // a CREATE TABLE cannot be prepared twice
			p.stmts.release(s)
		}
	}
}
