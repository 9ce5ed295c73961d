package db_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/waittest"
)

// newer returns the migrations of a later release.
func newer(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + text)}
	}
	return m
}

// upgraded opens the database as a newer release with other migrations.
func upgraded(t *testing.T, src dbtest.Source, files map[string]string) *db.DB {
	t.Helper()
	d := src.Open(t)
	d.AddMigrations(newer(files))
	return d
}

func migrate(t *testing.T, d *db.DB) {
	t.Helper()
	if err := d.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func knows(t *testing.T, d *db.DB) int64 {
	t.Helper()
	_, know, err := d.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return know
}

// TestMigrateOlderRelease checks that a release starts on the schema of a newer one if all
// migrations in between allow it.
func TestMigrateOlderRelease(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		this := src.Open(t)
		know := knows(t, this)
		expand := fmt.Sprintf("-- oldest: %04d\nALTER TABLE topics ADD COLUMN color TEXT NOT NULL DEFAULT 'red';", know)
		migrate(t, upgraded(t, src, map[string]string{"9001_color.sql": expand}))
		migrate(t, this)
		must(t, this, "INSERT INTO topics (name, created_at, updated_at) VALUES ('t', 0, 0)")
		s, err := this.Schema(t.Context())
		if err != nil || s.Have != 9001 || s.Needs != know || s.Refused() != nil {
			t.Errorf("%+v, %v", s, err)
		}

		migrate(t, upgraded(t, src, map[string]string{"9001_color.sql": expand, "9002_rename.sql": "ALTER TABLE topics RENAME COLUMN color TO shade;"}))
		if err := this.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "run a newer release") || !strings.Contains(err.Error(), "9002") {
			t.Errorf("an older release starts on a schema that does not allow it: %v", err)
		}
	})
}

// TestMigratePost checks that post-deployment migrations run a day after the others, or on
// request, and never while an older release runs.
func TestMigratePost(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		files := map[string]string{
			"9001_color.sql":   fmt.Sprintf("-- oldest: %04d\nALTER TABLE topics ADD COLUMN color TEXT;", knows(t, src.Open(t))),
			"9002_uncolor.sql": "-- oldest: 9001\n-- phase: post\nALTER TABLE topics DROP COLUMN color;",
			"9003_shade.sql":   "-- oldest: 0001\nALTER TABLE topics ADD COLUMN shade TEXT;",
		}
		d := upgraded(t, src, files)
		migrate(t, d)
		migrate(t, d)
		s, err := d.Schema(t.Context())
		if err != nil || s.Have != 9003 || len(s.Pending) != 0 || fmt.Sprint(s.Post) != "[9002_uncolor]" {
			t.Fatalf("%+v, %v", s, err)
		}
		must(t, d, "UPDATE topics SET color = '', shade = ''")
		if waiting, err := d.MigratePost(t.Context(), false); err != nil || len(waiting) != 1 {
			t.Errorf("%v, %v", waiting, err)
		}

		// A dump of this state can be loaded.
		tables, _, version := dumped(t, d)
		if version.Newest != 9003 || fmt.Sprint(version.Pending) != "[9002]" {
			t.Errorf("the dump has version %+v", version)
		}
		to := upgraded(t, dbtest.Source{Path: t.TempDir() + "/svc.db"}, files)
		err = to.Load(t.Context(), version, func(put func(db.DumpTable) error) error {
			for _, table := range tables {
				if err := put(table); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}

		if d.Postgres() {
			must(t, d, `INSERT INTO nodes (name, version, revision, schema_version, stopping, requests, latency, memory, polls, started_at, seen_at)
				VALUES ('old', '', '', 9000, FALSE, 0, 0, 0, 0, 0, `+fmt.Sprint(time.Now().UnixMicro())+`)`)
			if waiting, err := d.MigratePost(t.Context(), true); err != nil || len(waiting) != 1 {
				t.Errorf("beside an older node: %v, %v", waiting, err)
			}
			must(t, d, `UPDATE nodes SET schema_version = 9001`)
		}
		must(t, d, "UPDATE goose_db_version SET tstamp = '2020-01-01'")
		if waiting, err := d.MigratePost(t.Context(), false); err != nil || len(waiting) != 0 {
			t.Errorf("%v, %v", waiting, err)
		}
		if _, err := d.ExecContext(t.Context(), "UPDATE topics SET color = ''"); err == nil {
			t.Error("the post-deployment migration did not run")
		}
	})
}

// TestMigrateWaitsForOlderNodes checks that a migration that is not compatible with running
// nodes waits for their end.
func TestMigrateWaitsForOlderNodes(t *testing.T) {
	t.Parallel()
	dbtest.EachProxy(t, func(t *testing.T, p *dbtest.Proxy) {
		d := upgraded(t, p.Source, map[string]string{"9001_break.sql": "ALTER TABLE topics RENAME COLUMN name TO label;"})
		must(t, d, `INSERT INTO nodes (name, version, revision, schema_version, stopping, requests, latency, memory, polls, started_at, seen_at)
			VALUES ('old', '', '', 53, FALSE, 0, 0, 0, 0, 0, `+fmt.Sprint(time.Now().Add(time.Hour).UnixMicro())+`)`)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := d.Migrate(ctx); err == nil {
			t.Error("it ran beside an older node")
		}
		must(t, d, "DELETE FROM nodes")
		migrate(t, d)
		must(t, d, "UPDATE topics SET label = ''")
	})
}

// TestMigrateRetriesLocks checks that a migration waits for a lock only for a short time,
// because others wait behind it, and retries.
func TestMigrateRetriesLocks(t *testing.T) {
	t.Parallel()
	dbtest.EachProxy(t, func(t *testing.T, p *dbtest.Proxy) {
		d := upgraded(t, p.Source, map[string]string{"9001_color.sql": "ALTER TABLE topics ADD COLUMN color TEXT;"})
		tx, err := d.SQL().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("SELECT count(*) FROM topics"); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- d.Migrate(t.Context()) }()
		other := p.Open(t)
		// It waits, gives up, and waits again, so the start of its wait changes.
		waits := map[string]bool{}
		waittest.For(t, "two waits", func() bool {
			var began *string
			err := other.QueryRowContext(t.Context(), `SELECT MAX(CAST(query_start AS text)) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&began)
			if err != nil {
				t.Fatal(err)
			}
			if began != nil {
				waits[*began] = true
			}
			return len(waits) >= 2
		})
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		must(t, d, "UPDATE topics SET color = ''")
	})
}

// TestMigrateConcurrentIndex checks that indexes are built while others write. An
// interrupted build leaves an invalid index, which the next run replaces.
func TestMigrateConcurrentIndex(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		d := upgraded(t, src, map[string]string{"9001_index.sql": "-- oldest: 0001\nCREATE INDEX CONCURRENTLY topics_created ON topics (created_at);\nCREATE UNIQUE INDEX CONCURRENTLY topics_once ON topics (updated_at);"})
		if d.Postgres() {
			must(t, d, "INSERT INTO topics (name, created_at, updated_at) VALUES ('a', 1, 1)")
			must(t, d, "INSERT INTO topics (name, created_at, updated_at) VALUES ('b', 1, 1)")
			if err := d.Migrate(t.Context()); err == nil {
				t.Fatal("the index is not unique: the test shows nothing")
			}
			if n := count(t, d, "pg_index WHERE NOT indisvalid"); n != 1 {
				t.Fatalf("%d invalid indexes: the test shows nothing", n)
			}
			must(t, d, "DELETE FROM topics")
		}
		migrate(t, d)
		if d.Postgres() {
			if n := count(t, d, "pg_class c JOIN pg_index i ON i.indexrelid = c.oid WHERE c.relname IN ('topics_created', 'topics_once') AND i.indisvalid"); n != 2 {
				t.Errorf("%d valid indexes", n)
			}
		} else if n := count(t, d, "sqlite_master WHERE name IN ('topics_created', 'topics_once')"); n != 2 {
			t.Errorf("%d indexes", n)
		}
	})
}
