package db_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/errs"
)

// must runs statements.
func must(t *testing.T, q db.Q, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := q.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func count(t *testing.T, q db.Q, from string, args ...any) int {
	t.Helper()
	var n int
	if err := q.QueryRowContext(t.Context(), "SELECT count(*) FROM "+from, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestQueries(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var id int64
		err := d.QueryRowContext(t.Context(), "INSERT INTO instance_variables (key, value, protected, created_at, updated_at) VALUES (?, ?, ?, ?, ?) RETURNING id",
			"A", "it's ?", true, time.Now(), time.Now()).Scan(&id)
		if err != nil || id == 0 {
			t.Fatal(id, err)
		}
		var value string
		var protected, masked bool
		err = d.QueryRowContext(t.Context(), "SELECT value, protected, masked FROM instance_variables WHERE id = ? AND value <> '?'", id).Scan(&value, &protected, &masked)
		if err != nil || value != "it's ?" || !protected || masked {
			t.Error(value, protected, masked, err)
		}
		err = d.QueryRowContext(t.Context(), "SELECT value FROM instance_variables WHERE id = ?", -1).Scan(&value)
		if !errors.Is(err, db.ErrNoRows) {
			t.Error(err)
		}
		// A WITH clause that writes uses the writer.
		err = d.QueryRowContext(t.Context(), "WITH x AS (SELECT 'b' AS v) UPDATE instance_variables SET value = (SELECT v FROM x) WHERE id = ? RETURNING value", id).Scan(&value)
		if err != nil || value != "b" {
			t.Error(value, err)
		}
		if _, err := d.ExecContext(t.Context(), "SELECT nothing FROM nowhere"); err == nil {
			t.Error("a bad statement is no error")
		}
		if _, err := d.QueryContext(t.Context(), "SELECT nothing FROM nowhere"); err == nil {
			t.Error("a bad query is no error")
		}
	})
}

func TestAll(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		none, err := db.All(t.Context(), d, db.Value[string], "SELECT key FROM settings")
		if err != nil || none == nil || len(none) != 0 {
			t.Errorf("%#v, %v", none, err)
		}
		must(t, d, "INSERT INTO settings (key, value) VALUES ('a', '1'), ('b', '2'), ('c', '3')")
		keys, err := db.All(t.Context(), d, db.Value[string], "SELECT key FROM settings WHERE value IN "+db.In(2)+" ORDER BY key", db.Any([]string{"1", "3"})...)
		if err != nil || !slices.Equal(keys, []string{"a", "c"}) {
			t.Error(keys, err)
		}
		keys, err = db.All(t.Context(), d, db.Value[string], "SELECT key FROM settings WHERE value IN "+db.In(0))
		if err != nil || len(keys) != 0 {
			t.Error("an empty list:", keys, err)
		}
		bad := errors.New("bad row")
		_, err = db.All(t.Context(), d, func(db.Scanner) (int, error) { return 0, bad }, "SELECT key FROM settings")
		if err != bad {
			t.Error(err)
		}
		gone, err := db.All(t.Context(), d, db.Value[string], "DELETE FROM settings WHERE value < '3' RETURNING key")
		if slices.Sort(gone); err != nil || !slices.Equal(gone, []string{"a", "b"}) || count(t, d, "settings") != 1 {
			t.Error(gone, err)
		}
	})
}

// TestReadsDoNotWaitForWriter checks that on SQLite reads are not blocked by the writer, and
// that readers cannot write.
func TestReadsDoNotWaitForWriter(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		must(t, d, "INSERT INTO settings (key, value) VALUES ('a', 'old')")
		err := d.Tx(t.Context(), func(tx *db.Tx) error {
			must(t, tx, "UPDATE settings SET value = 'new'")
			for _, query := range []string{"SELECT value FROM settings", "WITH s AS (SELECT * FROM settings) SELECT value FROM s"} {
				var value string
				if err := d.QueryRowContext(t.Context(), query).Scan(&value); err != nil || value != "old" {
					t.Errorf("%s outside the transaction: %q, %v", query, value, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := count(t, d, "settings WHERE value = 'new'"); n != 1 {
			t.Error("a read after the commit does not see it")
		}
	})
}

func TestTimes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		must(t, d, "CREATE TABLE times (id BIGINT PRIMARY KEY, at BIGINT NOT NULL, maybe BIGINT)")
		berlin := time.FixedZone("CET", 3600)
		for i, at := range []time.Time{
			time.Date(2026, 2, 28, 23, 59, 59, 999_999_999, time.UTC),
			time.Date(2026, 3, 1, 0, 30, 0, 1_000, berlin),
			time.Date(1969, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
			time.UnixMicro(0),
			{},
			time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		} {
			for j, maybe := range []*time.Time{&at, nil} {
				id := 2*i + j
				if _, err := d.ExecContext(t.Context(), "INSERT INTO times VALUES (?, ?, ?)", id, at, maybe); err != nil {
					t.Fatal(err)
				}
				var got time.Time
				gotMaybe := new(time.Time)
				err := d.QueryRowContext(t.Context(), "SELECT at, maybe FROM times WHERE id = ? AND at = ?", id, at).Scan(db.Time(&got), db.NullTime(&gotMaybe))
				if err != nil {
					t.Fatalf("%v: %v", at, err)
				}
				want := at.UTC().Truncate(time.Microsecond)
				if !got.Equal(want) || got.Location() != time.UTC {
					t.Errorf("got %v, want %v", got, want)
				}
				if maybe == nil && gotMaybe != nil || maybe != nil && (gotMaybe == nil || !gotMaybe.Equal(want)) {
					t.Errorf("null time: got %v, want %v", gotMaybe, maybe)
				}
			}
		}
		var at time.Time
		if err := d.QueryRowContext(t.Context(), "SELECT maybe FROM times WHERE maybe IS NULL LIMIT 1").Scan(db.Time(&at)); err == nil {
			t.Error("null was scanned into a time")
		}
		if err := d.QueryRowContext(t.Context(), "SELECT 'today'").Scan(db.Time(&at)); err == nil {
			t.Error("text was scanned into a time")
		}
	})
}

func TestConstraints(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const user = "INSERT INTO users (id, username, name, email, created_at, updated_at) VALUES "
		must(t, d,
			user+"(1, 'Ann', 'Ann', 'ann@example.com', 0, 0), (2, 'Bob', 'Bob', 'bob@example.com', 0, 0)",
			"INSERT INTO follows VALUES (1, 2, 0)",
			"INSERT INTO settings VALUES ('a', 'b')",
			"INSERT INTO ssh_keys (user_id, title, key, fingerprint, sha256, created_at) VALUES (1, '', '', '', 'x', 0)")
		for _, c := range []struct {
			statement, unique string
			foreign           bool
		}{
			{user + "(3, 'aNN', '', '', 0, 0)", "users_username", false},
			{user + "(1, 'Cy', '', '', 0, 0)", "users_id", false},
			{"INSERT INTO follows VALUES (1, 2, 0)", "follows_follower_id_followed_id", false},
			{"INSERT INTO settings VALUES ('a', '')", "settings_key", false},
			{"INSERT INTO ssh_keys (user_id, title, key, fingerprint, sha256, created_at) VALUES (1, '', '', '', 'x', 0)", "ssh_keys_sha256", false},
			{"UPDATE users SET username = 'bob' WHERE id = 1", "users_username", false},
			{"INSERT INTO follows VALUES (1, 99, 0)", "", true},
			{"UPDATE follows SET followed_id = 99", "", true},
			{"INSERT INTO settings VALUES ('c', NULL)", "", false},
		} {
			_, outside := d.ExecContext(t.Context(), c.statement)
			inside := d.Tx(t.Context(), func(tx *db.Tx) error {
				_, err := tx.ExecContext(t.Context(), c.statement)
				return err
			})
			returning := d.QueryRowContext(t.Context(), c.statement+" RETURNING 1").Scan(new(int))
			for _, err := range []error{outside, inside, returning} {
				if err == nil {
					t.Fatalf("%s: no error", c.statement)
				}
				if db.IsUnique(err, c.unique) != (c.unique != "") || db.IsUnique(err, "other") || db.IsForeignKey(err) != c.foreign {
					t.Errorf("%s: %v", c.statement, err)
				}
				if _, ok := errors.AsType[*db.ConstraintError](err); ok != (c.unique != "" || c.foreign) {
					t.Errorf("%s: %T", c.statement, err)
				}
			}
		}
	})
}

// TestUniqueIndexesAreNamedByTheirColumns checks that the name of a unique index can be
// derived from its columns, because SQLite reports only these.
func TestUniqueIndexesAreNamedByTheirColumns(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t).Open(t)
	type index struct{ table, name, columns string }
	indexes, err := db.All(t.Context(), d, func(s db.Scanner) (x index, err error) {
		return x, s.Scan(&x.table, &x.name, &x.columns)
	}, `SELECT m.name, i.name, (SELECT group_concat(COALESCE(c.name, '?'), '_') FROM pragma_index_info(i.name) c)
		FROM sqlite_master m JOIN pragma_index_list(m.name) i
		WHERE m.type = 'table' AND m.name NOT LIKE 'river%' AND m.name NOT LIKE 'goose%' AND i."unique" AND i.origin = 'c'`)
	if err != nil || len(indexes) < 5 {
		t.Fatal(len(indexes), err)
	}
	for _, x := range indexes {
		if !strings.Contains(x.columns, "?") && x.name != x.table+"_"+x.columns {
			t.Errorf("index %s should be %s_%s", x.name, x.table, x.columns)
		}
	}
}

// TestForeignKeysHaveIndexes checks that deleting a row does not read all rows of the tables
// that refer to it: an index begins with the column and has all rows that are not NULL.
func TestForeignKeysHaveIndexes(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t).Open(t)
	type key struct {
		table, column string
		indexed       bool
	}
	keys, err := db.All(t.Context(), d, func(s db.Scanner) (k key, err error) {
		return k, s.Scan(&k.table, &k.column, &k.indexed)
	}, `SELECT m.name, f."from", EXISTS (
			SELECT 1 FROM pragma_index_list(m.name) i JOIN pragma_index_info(i.name) c LEFT JOIN sqlite_master x ON x.name = i.name
			WHERE c.seqno = 0 AND c.name = f."from" AND (NOT i.partial OR x.sql LIKE '% WHERE ' || f."from" || ' IS NOT NULL')
		) OR EXISTS (SELECT 1 FROM pragma_table_info(m.name) p WHERE p.name = f."from" AND p.pk = 1)
		FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f WHERE m.type = 'table' AND f.seq = 0`)
	if err != nil || len(keys) < 50 {
		t.Fatal(len(keys), err)
	}
	for _, k := range keys {
		if !k.indexed {
			t.Errorf("the foreign key %s.%s has no index", k.table, k.column)
		}
	}
}

func TestExecOne(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		must(t, d, "INSERT INTO settings VALUES ('a', 'old'), ('b', 'old')")
		const set = "UPDATE settings SET value = 'new' WHERE key = ? AND value = 'old'"
		if err := db.ExecOne(t.Context(), d, set, "a"); err != nil {
			t.Error(err)
		}
		if err := db.ExecOne(t.Context(), d, set, "a"); !errors.Is(err, db.ErrNoRows) {
			t.Error(err)
		}
		err := d.Tx(t.Context(), func(tx *db.Tx) error { return db.ExecOne(t.Context(), tx, "UPDATE settings SET value = 'x'") })
		if err == nil || errors.Is(err, db.ErrNoRows) {
			t.Error(err)
		}
		if n := count(t, d, "settings WHERE value = 'x'"); n != 0 {
			t.Error("two rows were changed")
		}
		if err := db.ExecOne(t.Context(), d, "INSERT INTO settings VALUES ('a', '')"); !db.IsUnique(err, "settings_key") {
			t.Error(err)
		}
	})
}

func TestTotal(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		must(t, d, "CREATE TABLE many (n BIGINT PRIMARY KEY, part BIGINT NOT NULL)")
		const digits = "(SELECT 0 AS n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)"
		must(t, d, "INSERT INTO many SELECT a.n + 10*b.n + 100*c.n + 1000*d.n, 1 FROM "+digits+" a, "+digits+" b, "+digits+" c, "+digits+" d")
		check := func(want int, wantOver bool, from string, args ...any) {
			t.Helper()
			n, over, err := d.Total(t.Context(), from, args...)
			if n != want || over != wantOver || err != nil {
				t.Errorf("%s %v: %d, %v, %v", from, args, n, over, err)
			}
		}
		check(0, false, "many WHERE part = ?", 2)
		check(db.CountLimit, false, "many WHERE part = ?", 1)
		must(t, d, "INSERT INTO many VALUES (10000, 1), (10001, 2)")
		check(1, false, "many WHERE part = ?", 2)
		check(0, true, "many WHERE part = ?", 1)
		// That the list is over the limit is cached, for these arguments only.
		must(t, d, "DELETE FROM many WHERE n < 9000")
		check(0, true, "many WHERE part = ?", 1)
		check(1, false, "many WHERE part = ?", 2)
		check(1001, false, "many WHERE part < ?", 2)
		if _, _, err := d.Total(t.Context(), "nowhere"); err == nil {
			t.Error("no error")
		}
	})
}

func TestLike(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for i, name := range []string{"Ärger", "ärmel", "100%", "1000", `a\b`, "a_b", "axb", "it's", ""} {
			if _, err := d.ExecContext(t.Context(), "INSERT INTO settings VALUES (?, ?)", string(rune('a'+i)), name); err != nil {
				t.Fatal(err)
			}
		}
		for text, want := range map[string]string{
			"äR":  "Ärger ärmel",
			"ÄRG": "Ärger",
			"%":   "100%",
			"0%":  "100%",
			"_":   "a_b",
			`\`:   `a\b`,
			"A_B": "a_b",
			"'":   "it's",
			"zz":  "",
		} {
			found, err := db.All(t.Context(), d, db.Value[string], `SELECT value FROM settings WHERE fold(value) LIKE ? ESCAPE '\' ORDER BY key`, db.Like(text))
			if got := strings.Join(found, " "); err != nil || got != want {
				t.Errorf("Like(%q) finds %q, want %q, %v", text, got, want, err)
			}
		}
	})
}

func TestContextOfOneStatement(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := d.ExecContext(ctx, "INSERT INTO settings VALUES ('a', 'b')"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := d.QueryRowContext(ctx, "SELECT 1").Scan(new(int)); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := d.Tx(ctx, func(*db.Tx) error { t.Error("f runs"); return nil }); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if n := count(t, d, "settings"); n != 0 {
			t.Errorf("%d rows", n)
		}
	})
}

func TestExistsAndCounts(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		n, err := db.ExecCount(ctx, d, `INSERT INTO settings VALUES ('a', ''), ('b', '')`)
		if n != 2 || err != nil {
			t.Errorf("inserted %d rows: %v", n, err)
		}
		for key, want := range map[string]bool{"a": true, "c": false} {
			if found, err := db.Exists(ctx, d, `SELECT 1 FROM settings WHERE key = ?`, key); found != want || err != nil {
				t.Errorf("%s exists: %v, %v", key, found, err)
			}
			if changed, err := db.ExecAny(ctx, d, `UPDATE settings SET value = 'x' WHERE key = ?`, key); changed != want || err != nil {
				t.Errorf("%s changed: %v, %v", key, changed, err)
			}
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if found, err := db.Exists(ended, d, `SELECT 1 FROM settings`); found || !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v, %v", found, err)
		}
		if n, err := db.ExecCount(ended, d, `DELETE FROM settings`); n != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %d, %v", n, err)
		}
	})
}

func TestNotFound(t *testing.T) {
	t.Parallel()
	fault := errors.New("disk")
	if err := db.NotFound(fault, "User"); err != fault {
		t.Errorf("got %v for another error", err)
	}
	if err := db.NotFound(nil, "User"); err != nil {
		t.Errorf("got %v for no error", err)
	}
	err := db.NotFound(fmt.Errorf("find user: %w", db.ErrNoRows), "User")
	if e, ok := errs.As(err); !ok || e.Kind != errs.KindNotFound || e.Text != "User" {
		t.Errorf("got %v for no row", err)
	}
}
