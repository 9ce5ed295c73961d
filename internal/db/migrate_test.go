package db_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/db"
	"svc/internal/db/dbtest"
)

func TestMigrateAtOnce(t *testing.T) {
	t.Parallel()
	dbtest.EachEmpty(t, func(t *testing.T, src dbtest.Source) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				d, err := db.Open(t.Context(), src.URL, src.Path)
				if err != nil {
					t.Error(err)
					return
				}
				if err := d.Migrate(t.Context()); err != nil {
					t.Error(err)
				}
				have, know, err := d.Version(t.Context())
				if err != nil || have != know || know == 0 {
					t.Errorf("version %d of %d, %v", have, know, err)
				}
				if n := count(t, d, "users"); n != 0 {
					t.Error(n)
				}
				if n := count(t, d, "river_job"); n != 0 {
					t.Error(n)
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		d := src.Open(t)
		if err := d.Migrate(t.Context()); err != nil {
			t.Error(err)
		}
		if have, _, _ := d.Version(t.Context()); count(t, d, "goose_db_version WHERE version_id > 0") != int(have) {
			t.Error("a migration ran twice")
		}
	})
}

func TestMigrateRefusesANewerSchema(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		must(t, d, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, TRUE)")
		err := d.Migrate(t.Context())
		if err == nil || !strings.Contains(err.Error(), "9999") || !strings.Contains(err.Error(), "newer release") {
			t.Error(err)
		}
	})
}

// TestMigrateWaits checks that waiting for another migration ends with the context.
func TestMigrateWaits(t *testing.T) {
	t.Parallel()
	dbtest.EachEmpty(t, func(t *testing.T, src dbtest.Source) {
		d := src.Open(t)
		unlock := db.LockForTest(t, d)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := src.Open(t).Migrate(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		unlock()
		if err := d.Migrate(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
