package dbtest

import (
	"os"
	"sync"
	"testing"

	"svc/internal/db"
	"svc/internal/waittest"
)

// TestSpare changes a database in every way: the next test sees none of the changes.
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
	if len(seen) != 3 { // databases with another table or migration record were dropped
		t.Errorf("%d databases, want 3", len(seen))
	}
}

// TestSpareWaits leaves a connection open until the database is being restored, as a slow
// server does: the next test gets the same database.
func TestSpareWaits(t *testing.T) {
	if os.Getenv("TEST_POSTGRES") == "" {
		return // there is no server to share
	}
	admin := Source{URL: os.Getenv("TEST_POSTGRES")}.Open(t)
	var late sync.WaitGroup
	var used []string
	for range 3 {
		t.Run("", func(t *testing.T) {
			src := Postgres(t)
			used = append(used, src.URL)
			d, err := db.Open(t.Context(), src.URL+"&application_name=other", "")
			if err != nil {
				t.Fatal(err)
			}
			var name string
			if err := d.SQL().QueryRow("SELECT current_database()").Scan(&name); err != nil {
				t.Fatal(err)
			}
			late.Go(func() {
				waittest.For(t, "the connections to the database are counted", func() bool {
					var all, counting int
					err := admin.SQL().QueryRow(`SELECT count(*), count(*) FILTER (WHERE query LIKE '%pg_stat_activity%')
						FROM pg_stat_activity WHERE datname = $1 AND (application_name = 'other' OR query LIKE '%pg_stat_activity%')`, name).Scan(&all, &counting)
					return err != nil || all == 0 || counting > 0
				})
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
	late.Wait()
	if used[0] != used[1] || used[1] != used[2] {
		t.Errorf("the tests used %q, want one database", used)
	}
}

// TestKept runs several tests on one database: they share its connections, which do not
// carry over session state.
func TestKept(t *testing.T) {
	if os.Getenv("TEST_POSTGRES") == "" {
		return // there is no server to share
	}
	used := map[int]bool{}
	for range 3 {
		t.Run("", func(t *testing.T) {
			d := Postgres(t).Open(t)
			c, err := d.SQL().Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			var pid, locks, channels int
			err = c.QueryRowContext(t.Context(), `SELECT pg_backend_pid(), (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
				(SELECT count(*) FROM pg_listening_channels())`).Scan(&pid, &locks, &channels)
			if err != nil {
				t.Fatal(err)
			}
			if locks != 0 || channels != 0 {
				t.Errorf("%d locks and %d channels of the test before", locks, channels)
			}
			used[pid] = true
			if _, err := c.ExecContext(t.Context(), `SELECT pg_advisory_lock(1)`); err != nil {
				t.Fatal(err)
			}
			if _, err := c.ExecContext(t.Context(), `LISTEN passing`); err != nil {
				t.Fatal(err)
			}
		})
	}
	if len(used) != 1 {
		t.Errorf("the tests used %d connections, want 1", len(used))
	}
}

// TestGeneric runs a test and a benchmark on one database: only the test has generic plans.
func TestGeneric(t *testing.T) {
	if os.Getenv("TEST_POSTGRES") == "" {
		return // there is no server to share
	}
	for _, generic := range []bool{true, false, true} {
		t.Run("", func(t *testing.T) {
			want := "auto"
			if generic {
				want = "force_generic_plan"
			}
			var mode string
			if err := postgres(t, generic).Open(t).SQL().QueryRow("SELECT current_setting('plan_cache_mode')").Scan(&mode); err != nil || mode != want {
				t.Errorf("plan_cache_mode is %s, %v, want %s", mode, err, want)
			}
		})
	}
}
