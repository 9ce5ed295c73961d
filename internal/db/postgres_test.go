package db_test

import (
	"testing"

	"svc/internal/db"
	"svc/internal/db/dbtest"
)

// TestPlanned checks that only lists of candidates have connections with generic plans.
func TestPlanned(t *testing.T) {
	t.Parallel()
	dbtest.EachEmpty(t, func(t *testing.T, src dbtest.Source) {
		d := src.Open(t)
		if !d.Postgres() {
			if d.Planned() != db.Q(d) {
				t.Error("SQLite has other connections")
			}
			return
		}
		for want, q := range map[string]db.Q{"auto": d, "force_generic_plan": d.Planned()} {
			var mode string
			if err := q.QueryRowContext(t.Context(), `SELECT current_setting(?)`, "plan_cache_mode").Scan(&mode); err != nil || mode != want {
				t.Errorf("plan_cache_mode is %s, %v, want %s", mode, err, want)
			}
		}
	})
}
