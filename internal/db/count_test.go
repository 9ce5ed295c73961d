package db_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/waittest"
)

// TestTotalAfterWrites counts before and after writes: of this node, of another one, in
// transactions that are open for long, and of those that are rolled back.
func TestTotalAfterWrites(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		ctx, d, other := t.Context(), src.Open(t), src.Open(t)
		count := func(on *db.DB, want int, from string, args ...any) {
			t.Helper()
			for range 2 { // the second one may be cached
				n, over, err := on.Total(ctx, from, args...)
				if err != nil || over || n != want {
					t.Errorf("total of %s %v: %d, %v, %v; want %d", from, args, n, over, err, want)
				}
			}
		}
		insert := func(on db.Q, key string) error {
			_, err := on.ExecContext(ctx, `INSERT INTO settings (key, value) VALUES (?, '')`, key)
			return err
		}
		const of = `settings WHERE key LIKE 'count-%' AND key <> ?`
		count(d, 0, of, "")
		if err := insert(d, "count-1"); err != nil {
			t.Fatal(err)
		}
		count(d, 1, of, "")
		count(d, 0, of, "count-1")
		if err := insert(other, "count-2"); err != nil {
			t.Fatal(err)
		}
		count(d, 2, of, "")
		count(other, 2, of, "")
		if err := d.Tx(ctx, func(tx *db.Tx) error {
			if err := insert(tx, "count-3"); err != nil {
				return err
			}
			count(d, 2, of, "")
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		count(d, 3, of, "")
		wrong := errors.New("roll back")
		if err := d.Tx(ctx, func(tx *db.Tx) error {
			if err := insert(tx, "count-4"); err != nil {
				return err
			}
			return wrong
		}); !errors.Is(err, wrong) {
			t.Fatal(err)
		}
		count(d, 3, of, "")
		if _, err := d.ExecContext(ctx, `DELETE FROM settings WHERE key = 'count-1'`); err != nil {
			t.Fatal(err)
		}
		count(d, 2, of, "")
		if _, _, err := d.Total(ctx, "nothing"); err == nil {
			t.Error("a list that is not there has a total")
		}
	})
}

// TestTotalWhileOthersWrite counts rows of several writers: a writer finds its own rows
// counted. One of the tables has a change sequence.
func TestTotalWhileOthersWrite(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var wg sync.WaitGroup
		insertProject(t, d)
		for owner := range 8 {
			wg.Go(func() {
				of := fmt.Sprint("owner ", owner)
				insert, from := `INSERT INTO settings (key, value) VALUES (?, ?)`, `settings WHERE value = ?`
				if owner%2 == 0 {
					insert, from = `INSERT INTO labels (project_id, name, color, created_at, updated_at) VALUES (1, ?, ?, 0, 0)`, `labels WHERE color = ?`
				}
				for i := range 10 {
					if err := d.Tx(t.Context(), func(tx *db.Tx) error {
						_, err := tx.ExecContext(t.Context(), insert, fmt.Sprintf("count-%d-%d", owner, i), of)
						return err
					}); err != nil {
						t.Error(err)
						return
					}
					for range 3 {
						if n, _, err := d.Total(t.Context(), from, of); err != nil || n != i+1 {
							t.Errorf("owner %d: %d of %d, %v", owner, n, i+1, err)
						}
					}
				}
			})
		}
		wg.Wait()
	})
}

// insertProject inserts a project with the ID 1.
func insertProject(t *testing.T, d *db.DB) {
	t.Helper()
	for _, query := range []string{
		`INSERT INTO namespaces (id, kind, path, name, full_path, full_name, created_at, updated_at) VALUES (1, 'group', 'g', 'g', 'g', 'g', 0, 0)`,
		`INSERT INTO projects (id, namespace_id, path, name, full_path, last_activity_at, created_at, updated_at) VALUES (1, 1, 'p', 'p', 'g/p', 0, 0, 0)`,
	} {
		if _, err := d.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTotalOfChanges counts rows of tables with change sequences while others write to these
// tables, directly or by foreign keys, in transactions that overlap with the count, and to
// other tables.
func TestTotalOfChanges(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		ctx, d, other := t.Context(), src.Open(t), src.Open(t)
		do := func(on db.Q, query string, args ...any) {
			t.Helper()
			if _, err := on.ExecContext(ctx, query, args...); err != nil {
				t.Fatal(err)
			}
		}
		const of = `labels l JOIN milestones m ON m.project_id = l.project_id WHERE l.color = ?`
		count := func(want int) {
			t.Helper()
			for range 3 {
				if n, over, err := d.Total(ctx, of, "red"); err != nil || over || n != want {
					t.Errorf("total: %d, %v, %v; want %d", n, over, err, want)
				}
			}
		}
		label := func(on db.Q, name string) {
			t.Helper()
			do(on, `INSERT INTO labels (project_id, name, color, description, created_at, updated_at) VALUES (1, ?, 'red', '', 0, 0)`, name)
		}
		busy := func(name string) { // a table without a change sequence
			t.Helper()
			do(other, `INSERT INTO settings (key, value) VALUES (?, '')`, name)
		}
		insertProject(t, d)
		do(d, `INSERT INTO milestones (project_id, iid, title, description, created_at, updated_at) VALUES (1, 1, 'm', '', 0, 0)`)
		count(0)
		label(d, "a")
		count(1)
		busy("a")
		count(1)
		label(other, "b")
		count(2)

		// A transaction that wrote before the rows are counted, and ends afterwards.
		if err := other.Tx(ctx, func(tx *db.Tx) error {
			label(tx, "c")
			count(2)
			if d.Postgres() { // SQLite has one writer
				do(d, `INSERT INTO settings (key, value) VALUES ('during', '')`)
				count(2)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		count(3)
		if d.Postgres() {
			// Transactions of other databases may delay it.
			i := 0
			waittest.For(t, "a count is kept after a write to another table", func() bool {
				at := d.CountedAt(of, "red")
				i++
				busy(fmt.Sprint("then ", i))
				count(3)
				return d.CountedAt(of, "red") == at
			})
		}
		do(other, `UPDATE labels SET color = 'blue' WHERE name = 'c'`)
		count(2)
		do(other, `DELETE FROM projects WHERE id = 1`) // and its labels
		count(0)
	})
}
