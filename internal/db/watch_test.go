package db_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"svc/internal/db"
	"svc/internal/db/dbtest"
)

func TestOnWrite(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var told []string
		refuse := false
		d.OnWrite([]string{"settings", "emails"}, func(ctx context.Context, tx *db.Tx) error {
			if refuse {
				return errors.New("no")
			}
			told = append(told, fmt.Sprint(count(t, tx, "settings")))
			return nil
		})
		for _, c := range []struct {
			name  string
			texts []string
			want  string
		}{
			{"insert", []string{"INSERT INTO settings VALUES ('a', '')"}, "[1]"},
			{"twice", []string{"INSERT INTO settings VALUES ('b', '')", "\n\tINSERT INTO settings VALUES ('c', '')"}, "[3]"},
			{"update", []string{"UPDATE settings SET value = 'x' WHERE key = 'a'"}, "[3]"},
			{"returning", []string{"UPDATE settings SET value = 'x' WHERE key = 'a' RETURNING key"}, "[3]"},
			{"with", []string{"WITH x AS (SELECT 'd' AS k) INSERT INTO settings SELECT k, '' FROM x"}, "[4]"},
			{"delete", []string{"DELETE FROM settings WHERE key = 'a'"}, "[3]"},
			{"read", []string{"SELECT * FROM settings"}, "[]"},
			{"another table", []string{"DELETE FROM instance_variables"}, "[]"},
			{"none at all", nil, "[]"},
		} {
			told = nil
			err := d.Tx(t.Context(), func(tx *db.Tx) error {
				for _, text := range c.texts {
					must(t, tx, text)
				}
				return nil
			})
			if got := fmt.Sprint(told); err != nil || got != c.want {
				t.Errorf("%s: told %s, want %s: %v", c.name, got, c.want, err)
			}
		}
		told = nil
		if _, err := d.ExecContext(t.Context(), "DELETE FROM settings WHERE key = 'b'"); err != nil || fmt.Sprint(told) != "[2]" {
			t.Errorf("outside of a transaction: %v, %v", told, err)
		}
		if _, err := d.QueryContext(t.Context(), "DELETE FROM settings WHERE key = 'c' RETURNING key"); err == nil {
			t.Error("a query outside of a transaction wrote unseen")
		}
		refuse = true
		if err := d.Tx(t.Context(), func(tx *db.Tx) error { must(t, tx, "DELETE FROM settings"); return nil }); err == nil {
			t.Error("committed although a watch failed")
		}
		if n := count(t, d, "settings"); n != 2 {
			t.Errorf("%d rows", n)
		}
	})
}
