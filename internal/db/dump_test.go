package db_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"svc/internal/db"
	"svc/internal/db/dbtest"
)

// dumped is what Dump gives, as text: values that look alike are alike.
func dumped(t *testing.T, d *db.DB) (tables []db.DumpTable, text []string, version int64) {
	t.Helper()
	version, err := d.Dump(t.Context(), func(table db.DumpTable) error {
		var rows [][]any
		for row, err := range table.Rows {
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		table.Rows = func(yield func([]any, error) bool) {
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
		}
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

// TestDumpAndLoad carries a database into an empty one of each kind, and finds
// the same there.
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

// TestLoadRefuses: what does not fit leaves nothing.
func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	rows := func(list ...[]any) func(func([]any, error) bool) {
		return func(yield func([]any, error) bool) {
			for _, row := range list {
				if !yield(row, nil) {
					return
				}
			}
		}
	}
	for name, table := range map[string]db.DumpTable{
		"no such table":  {Name: "nothing"},
		"no such column": {Name: "stars", Columns: []string{"x"}, Rows: rows()},
		"refers nowhere": {Name: "stars", Columns: []string{"user_id", "project_id", "created_at"}, Rows: rows([]any{int64(1), int64(2), int64(3)})},
		"another type":   {Name: "stars", Columns: []string{"user_id", "project_id", "created_at"}, Rows: rows([]any{"a", "b", "c"})},
		"too few values": {Name: "stars", Columns: []string{"user_id", "project_id", "created_at"}, Rows: rows([]any{int64(1)})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused := func(t *testing.T, src dbtest.Source) {
				d := src.Open(t)
				_, know, err := d.Version(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if err := d.Load(t.Context(), know+1, nil); err == nil || !strings.Contains(err.Error(), "newer release") {
					t.Errorf("a newer one: %v", err)
				}
				if err := d.Load(t.Context(), know, func(put func(db.DumpTable) error) error { return put(table) }); err == nil {
					t.Error("it was taken")
				}
				var n int
				if err := d.QueryRowContext(t.Context(), `SELECT count(*) FROM stars`).Scan(&n); err != nil || n != 0 {
					t.Errorf("%d rows are left: %v", n, err)
				}
			}
			if name == "refers nowhere" { // the databases know that in different ways
				dbtest.EachEmpty(t, refused)
				return
			}
			refused(t, dbtest.Source{Path: filepath.Join(t.TempDir(), "svc.db")})
		})
	}
}
