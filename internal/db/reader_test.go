package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"svc/internal/waittest"
)

type (
	word   string
	number int16
	chunk  []byte
)

// TestReaderScansAsDatabaseSQL checks that the reader and database/sql, which transactions
// use, convert values in the same way.
func TestReaderScansAsDatabaseSQL(t *testing.T) {
	t.Parallel()
	d := open(t)
	dests := []func() any{
		func() any { return new(string) }, func() any { return new(int64) }, func() any { return new(int) },
		func() any { return new(int32) }, func() any { return new(uint8) }, func() any { return new(bool) },
		func() any { return new(float64) }, func() any { return new(float32) }, func() any { return new([]byte) },
		func() any { return new(any) }, func() any { return new(*int64) }, func() any { return new(*string) },
		func() any { return new(*bool) }, func() any { return new(word) }, func() any { return new(*word) },
		func() any { return new(number) }, func() any { return new(chunk) }, func() any { return new(sql.NullString) },
		func() any { return new(sql.Null[int64]) }, func() any { return Time(new(time.Time)) }, func() any { return NullTime(new(*time.Time)) },
		func() any { return new(struct{}) }, func() any { return new(chan int) }, func() any { return 7 },
	}
	for _, value := range []string{
		"1", "0", "2", "-5", "70000", "9223372036854775807", "1.5", "1e300", "'text'", "''", "'12'", "'-1'", "'1.5'", "'true'", "'ü'",
		"'a' || char(0) || 'b'", "x'00ff'", "x'31'", "NULL",
	} {
		for _, dest := range dests {
			read, reference := dest(), dest()
			err := d.QueryRowContext(t.Context(), "SELECT "+value).Scan(read)
			want := d.Tx(t.Context(), func(tx *Tx) error { return tx.QueryRowContext(t.Context(), "SELECT "+value).Scan(reference) })
			if (err == nil) != (want == nil) {
				t.Errorf("%s into %T: error %v, want %v", value, read, err, want)
			}
			if err == nil && !reflect.DeepEqual(read, reference) {
				t.Errorf("%s into %T: %#v, want %#v", value, read, reflect.ValueOf(read).Elem(), reflect.ValueOf(reference).Elem())
			}
		}
	}
	var n int
	for _, dest := range [][]any{{}, {&n, &n}} {
		if err := d.QueryRowContext(t.Context(), "SELECT 1").Scan(dest...); err == nil {
			t.Errorf("one column was scanned into %d places", len(dest))
		}
	}
}

func TestReaderBindsAsDatabaseSQL(t *testing.T) {
	t.Parallel()
	d := open(t)
	at, n, none := time.UnixMicro(1_700_000_000_123_456), int64(5), (*int64)(nil)
	for _, arg := range []any{
		nil, 1, int64(-2), int32(3), uint8(4), true, false, 1.5, float32(0.5), "text", "", "it's", "a\x00b", "ü", strings.Repeat("x", 70_000),
		[]byte{1, 0, 2}, []byte{}, []byte(nil), at, &at, (*time.Time)(nil), &n, none, word("w"), sql.NullString{String: "s", Valid: true}, sql.NullInt64{},
	} {
		const query = "SELECT typeof(?) || ' ' || quote(?) || ' ' || COALESCE(length(?), '')"
		var read, reference string
		if err := d.QueryRowContext(t.Context(), query, arg, arg, arg).Scan(&read); err != nil {
			t.Errorf("%T %v: %v", arg, arg, err)
		}
		err := d.Tx(t.Context(), func(tx *Tx) error { return tx.QueryRowContext(t.Context(), query, arg, arg, arg).Scan(&reference) })
		if err != nil || read != reference {
			t.Errorf("%T %.40v: %.40s, want %.40s, %v", arg, arg, read, reference, err)
		}
	}
	for _, args := range [][]any{{}, {1}, {1, 2, 3}, {struct{}{}, 1}, {make(chan int), 1}} {
		var v int
		if err := d.QueryRowContext(t.Context(), "SELECT ? + ?", args...).Scan(&v); err == nil {
			t.Errorf("no error for %v", args)
		}
	}
}

func TestReaderFoldsAsTheWriter(t *testing.T) {
	t.Parallel()
	d := open(t)
	for _, value := range []string{"'ÄÖÜ Straße'", "'İ'", "'a' || char(0) || 'B'", "''", "NULL", "5", "x'41'"} {
		query := "SELECT quote(fold(" + value + "))"
		var read, written string
		if err := d.QueryRowContext(t.Context(), query).Scan(&read); err != nil {
			t.Fatal(err)
		}
		err := d.Tx(t.Context(), func(tx *Tx) error { return tx.QueryRowContext(t.Context(), query).Scan(&written) })
		if err != nil || read != written {
			t.Errorf("%s: %s, the writer says %s, %v", value, read, written, err)
		}
	}
}

// endless returns more rows than a test reads.
const endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "

func TestReaderCancels(t *testing.T) {
	t.Parallel()
	d := open(t)
	for range readers + 1 { // an interrupted connection is used again
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		start := time.Now()
		err := d.QueryRowContext(ctx, endless+"count(*) FROM n").Scan(new(int))
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Minute {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		var one int
		if err := d.QueryRowContext(t.Context(), "SELECT 1").Scan(&one); err != nil || one != 1 {
			t.Fatal(one, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	rows, err := d.QueryContext(ctx, endless+"i FROM n")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for want := 1; want < 100; want++ {
		var i int
		if !rows.Next() || rows.Scan(&i) != nil || i != want {
			t.Fatalf("row %d is %d, %v", want, i, rows.Err())
		}
	}
	cancel()
	if rows.Next() || !errors.Is(rows.Err(), context.Canceled) {
		t.Errorf("another row, %v", rows.Err())
	}
	if _, err := d.QueryContext(ctx, "SELECT 1"); !errors.Is(err, context.Canceled) {
		t.Errorf("a query under a context that has ended: %v", err)
	}
}

func TestReaderWaitsForAConnection(t *testing.T) {
	t.Parallel()
	d := open(t)
	var held []*Rows
	for range readers {
		rows, err := d.QueryContext(t.Context(), endless+"i FROM n")
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, rows)
	}
	if s := d.Stats()["reader"]; s.InUse != readers || s.Idle != 0 || s.OpenConnections != readers {
		t.Errorf("%+v", s)
	}
	// On a busy machine the timeout can expire before the wait begins.
	waittest.For(t, "a wait that was given up is counted", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := d.QueryContext(ctx, "SELECT 1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one more than there are connections: %v", err)
		}
		return d.Stats()["reader"].WaitCount == 1
	})
	done := make(chan error)
	go func() { done <- d.QueryRowContext(t.Context(), "SELECT 1").Scan(new(int)) }()
	for _, rows := range held {
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
		if err := rows.Close(); err != nil { // again does no harm
			t.Error(err)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if s := d.Stats()["reader"]; s.InUse != 0 || s.Idle != readers {
		t.Errorf("%+v", s)
	}
}

func TestReaderKeepsStatements(t *testing.T) {
	t.Parallel()
	d := open(t)
	var v int
	for i := range connStatements + 20 {
		if err := d.QueryRowContext(t.Context(), fmt.Sprintf("SELECT %d + ?", i), 1).Scan(&v); err != nil || v != i+1 {
			t.Fatal(i, v, err)
		}
		if err := d.QueryRowContext(t.Context(), "SELECT -1").Scan(&v); err != nil || v != -1 {
			t.Fatal(v, err)
		}
	}
	c := d.reader.idle[0]
	if len(d.reader.idle) != 1 || c.stmts.Len() != connStatements {
		t.Errorf("%d connections, %d statements", len(d.reader.idle), c.stmts.Len())
	}
	_, first := c.stmts.Peek("SELECT 0 + ?")
	_, last := c.stmts.Peek("SELECT -1")
	if first || !last {
		t.Error("the statement that was used last made room, not the one that was used first")
	}
}

func TestReaderSeesNewColumns(t *testing.T) {
	t.Parallel()
	d := open(t)
	if _, err := d.ExecContext(t.Context(), "INSERT INTO items (v) VALUES (7)"); err != nil {
		t.Fatal(err)
	}
	var id, v, more int
	if err := d.QueryRowContext(t.Context(), "SELECT * FROM items").Scan(&id, &v); err != nil || v != 7 {
		t.Fatal(v, err)
	}
	if _, err := d.ExecContext(t.Context(), "ALTER TABLE items ADD COLUMN more BIGINT NOT NULL DEFAULT 8"); err != nil {
		t.Fatal(err)
	}
	if err := d.QueryRowContext(t.Context(), "SELECT * FROM items").Scan(&id, &v, &more); err != nil || more != 8 {
		t.Error(more, err)
	}
}

func TestReaderAfterClose(t *testing.T) {
	t.Parallel()
	d := open(t)
	rows, err := d.QueryContext(t.Context(), endless+"i FROM n")
	if err != nil {
		t.Fatal(err)
	}
	d.reader.close()
	if err := d.QueryRowContext(t.Context(), "SELECT 1").Scan(new(int)); err == nil {
		t.Error("a query after the end")
	}
	if !rows.Next() {
		t.Errorf("rows that were open have ended: %v", rows.Err())
	}
	if err := rows.Close(); err != nil {
		t.Error(err)
	}
	if s := d.Stats()["reader"]; s.OpenConnections != 0 {
		t.Errorf("%+v", s)
	}
}

// join is a query whose plan SQLite would otherwise recompile for each value.
const join = "SELECT a.v FROM items a JOIN items b ON b.v = a.v WHERE a.id = ?"

func TestPlansAreKept(t *testing.T) {
	t.Parallel()
	d := open(t)
	if _, err := d.ExecContext(t.Context(), "INSERT INTO items (v) VALUES (1), (2), (3)"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.ExecContext(t.Context(), "ANALYZE"); err != nil { // gives the planner statistics that could change plans
		t.Fatal(err)
	}
	for i := range 4 {
		var v int
		if err := d.QueryRowContext(t.Context(), join, i%3+1).Scan(&v); err != nil || v != i%3+1 {
			t.Fatal(v, err)
		}
	}
	c := d.reader.idle[0]
	joined, _ := c.stmts.Peek(join)
	if n := sqlite3.Xsqlite3_stmt_status(c.tls, joined.p, sqlite3.SQLITE_STMTSTATUS_REPREPARE, 0); n != 0 {
		t.Errorf("the reader has prepared a query %d times too often", n)
	}

	var mu sync.Mutex
	prepared := 0
	inTx := func(id int) {
		t.Helper()
		err := d.Tx(t.Context(), func(tx *Tx) error { return tx.QueryRowContext(t.Context(), join, id).Scan(new(int)) })
		if err != nil {
			t.Fatal(err)
		}
	}
	inTx(1) // unknown: prepared afterwards
	inTx(2)
	conn, err := d.writer.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = conn.Raw(func(c any) error {
		return c.(sqlite.AuthorizerRegisterer).RegisterAuthorizer(func(action sqlite.AuthorizerActionCode, _, _, _, _ string) sqlite.AuthorizerReturnCode {
			mu.Lock()
			defer mu.Unlock()
			if action == sqlite.AuthSelect {
				prepared++
			}
			return sqlite.AuthorizerOK
		})
	})
	if err := errors.Join(err, conn.Close()); err != nil {
		t.Fatal(err)
	}
	inTx(3) // watching the connection has invalidated all its statements
	prepared = 0
	inTx(1)
	inTx(2)
	if prepared != 0 {
		t.Errorf("the writer has prepared a query %d times too often", prepared)
	}
}

func TestCountsAreOfTheMoment(t *testing.T) {
	t.Parallel()
	d := open(t)
	ctx := t.Context()
	write := func(to *DB, query string, args ...any) {
		t.Helper()
		if _, err := to.ExecContext(ctx, query, args...); err != nil {
			t.Fatal(err)
		}
	}
	count := func(want int, from string, args ...any) {
		t.Helper()
		n, over, err := d.Total(ctx, from, args...)
		if err != nil || over || n != want {
			t.Errorf("total of %s %v: %d, %v, %v; want %d", from, args, n, over, err, want)
		}
	}
	write(d, "CREATE TABLE things (n INTEGER)")
	write(d, "INSERT INTO things VALUES (1), (2), (3)")
	count(3, "things")
	count(2, "things WHERE n > ?", 1)
	count(1, "things WHERE n > ?", 2)
	conn := d.reader.idle[len(d.reader.idle)-1]
	if len(conn.counts) != 3 {
		t.Errorf("remembered: %v", conn.counts)
	}
	for key := range conn.counts {
		conn.counts[key] = 7
	}
	count(7, "things") // cached
	write(d, "INSERT INTO things VALUES (4)")
	count(4, "things")
	count(2, "things WHERE n > ?", 2)

	other, err := Open(ctx, "", d.path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	write(other, "DELETE FROM things WHERE n = 1")
	count(3, "things")

	for i := range maxCounts * 2 {
		count(max(0, min(3, 4-i)), "things WHERE n > ?", i)
	}
	if len(conn.counts) > maxCounts {
		t.Errorf("%d totals are remembered", len(conn.counts))
	}
	if _, _, err := d.Total(ctx, "nothing"); err == nil {
		t.Error("a list that is not there has a total")
	}
	count(3, "things")
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, _, err := d.Total(ended, "things"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// TestCountsWhileOthersWrite checks that writes are counted at once, on every connection.
func TestCountsWhileOthersWrite(t *testing.T) {
	t.Parallel()
	d := open(t)
	ctx := t.Context()
	if _, err := d.ExecContext(ctx, "CREATE TABLE things (owner INTEGER)"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for owner := range readers * 2 {
		wg.Go(func() {
			for i := range 10 {
				if _, err := d.ExecContext(ctx, "INSERT INTO things VALUES (?)", owner); err != nil {
					t.Error(err)
					return
				}
				for range 3 {
					if n, _, err := d.Total(ctx, "things WHERE owner = ?", owner); err != nil || n != i+1 {
						t.Errorf("owner %d: %d of %d, %v", owner, n, i+1, err)
					}
					if n, _, err := d.Total(ctx, "things"); err != nil || n <= i {
						t.Errorf("all: %d after %d, %v", n, i+1, err)
					}
				}
			}
		})
	}
	wg.Wait()
}
