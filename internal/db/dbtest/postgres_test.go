package dbtest

import (
	"os"
	"testing"
)

// TestSpare leaves traces of every kind in a database: the next test finds none
// of them.
func TestSpare(t *testing.T) {
	if os.Getenv("TEST_POSTGRES") == "" {
		return // there is no server to share
	}
	const (
		mark  = "INSERT INTO topics (name, created_at, updated_at) VALUES ('left', 0, 0)"
		table = "CREATE TABLE left_behind (n BIGINT)"
		note  = "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, TRUE)"
	)
	seen := map[string]bool{}
	for _, trace := range []string{mark, mark, table, mark, note, ""} {
		t.Run("", func(t *testing.T) {
			src := Postgres(t)
			d := src.Open(t)
			var rows, next, tables int
			err := d.SQL().QueryRow("SELECT count(*) FROM topics").Scan(&rows)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.SQL().QueryRow("INSERT INTO topics (name, created_at, updated_at) VALUES ('a', 0, 0) RETURNING id").Scan(&next); err != nil {
				t.Fatal(err)
			}
			if err := d.SQL().QueryRow("SELECT count(*) FROM pg_class WHERE relname = 'left_behind'").Scan(&tables); err != nil {
				t.Fatal(err)
			}
			if rows != 0 || next != 1 || tables != 0 {
				t.Errorf("%d rows, next id %d, %d tables of others", rows, next, tables)
			}
			if trace != "" {
				if _, err := d.SQL().Exec(trace); err != nil {
					t.Fatal(err)
				}
			}
			seen[src.URL] = true
		})
	}
	if len(seen) != 3 { // those with another table, and another note, went away
		t.Errorf("%d databases, want 3", len(seen))
	}
}
