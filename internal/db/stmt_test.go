package db

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"modernc.org/sqlite"
)

func open(t *testing.T) *DB {
	t.Helper()
	d, err := Open(t.Context(), "", filepath.Join(t.TempDir(), "svc.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if _, err := d.ExecContext(t.Context(), "CREATE TABLE items (id INTEGER PRIMARY KEY, v BIGINT)"); err != nil {
		t.Fatal(err)
	}
	return d
}

// openPool opens an additional pool, in which several goroutines may read at the same time.
func openPool(t *testing.T, d *DB) *pool {
	t.Helper()
	p := &pool{db: sql.OpenDB(connector{&sqlite.Driver{}, dsn(d.path, "deferred", nil)})}
	t.Cleanup(func() {
		if err := p.db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return p
}

func numberOf(t *testing.T, p *pool, query string, args ...any) (v int, err error) {
	t.Helper()
	rows, err := p.query(t.Context(), query, args)
	if err != nil {
		return 0, err
	}
	err = (&Row{rows: &Rows{rows: rows}}).Scan(&v)
	return v, err
}

func TestStatementsAreBounded(t *testing.T) {
	t.Parallel()
	p := openPool(t, open(t))
	for i := range maxStatements + 50 {
		if v, err := numberOf(t, p, fmt.Sprintf("SELECT %d", i)); err != nil || v != i {
			t.Fatalf("query %d: %d, %v", i, v, err)
		}
		// This query is always in use, so it is never evicted.
		if v, err := numberOf(t, p, "SELECT -1"); err != nil || v != -1 {
			t.Fatalf("query -1: %d, %v", v, err)
		}
	}
	c := &p.stmts
	if c.kept.Len() != maxStatements {
		t.Errorf("%d statements, want %d", c.kept.Len(), maxStatements)
	}
	if c.has("SELECT 0") || !c.has("SELECT -1") {
		t.Error("the statement that was used last made room, not the one that was used first")
	}
	for _, s := range c.kept.All() {
		if s.users != 0 {
			t.Errorf("%s still has %d users", s.query, s.users)
		}
	}
}

func TestStatementEvictedWhileInUse(t *testing.T) {
	t.Parallel()
	d := open(t)
	for i := range 5 {
		if _, err := d.ExecContext(t.Context(), "INSERT INTO items (v) VALUES (?)", i); err != nil {
			t.Fatal(err)
		}
	}
	p := openPool(t, d)
	rows, err := p.query(t.Context(), "SELECT v FROM items ORDER BY v", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			for i := range maxStatements {
				v, err := numberOf(t, p, fmt.Sprintf("SELECT %d + ?", i), n)
				if err != nil || v != i+n {
					t.Errorf("%d + %d = %d, %v", i, n, v, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if p.stmts.has("SELECT v FROM items ORDER BY v") {
		t.Fatal("the query did not make room")
	}
	for want := range 5 {
		var v int
		if !rows.Next() {
			t.Fatalf("row %d is missing: %v", want, rows.Err())
		}
		if err := rows.Scan(&v); err != nil || v != want {
			t.Fatalf("row %d: %d, %v", want, v, err)
		}
	}
}

func TestStatementIsClosedByItsLastUser(t *testing.T) {
	t.Parallel()
	p := openPool(t, open(t))
	first, err := p.statement(t.Context(), "SELECT 42")
	if err != nil {
		t.Fatal(err)
	}
	second := p.stmts.find("SELECT 42")
	for i := range maxStatements {
		s, err := p.statement(t.Context(), fmt.Sprintf("SELECT %d + 0", i))
		if err != nil {
			t.Fatal(err)
		}
		p.stmts.release(s)
	}
	if p.stmts.find("SELECT 42") != nil {
		t.Fatal("it did not make room")
	}
	p.stmts.release(first)
	var v int
	if err := second.stmt.QueryRow().Scan(&v); err != nil || v != 42 {
		t.Errorf("closed while in use: %v", err)
	}
	p.stmts.release(second)
	if err := second.stmt.QueryRow().Scan(&v); err == nil {
		t.Error("left open")
	}
	// An unused statement is closed as soon as it is evicted.
	var idle *statement // the one that was used first
	for _, s := range p.stmts.kept.All() {
		idle = s
	}
	if _, err := p.statement(t.Context(), "SELECT 43"); err != nil {
		t.Fatal(err)
	}
	if err := idle.stmt.QueryRow().Scan(&v); err == nil {
		t.Error("left open")
	}
}

func TestTxStatements(t *testing.T) {
	t.Parallel()
	d := open(t)
	const insert = "INSERT INTO items (v) VALUES (?)"
	for i := range 3 {
		err := d.Tx(t.Context(), func(tx *Tx) error {
			// It is unknown at first, and cached from the second transaction on.
			if known := d.writer.stmts.has(insert); known != (i > 0) {
				t.Errorf("transaction %d: prepared: %v", i, known)
			}
			for v := range 2 {
				if _, err := tx.ExecContext(t.Context(), insert, v); err != nil {
					return err
				}
			}
			var n int
			if err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM items").Scan(&n); err != nil {
				return err
			}
			if n != 2*(i+1) {
				t.Errorf("transaction %d sees %d rows", i, n)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range d.writer.stmts.kept.All() {
		if s.users != 0 {
			t.Errorf("%s still has %d users", s.query, s.users)
		}
	}
}

func TestPlainKeepsTheCallersArguments(t *testing.T) {
	t.Parallel()
	at := time.UnixMicro(1_700_000_000_123_456)
	args := []any{"a", at, &at, (*time.Time)(nil), 4}
	got := plain(args)
	want := []any{"a", at.UnixMicro(), at.UnixMicro(), nil, 4}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("argument %d is %v, want %v", i, got[i], want[i])
		}
	}
	if args[1] != at || args[2] != &at {
		t.Errorf("the caller's arguments changed: %v", args)
	}
}

// has reports whether the statement of a query is kept.
func (c *statements) has(query string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		return false
	}
	_, ok := c.kept.Peek(query)
	return ok
}
