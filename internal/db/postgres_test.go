package db_test

import (
	"testing"

	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/waittest"
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

// TestIdleTransactions checks that a transaction that sends no statement for a while loses its
// connection, so that its locks end, and runs again.
func TestIdleTransactions(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		d, other := src.Open(t), src.Open(t)
		if !d.Postgres() {
			return // other processes do not wait for this one
		}
		const setting = "idle_in_transaction_session_timeout"
		attempts := 0
		err := d.Tx(t.Context(), func(tx *db.Tx) error {
			attempts++
			var limit string
			var pid int64
			if err := tx.QueryRowContext(t.Context(), `SELECT current_setting(?), pg_backend_pid()`, setting).Scan(&limit, &pid); err != nil {
				return err
			}
			if limit != "30s" {
				t.Errorf("the limit is %s", limit)
			}
			if attempts == 1 {
				if _, err := tx.ExecContext(t.Context(), "SET LOCAL "+setting+" = 1"); err != nil {
					return err
				}
				waittest.For(t, "the end of the connection", func() bool {
					there, err := db.Exists(t.Context(), other, `SELECT 1 FROM pg_stat_activity WHERE pid = ?`, pid)
					return err == nil && !there
				})
			}
			_, err := tx.ExecContext(t.Context(), `INSERT INTO settings (key, value) VALUES ('idle', '')`)
			return err
		})
		if err != nil || attempts != 2 {
			t.Errorf("%d attempts, %v", attempts, err)
		}
	})
}
