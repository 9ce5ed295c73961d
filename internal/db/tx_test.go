package db_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/waittest"
)

func TestTx(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var after []string
		put := func(tx *db.Tx, key string) {
			must(t, tx, "INSERT INTO settings VALUES ('"+key+"', '')")
			tx.AfterCommit(func() {
				if count(t, d, "settings WHERE key = ?", key) != 1 {
					t.Errorf("%s is not there after the commit", key)
				}
				after = append(after, key)
			})
			if len(after) > 0 && after[len(after)-1] == key {
				t.Error("called before the commit")
			}
		}
		fault := errors.New("fault")
		if err := d.Tx(t.Context(), func(tx *db.Tx) error { put(tx, "undone"); return fault }); err != fault {
			t.Error(err)
		}
		func() {
			defer func() {
				if got := recover(); got != "panic" {
					t.Error(got)
				}
			}()
			_ = d.Tx(t.Context(), func(tx *db.Tx) error { put(tx, "panic"); panic("panic") })
		}()
		err := d.Tx(t.Context(), func(tx *db.Tx) error { put(tx, "one"); put(tx, "two"); return nil })
		if err != nil {
			t.Error(err)
		}
		if got := fmt.Sprint(after); got != "[one two]" {
			t.Errorf("after commit: %v", got)
		}
		if n := count(t, d, "settings"); n != 2 {
			t.Errorf("%d rows", n)
		}
	})
}

func TestAfterCommitMayWrite(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		err := d.Tx(t.Context(), func(tx *db.Tx) error {
			tx.AfterCommit(func() {
				must(t, d, "INSERT INTO settings VALUES ('a', '')")
				err := d.Tx(t.Context(), func(tx *db.Tx) error { must(t, tx, "INSERT INTO settings VALUES ('b', '')"); return nil })
				if err != nil {
					t.Error(err)
				}
			})
			return nil
		})
		if n := count(t, d, "settings"); err != nil || n != 2 {
			t.Error(n, err)
		}
	})
}

// TestTxAfterAnError checks on both databases that a transaction with a failed statement is
// rolled back, even if its function returns nil.
func TestTxAfterAnError(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		must(t, d, "INSERT INTO settings VALUES ('a', '')")
		err := d.Tx(t.Context(), func(tx *db.Tx) error {
			must(t, tx, "INSERT INTO settings VALUES ('b', '')")
			if _, err := tx.ExecContext(t.Context(), "INSERT INTO settings VALUES ('a', '')"); !db.IsUnique(err, "settings_key") {
				t.Error(err)
			}
			if _, err := tx.ExecContext(t.Context(), "INSERT INTO settings VALUES ('c', '')"); err == nil {
				t.Error("the transaction goes on after an error")
			}
			if err := tx.QueryRowContext(t.Context(), "SELECT 1").Scan(new(int)); err == nil {
				t.Error("the transaction reads after an error")
			}
			return nil
		})
		if !db.IsUnique(err, "settings_key") {
			t.Error(err)
		}
		if n := count(t, d, "settings"); n != 1 {
			t.Errorf("%d rows", n)
		}
		err = d.Tx(t.Context(), func(tx *db.Tx) error {
			if err := tx.QueryRowContext(t.Context(), "SELECT value FROM settings WHERE key = 'x'").Scan(new(string)); !errors.Is(err, db.ErrNoRows) {
				t.Error(err)
			}
			must(t, tx, "INSERT INTO settings VALUES ('c', '')") // ErrNoRows is not an error of the database
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestTxWithOpenRows(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		must(t, d, "INSERT INTO settings VALUES ('a', ''), ('b', '')")
		err := d.Tx(t.Context(), func(tx *db.Tx) error {
			for _, end := range []func(*db.Rows){
				func(rows *db.Rows) { rows.Close() },
				func(rows *db.Rows) {
					for rows.Next() {
					}
				},
			} {
				rows, err := tx.QueryContext(t.Context(), "SELECT key FROM settings")
				if err != nil || !rows.Next() {
					t.Fatal(err)
				}
				if _, err := tx.QueryContext(t.Context(), "SELECT key FROM settings"); err == nil {
					t.Error("a query runs while rows are open")
				}
				if _, err := tx.ExecContext(t.Context(), "DELETE FROM settings"); err == nil {
					t.Error("a statement runs while rows are open")
				}
				end(rows)
			}
			must(t, tx, "INSERT INTO settings VALUES ('c', '')")
			return nil
		})
		if n := count(t, d, "settings"); err != nil || n != 3 {
			t.Error(n, err)
		}
	})
}

func TestTxWhoseContextEnds(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, last := range []func(tx *db.Tx, ctx context.Context) error{
			func(tx *db.Tx, ctx context.Context) error {
				_, err := tx.ExecContext(ctx, "INSERT INTO settings VALUES ('b', '')")
				if err == nil {
					t.Error("a statement runs after the end")
				}
				return err
			},
			func(tx *db.Tx, ctx context.Context) error { return nil },
			func(tx *db.Tx, ctx context.Context) error { // another context does not help
				var err error
				waittest.For(t, "the transaction is undone", func() bool { // on PostgreSQL by database/sql, in the background
					_, err = tx.ExecContext(t.Context(), "UPDATE settings SET value = 'b'")
					return err != nil
				})
				return err
			},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			err := d.Tx(ctx, func(tx *db.Tx) error {
				must(t, tx, "INSERT INTO settings VALUES ('a', '')")
				tx.AfterCommit(func() { t.Error("committed") })
				cancel()
				return last(tx, ctx)
			})
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if n := count(t, d, "settings"); n != 0 {
				t.Errorf("%d rows", n)
			}
		}
		must(t, d, "INSERT INTO settings VALUES ('a', '')") // the writer is free again
	})
}

// TestLongStatementEnds checks that a long query ends with its context, and that the writer
// remains usable.
func TestLongStatementEnds(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		start := time.Now()
		err := d.Tx(t.Context(), func(tx *db.Tx) error {
			must(t, tx, "INSERT INTO settings VALUES ('a', '')")
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			return tx.QueryRowContext(ctx, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) SELECT count(*) FROM n").Scan(new(int64))
		})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Minute {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		must(t, d, "INSERT INTO settings VALUES ('a', '')")
	})
}

func TestWriteInsideATransaction(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t).Open(t)
	for name, write := range map[string]func() error{
		"exec": func() error {
			_, err := d.ExecContext(t.Context(), "INSERT INTO settings VALUES ('x', '')")
			return err
		},
		"returning": func() error {
			return d.QueryRowContext(t.Context(), "INSERT INTO settings VALUES ('x', '') RETURNING key").Scan(new(string))
		},
		"tx": func() error { return d.Tx(t.Context(), func(*db.Tx) error { return nil }) },
	} {
		start := time.Now()
		err := d.Tx(t.Context(), func(tx *db.Tx) error {
			must(t, tx, "INSERT INTO settings VALUES ('a', '')")
			return write()
		})
		if err == nil || !strings.Contains(err.Error(), "inside a transaction") || time.Since(start) > time.Minute {
			t.Errorf("%s: after %v: %v", name, time.Since(start), err)
		}
	}
	// A write that waits for the transaction of another goroutine gets its turn.
	// TestTurnEnds checks that for a long wait.
	waits := func() int64 { return d.Stats()["writer"].WaitCount }
	before := waits()
	began, end := make(chan bool), make(chan bool)
	var wg sync.WaitGroup
	wg.Go(func() {
		err := d.Tx(t.Context(), func(tx *db.Tx) error { close(began); <-end; return nil })
		if err != nil {
			t.Error(err)
		}
	})
	<-began
	wg.Go(func() { must(t, d, "INSERT INTO settings VALUES ('b', '')") })
	waittest.For(t, "the write waits for its turn", func() bool { return waits() > before })
	close(end)
	wg.Wait()
	if n := count(t, d, "settings"); n != 1 {
		t.Errorf("%d rows", n)
	}
}

func TestRowsStayOpenDuringWrites(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		must(t, d, "INSERT INTO settings VALUES ('a', '0'), ('b', '0'), ('c', '0')")
		rows, err := d.QueryContext(t.Context(), "SELECT key, value FROM settings ORDER BY key")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		seen := ""
		for rows.Next() {
			var key, value string
			if err := rows.Scan(&key, &value); err != nil {
				t.Fatal(err)
			}
			seen += key + value
			must(t, d, "UPDATE settings SET value = value || '1'", "DELETE FROM settings WHERE key = 'c'")
		}
		if rows.Err() != nil || seen != "a0b0c0" {
			t.Errorf("the query saw %s, %v", seen, rows.Err())
		}
	})
}

// TestSerializationFailureIsRetried checks that conflicting transactions are retried until
// they succeed.
func TestSerializationFailureIsRetried(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		must(t, d, "CREATE TABLE counter (n BIGINT)", "INSERT INTO counter VALUES (0)")
		const each, writers = 10, 8
		var tries, commits atomic.Int64
		var wg, met sync.WaitGroup
		met.Add(2)
		for range writers {
			wg.Go(func() {
				for range each {
					err := d.Tx(t.Context(), func(tx *db.Tx) error {
						try := tries.Add(1)
						tx.AfterCommit(func() { commits.Add(1) })
						if d.Postgres() {
							if _, err := tx.ExecContext(t.Context(), "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"); err != nil {
								return err
							}
						}
						var n int
						if err := tx.QueryRowContext(t.Context(), "SELECT n FROM counter").Scan(&n); err != nil {
							return err
						}
						if d.Postgres() && try <= 2 { // the first two read before either writes
							met.Done()
							met.Wait()
						}
						_, err := tx.ExecContext(t.Context(), "UPDATE counter SET n = ?", n+1)
						return err
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		var n int64
		if err := d.QueryRowContext(t.Context(), "SELECT n FROM counter").Scan(&n); err != nil || n != each*writers || commits.Load() != n {
			t.Errorf("counted %d, %d commits, %v", n, commits.Load(), err)
		}
		if d.Postgres() && tries.Load() == n {
			t.Error("no transaction stood in the way of another: the test shows nothing")
		}
		if !d.Postgres() && tries.Load() != n {
			t.Errorf("%d tries with one writer", tries.Load())
		}
	})
}

func TestDeadlockIsRetried(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		must(t, d, "INSERT INTO settings VALUES ('a', ''), ('b', '')")
		var tries atomic.Int64
		var wg, both sync.WaitGroup
		both.Add(2)
		for _, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
			wg.Go(func() {
				first := true
				err := d.Tx(t.Context(), func(tx *db.Tx) error {
					tries.Add(1)
					for _, key := range order {
						if err := db.ExecOne(t.Context(), tx, "UPDATE settings SET value = value || ? WHERE key = ?", order[0], key); err != nil {
							return err
						}
						if first && d.Postgres() {
							first = false
							both.Done() // each holds the lock that the other needs
							both.Wait()
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := count(t, d, "settings WHERE value IN ('ab', 'ba')"); n != 2 {
			t.Errorf("%d rows have both letters", n)
		}
		if d.Postgres() && tries.Load() < 3 {
			t.Error("there was no deadlock: the test shows nothing")
		}
	})
}
