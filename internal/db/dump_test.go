package db_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"svc/internal/db"
	"svc/internal/db/dbtest"
)

// dumped returns the result of Dump as text, so that equivalent values are equal.
func dumped(t *testing.T, d *db.DB) (tables []db.DumpTable, text []string, version db.DumpVersion) {
	t.Helper()
	version, err := d.Dump(t.Context(), func() error { return nil }, func(table db.DumpTable) error {
		var rows [][]any
		for row, err := range table.Rows {
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		table.Rows = rowsOf(rows...)
		tables = append(tables, table)
		var lines []string
		for _, row := range rows {
			byName := map[string]any{}
			for i, name := range table.Columns {
				byName[name] = row[i]
			}
			line, err := json.Marshal(byName)
			if err != nil {
				return err
			}
			lines = append(lines, string(line))
		}
		slices.Sort(lines)
		text = append(text, fmt.Sprintf("%s %d\n%s", table.Name, table.Last, strings.Join(lines, "\n")))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tables, text, version
}

// TestDumpAndLoad copies a database into an empty one of each kind, and compares the
// contents.
func TestDumpAndLoad(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, query := range []string{
			// The parent has the higher id, and the highest id is gone.
			`INSERT INTO namespaces (id, kind, path, name, full_path, created_at, updated_at) VALUES (7, 'group', 'up', 'Up', 'up', 1, 1)`,
			`INSERT INTO namespaces (id, kind, path, name, full_path, parent_id, created_at, updated_at) VALUES (3, 'group', 'é "q"', 'Down', 'up/e', 7, 1, 1)`,
			`INSERT INTO projects (id, namespace_id, path, name, full_path, archived, last_activity_at, created_at, updated_at) VALUES (2, 3, 'p', 'p', 'up/e/p', TRUE, 1, 1, 9007199254740993)`,
			`INSERT INTO project_languages (project_id, name, share) VALUES (2, 'Go', 33.25)`,
		} {
			if _, err := d.ExecContext(t.Context(), query); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
		}
		var gone int64
		if err := d.QueryRowContext(t.Context(), `INSERT INTO topics (name, title, created_at, updated_at) VALUES ('gone', 'x', 1, 1) RETURNING id`).Scan(&gone); err != nil {
			t.Fatal(err)
		}
		if _, err := d.ExecContext(t.Context(), `DELETE FROM topics WHERE id = ?`, gone); err != nil {
			t.Fatal(err)
		}
		tables, want, version := dumped(t, d)
		dbtest.EachEmpty(t, func(t *testing.T, src dbtest.Source) {
			to := src.Open(t)
			load := func(list []db.DumpTable) error {
				return to.Load(t.Context(), version, func(put func(db.DumpTable) error) error {
					for _, table := range list {
						if err := put(table); err != nil {
							return err
						}
					}
					return nil
				})
			}
			if err := load(tables); err != nil {
				t.Fatal(err)
			}
			_, got, _ := dumped(t, to)
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("got\n%s\nwant\n%s", got[i], want[i])
				}
			}
			if err := load(tables); err == nil || !strings.Contains(err.Error(), "not empty") {
				t.Errorf("twice: %v", err)
			}
			var again int64
			if err := to.QueryRowContext(t.Context(), `INSERT INTO topics (name, title, created_at, updated_at) VALUES ('new', 'x', 1, 1) RETURNING id`).Scan(&again); err != nil || again <= gone {
				t.Errorf("the id %d is given again as %d: %v", gone, again, err)
			}
			if _, err := to.ExecContext(t.Context(), `DELETE FROM namespaces WHERE id = 7`); err == nil {
				var n int
				if err := to.QueryRowContext(t.Context(), `SELECT count(*) FROM projects`).Scan(&n); err != nil || n != 0 {
					t.Errorf("what refers to it stays: %d %v", n, err)
				}
			}
		})
	})
}

func rowsOf(list ...[]any) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for _, row := range list {
			if !yield(row, nil) {
				return
			}
		}
	}
}

// TestLoadRefuses checks that a dump that does not fit leaves nothing behind.
func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	for name, table := range map[string]db.DumpTable{
		"no such table":  {Name: "nothing"},
		"no such column": {Name: "stars", Columns: []string{"x"}, Rows: rowsOf()},
		"refers nowhere": {Name: "stars", Columns: []string{"user_id", "project_id", "created_at"}, Rows: rowsOf([]any{int64(1), int64(2), int64(3)})},
		"another type":   {Name: "stars", Columns: []string{"user_id", "project_id", "created_at"}, Rows: rowsOf([]any{"a", "b", "c"})},
		"too few values": {Name: "stars", Columns: []string{"user_id", "project_id", "created_at"}, Rows: rowsOf([]any{int64(1)})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused := func(t *testing.T, src dbtest.Source) {
				d := src.Open(t)
				if err := d.Load(t.Context(), db.DumpVersion{Newest: 9999}, nil); err == nil || !strings.Contains(err.Error(), "newer release") {
					t.Errorf("a newer one: %v", err)
				}
				if err := d.Load(t.Context(), db.DumpVersion{Newest: 5}, func(put func(db.DumpTable) error) error { return put(table) }); err == nil {
					t.Error("it was taken")
				}
				if err := d.Empty(t.Context()); err != nil {
					t.Errorf("something is left: %v", err)
				}
			}
			if name == "refers nowhere" { // the databases detect that in different ways
				dbtest.EachEmpty(t, refused)
				return
			}
			refused(t, dbtest.Source{Path: filepath.Join(t.TempDir(), "svc.db")})
		})
	}
}

// TestLoadOlder checks that a dump of an older release is migrated.
func TestLoadOlder(t *testing.T) {
	t.Parallel()
	dbtest.EachEmpty(t, func(t *testing.T, src dbtest.Source) {
		const version = 2 // the namespaces of users have no paths yet
		tables := []db.DumpTable{
			{Name: "users", Last: 40, Columns: []string{"id", "username", "name", "email", "created_at", "updated_at"},
				Rows: rowsOf([]any{json.Number("7"), "alice", "Al\x00ice", "a@example.org", json.Number("1"), json.Number("1")})},
			{Name: "namespaces", Columns: []string{"id", "kind", "user_id", "path", "name", "created_at", "updated_at"},
				Rows: rowsOf([]any{json.Number("9"), "user", json.Number("7"), "alice", "A\xff", json.Number("1"), json.Number("1")})},
		}
		d := src.Open(t)
		err := d.Load(t.Context(), db.DumpVersion{Newest: version}, func(put func(db.DumpTable) error) error {
			return errors.Join(put(tables[0]), put(tables[1]))
		})
		if err != nil {
			t.Fatal(err)
		}
		if s, err := d.Schema(t.Context()); len(s.Pending) > 0 || err != nil {
			t.Errorf("version %d of %d, without %q: %v", s.Have, s.Know, s.Pending, err)
		}
		var path, person, name string
		err = d.QueryRowContext(t.Context(), `
			SELECT n.full_path, u.name, n.name FROM namespaces n JOIN users u ON u.id = n.user_id`).Scan(&path, &person, &name)
		if err != nil || path != "alice" {
			t.Errorf("%q, %v", path, err)
		}
		wantPerson, wantName := "Al\x00ice", "A\xff"
		if d.Postgres() { // which refuses such text
			wantPerson, wantName = "Al\uFFFDice", "A\uFFFD"
		}
		if person != wantPerson || name != wantName {
			t.Errorf("%q, %q", person, name)
		}
	})
}

// TestDumpWhileWriting checks that concurrent writes are not in a dump, and do not wait for
// it.
func TestDumpWhileWriting(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		must(t, d, `INSERT INTO topics (name, title, created_at, updated_at) VALUES ('before', 'x', 1, 1)`)
		found := ""
		_, err := d.Dump(t.Context(), func() error {
			must(t, d, `INSERT INTO topics (name, title, created_at, updated_at) VALUES ('meanwhile', 'x', 1, 1)`)
			must(t, d, `DELETE FROM topics WHERE name = 'before'`)
			return nil
		}, func(table db.DumpTable) error {
			for row, err := range table.Rows {
				if err != nil {
					return err
				}
				if table.Name == "topics" {
					found += fmt.Sprint(row[slices.Index(table.Columns, "name")], " ")
				}
			}
			return nil
		})
		if err != nil || found != "before " {
			t.Errorf("topics %q, %v", found, err)
		}
	})
}
