package db_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"svc/internal/db"
	"svc/internal/db/dbtest"
)

func TestTerms(t *testing.T) {
	t.Parallel()
	for search, want := range map[string][]string{
		"":                                  nil,
		"  ":                                nil,
		"one":                               {"one"},
		" one  two\tthree ":                 {"one", "two", "three"},
		`"one two" three`:                   {"one two", "three"},
		`one "two`:                          {"one", `"two`},
		`""`:                                nil,
		"one one":                           {"one"},
		"a b c d e f g h i j k l m n o p q": {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p q"},
	} {
		if got := db.Terms(search); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", search, got, want)
		}
	}
}

// TestWithText changes the text of rows in all possible ways.
func TestWithText(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		run := func(query string, args ...any) {
			t.Helper()
			if err := d.Tx(t.Context(), func(tx *db.Tx) error {
				_, err := tx.ExecContext(t.Context(), query, args...)
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		find := func(search string, want ...int64) {
			t.Helper()
			got, err := d.WithText(t.Context(), "issues", search, "title", "description")
			if err != nil {
				t.Fatal(err)
			}
			if got == nil || !slices.Equal(got, want) {
				t.Errorf("%q: got %v, want %v", search, got, want)
			}
		}
		run(`INSERT INTO users (id, username, name, email, password_hash, namespace_id, created_at, updated_at) VALUES (901, 'a', 'a', 'a@example.org', '', 901, 0, 0)`)
		run(`INSERT INTO namespaces (id, kind, user_id, path, name, created_at, updated_at) VALUES (901, 'user', 901, 'a', 'a', 0, 0)`)
		run(`INSERT INTO projects (id, namespace_id, path, name, full_path, last_activity_at, created_at, updated_at) VALUES (1, 901, 'p', 'p', 'a/p', 0, 0, 0)`)
		add := func(id int64, title, text string) {
			t.Helper()
			run(`INSERT INTO issues (id, project_id, iid, author_id, created_at, updated_at, title, description) VALUES (?, 1, ?, 901, 0, 0, ?, ?)`, id, id, title, text)
		}
		add(1, "The gear train", "turns without a sound")
		add(2, "A train of thought", `costs 100 % of "it"`)
		add(3, "Räder ÜBER alles", "x")
		find("train", 1, 2)
		find("TRAIN gear", 1)
		find("sound train", 1)
		find(`"train of"`, 2)
		find(`"of train"`)
		find("über", 3)
		find("ear tra", 1)
		find(`100`, 2)
		find(`"100 %"`, 2)
		find(`of "it`, 2) // an unclosed quote is a character
		find("unknown")
		find("train of", 1, 2) // a short word is not looked up
		if got, err := d.WithText(t.Context(), "issues", "of it", "title"); err != nil || got != nil {
			t.Errorf("got %v, %v", got, err)
		}
		if got, err := d.WithText(t.Context(), "issues", "sound", "title"); err != nil || got == nil || len(got) > 0 {
			t.Errorf("got %v, %v", got, err)
		}
		run(`INSERT INTO issues (id, project_id, iid, author_id, title, description, created_at, updated_at)
			WITH RECURSIVE n (i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 2100)
			SELECT n.i, 1, n.i, 901, 'A common word', '', 0, 0 FROM n`)
		for range 2 { // the second result is cached
			if got, err := d.WithText(t.Context(), "issues", "common", "title"); err != nil || got != nil {
				t.Errorf("more than the limit: got %d, %v", len(got), err)
			}
		}
		query, all := `SELECT i.id FROM issues i WHERE i.title = ?`, []any{"A common word"}
		if got, few, err := d.Few(t.Context(), query, all, 1101); err != nil || !few || len(got) != 1101 {
			t.Errorf("few: got %d, %v, %v", len(got), few, err)
		}
		if got, few, err := d.Few(t.Context(), query, all, 1100); err != nil || few || got != nil {
			t.Errorf("many: got %d, %v, %v", len(got), few, err)
		}
		run(`DELETE FROM issues WHERE iid >= 1000`)
		run(`UPDATE issues SET title = 'The clock' WHERE id = 1`)
		find("gear")
		find("clock", 1)
		find("sound", 1)
		run(`DELETE FROM issues WHERE id = 2`)
		find("thought")
		if err := d.Tx(t.Context(), func(tx *db.Tx) error {
			if _, err := tx.ExecContext(t.Context(), `UPDATE issues SET title = 'Lost' WHERE id = 1`); err != nil {
				return err
			}
			return fmt.Errorf("rolled back")
		}); err == nil {
			t.Error("it was committed")
		}
		find("lost")
		find("clock", 1)
		add(4, "Long", strings.Repeat("é", 65_529)+" within beyond")
		find("within", 4)
		find("beyond") // after the first 65,536 characters
		run(`UPDATE issues SET description = 'beyond ' || description WHERE id = 4`)
		find("beyond", 4)
		find("within")
		run(`DELETE FROM projects WHERE id = 1`) // with its issues
		find("clock")
		find("über")
		find("beyond")
		if d.Postgres() {
			return // its indexes are always up to date
		}
		for _, table := range []string{"issues", "merge_requests", "notes", "milestones", "projects", "snippets", "users", "packages"} {
			run(`INSERT INTO ` + table + `_text (` + table + `_text, rank) VALUES ('integrity-check', 1)`)
		}
	})
}

// TestWithoutTextIndex searches a PostgreSQL database without the extension pg_trgm: there are
// no candidates, so lists scan. SQLite always has its index.
func TestWithoutTextIndex(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if d.Postgres() {
			if _, err := d.ExecContext(t.Context(), `DROP EXTENSION pg_trgm CASCADE`); err != nil {
				t.Fatal(err)
			}
		}
		got, err := d.WithText(t.Context(), "issues", "train", "title")
		if err != nil || (got == nil) != d.Postgres() {
			t.Errorf("got %v, %v", got, err)
		}
	})
}
