package db_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/waittest"
)

// crowd starts transactions while another one runs, so that they become parts of its group,
// and returns their errors.
func crowd(t *testing.T, d *db.DB, parts []func(tx *db.Tx) error) []error {
	t.Helper()
	var wg sync.WaitGroup
	found := make([]error, len(parts))
	begun := make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	free := make(chan struct{})
	for i, f := range parts {
		wg.Go(func() {
			found[i] = d.Tx(t.Context(), func(tx *db.Tx) error {
				if i == 0 {
					begin()
					<-free
				}
				return f(tx)
			})
		})
		if i == 0 {
			<-begun
			continue
		}
		// Transactions wait in the order of the parts.
		waittest.For(t, "a transaction waits for its turn", func() bool { return queued() == i })
	}
	close(free)
	wg.Wait()
	return found
}

// queued returns the number of goroutines started by the caller that wait for their turn.
// The statistics count a goroutine a moment before it waits, so another could overtake it.
func queued() (n int) {
	stacks := make([]byte, 64<<10)
	own, _, _ := bytes.Cut(stacks[:runtime.Stack(stacks, false)], []byte(" ["))
	for size := len(stacks); size == len(stacks); size = runtime.Stack(stacks, true) {
		stacks = make([]byte, 2*len(stacks))
	}
	for stack := range bytes.SplitSeq(stacks, []byte("\n\n")) {
		state, calls, _ := bytes.Cut(stack, []byte(":\n"))
		_, parent, _ := bytes.Cut(calls, []byte(" in "))
		parent, _, _ = bytes.Cut(parent, []byte("\n"))
		if bytes.Contains(state, []byte("[select")) && bytes.Contains(calls, []byte("db.(*turn).take(")) && bytes.Equal(parent, own) {
			n++
		}
	}
	return n
}

func insert(name string) func(tx *db.Tx) error {
	return func(tx *db.Tx) error {
		_, err := tx.ExecContext(context.Background(), "INSERT INTO settings VALUES (?, '')", name)
		return err
	}
}

// TestGroup commits many transactions at once, except for those that fail.
func TestGroup(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t).Open(t)
	refused := errors.New("refused")
	var parts []func(tx *db.Tx) error
	inner := map[*sql.Tx]bool{}
	for i := range 9 {
		parts = append(parts, func(tx *db.Tx) error {
			inner[tx.SQL()] = true
			if err := insert(fmt.Sprint("a", i))(tx); err != nil {
				return err
			}
			switch i % 3 {
			case 1:
				return refused
			case 2:
				_ = insert("a0")(tx) // the row exists: the transaction can only be rolled back
			}
			return nil
		})
	}
	for i, err := range crowd(t, d, parts) {
		_, taken := errors.AsType[*db.ConstraintError](err)
		if ok := err == nil; ok != (i%3 == 0) || errors.Is(err, refused) != (i%3 == 1) || taken != (i%3 == 2) {
			t.Errorf("part %d: %v", i, err)
		}
	}
	if n := count(t, d, "settings"); n != 3 {
		t.Errorf("%d rows", n)
	}
	if len(inner) != 1 {
		t.Errorf("%d commits", len(inner))
	}
}

// TestGroupWithoutItsFirst checks that a group continues after its first part has failed.
func TestGroupWithoutItsFirst(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t).Open(t)
	found := crowd(t, d, []func(tx *db.Tx) error{
		func(tx *db.Tx) error { return errors.Join(insert("a")(tx), errors.New("refused")) },
		insert("b"), insert("c"),
	})
	if found[0] == nil || found[1] != nil || found[2] != nil || count(t, d, "settings") != 2 {
		t.Error(found)
	}
}

// TestGroupIsLost rolls back the whole transaction of a group, as SQLite does on some
// errors: all parts except the failed one are retried.
func TestGroupIsLost(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t).Open(t)
	found := crowd(t, d, []func(tx *db.Tx) error{
		insert("a"), insert("b"),
		func(tx *db.Tx) error {
			_, err := tx.SQL().Exec("ROLLBACK")
			return errors.Join(err, errors.New("refused"))
		},
		insert("c"),
	})
	if found[0] != nil || found[1] != nil || found[2] == nil || found[3] != nil || count(t, d, "settings") != 3 {
		t.Error(found)
	}
}

// TestGroupAndPanic checks that a panic releases the writer.
func TestGroupAndPanic(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t).Open(t)
	panics := func(tx *db.Tx) error { panic("at " + fmt.Sprint(insert("p")(tx))) }
	for _, parts := range [][]func(tx *db.Tx) error{{panics}, {insert("a"), panics, insert("b")}} {
		var wg sync.WaitGroup
		for _, f := range parts {
			wg.Go(func() {
				defer func() { _ = recover() }()
				if err := d.Tx(t.Context(), f); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	must(t, d, "INSERT INTO settings VALUES ('c', '')")
	if n := count(t, d, "settings"); n != 3 {
		t.Errorf("%d rows", n)
	}
}

// TestGroupAndRows runs a statement that writes and returns rows while a group is open:
// both are committed.
func TestGroupAndRows(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t).Open(t)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			name := fmt.Sprint("a", i)
			if i%2 == 0 {
				if err := d.Tx(t.Context(), insert(name)); err != nil {
					t.Error(err)
				}
				return
			}
			var back string
			if err := d.QueryRowContext(t.Context(), "INSERT INTO settings VALUES (?, '') RETURNING key", name).Scan(&back); err != nil || back != name {
				t.Error(back, err)
			}
		})
	}
	wg.Wait()
	if n := count(t, d, "settings"); n != 40 {
		t.Errorf("%d rows", n)
	}
}
