package bench

import (
	"slices"
	"testing"

	"svc/internal/db"
)

// fillUsers adds users, each with its namespace and email address. Names and
// usernames are not in the order of IDs, so that a page sorted by name reads rows
// from the whole table.
func fillUsers(b testing.TB, d *db.DB, n int) {
	b.Helper()
	fill(b, d, []statement{
		// Multiplication by a number modulo a prime is a permutation.
		{series + `INSERT INTO users (username, name, email, confirmed_at, state, password_hash, bio, location, job_title, organization,
				timezone, sign_in_count, current_sign_in_at, current_sign_in_ip, last_sign_in_at, last_sign_in_ip, last_activity_on,
				namespace_id, created_by, created_at, updated_at)
			SELECT 'user-' || (n * 104729 % 1299709), 'Name ' || (n * 7919 % 1000003), 'user-' || n || '@example.org', 1700000000000000 + n,
				CASE WHEN n % 50 = 0 THEN 'blocked' ELSE 'active' END, '', 'Number ' || n, 'Somewhere', 'Tester', 'Example',
				CASE n % 4 WHEN 0 THEN 'UTC' WHEN 1 THEN 'Europe/Berlin' WHEN 2 THEN 'America/New_York' ELSE 'Asia/Tokyo' END,
				n % 100, 1700000000000000 + n, '192.0.2.1', 1700000000000000 + n, '192.0.2.2', '2024-01-01',
				10000000 + n, 1, 1700000000000000 + n, 1700000000000000 + n
			FROM series`, []any{n}},
		{`INSERT INTO namespaces (id, kind, user_id, path, name, full_path, full_name, created_at, updated_at)
			SELECT namespace_id, 'user', id, username, name, username, name, created_at, updated_at FROM users WHERE username LIKE 'user-%'`, nil},
		{`INSERT INTO emails (user_id, email, confirmed_at, created_at)
			SELECT id, email, confirmed_at, created_at FROM users WHERE username LIKE 'user-%'`, nil},
	})
}

// fillPeople adds an identity to each user of fillUsers, and a second one to every
// other user; each user follows three others.
func fillPeople(b testing.TB, d *db.DB) {
	b.Helper()
	fill(b, d, []statement{
		{`INSERT INTO identities (user_id, provider, extern_uid)
			SELECT id, 'ldapmain', 'uid=' || username FROM users WHERE username LIKE 'user-%'`, nil},
		{`INSERT INTO identities (user_id, provider, extern_uid)
			SELECT id, 'saml', email FROM users WHERE username LIKE 'user-%' AND id % 2 = 0`, nil},
		{`INSERT INTO follows (follower_id, followed_id, created_at)
			SELECT u.id, o.id, u.created_at FROM users u JOIN users o ON o.id IN (u.id + 1, u.id + 2, u.id + 3)
			WHERE u.username LIKE 'user-%' AND o.username LIKE 'user-%'`, nil},
		{`UPDATE users SET followers = (SELECT count(*) FROM follows f WHERE f.followed_id = users.id),
			following = (SELECT count(*) FROM follows f WHERE f.follower_id = users.id)`, nil},
	})
}

// fillEvents adds audit events.
func fillEvents(b testing.TB, d *db.DB, n int) {
	b.Helper()
	fill(b, d, []statement{
		{series + `INSERT INTO audit_events (event_type, author_id, author_name, author_email, author_class, entity_type, entity_id,
				entity_path, target_type, target_id, target_details, ip_address, details, created_at)
			SELECT 'user_created', 1, 'Administrator', 'root@localhost', 'User', 'User', n, 'user-' || n, 'User', n, 'user-' || n, '192.0.2.1',
				'{"add":"user","custom_message":"User user-' || n || ' created"}', 1700000000000000 + n
			FROM series`, []any{n}},
	})
}

// series returns the numbers from 1 to the argument.
const series = `WITH RECURSIVE series (n) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM series WHERE n < ?) `

type statement struct {
	text string
	args []any
}

// fill runs statements that add many rows, and updates the statistics of the
// planner.
func fill(b testing.TB, d *db.DB, statements []statement) {
	b.Helper()
	pragma(b, d, "PRAGMA synchronous = OFF")
	restore := dropIndexes(b, d, "users", "namespaces", "emails", "identities", "audit_events", "pipelines", "jobs", "job_queue", "activity_events", "todos",
		"issues", "merge_requests", "notes")
	err := d.Tx(b.Context(), func(tx *db.Tx) error {
		for _, s := range statements {
			if _, err := tx.ExecContext(b.Context(), s.text, s.args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	restore()
	if d.Postgres() { // autovacuum would run later
		if _, err := d.SQL().ExecContext(b.Context(), "VACUUM ANALYZE"); err != nil {
			b.Fatal(err)
		}
	}
	pragma(b, d, "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA synchronous = FULL")
}

// dropIndexes drops the indexes of the tables to be filled and returns a function
// that creates them again: sorting all entries at once is several times faster than
// inserting each.
func dropIndexes(b testing.TB, d *db.DB, tables ...string) (restore func()) {
	b.Helper()
	list := `SELECT name, sql, tbl_name FROM sqlite_master WHERE type = 'index' AND sql <> ''`
	if d.Postgres() {
		list = `SELECT indexname, indexdef, tablename FROM pg_indexes WHERE schemaname = 'public' AND indexname NOT LIKE '%\_pkey' AND indexname NOT LIKE '%\_key'`
	}
	type index struct{ name, text, table string }
	indexes, err := db.All(b.Context(), d, func(s db.Scanner) (x index, err error) {
		err = s.Scan(&x.name, &x.text, &x.table)
		return x, err
	}, list)
	if err != nil {
		b.Fatal(err)
	}
	indexes = slices.DeleteFunc(indexes, func(x index) bool { return !slices.Contains(tables, x.table) })
	run := func(text string) {
		b.Helper()
		if _, err := d.SQL().ExecContext(b.Context(), text); err != nil {
			b.Fatal(err)
		}
	}
	for _, x := range indexes {
		run("DROP INDEX " + x.name)
	}
	return func() {
		for _, x := range indexes {
			run(x.text)
		}
	}
}

// pragma sets a pragma on the only writing connection of SQLite.
func pragma(b testing.TB, d *db.DB, statements ...string) {
	b.Helper()
	if d.Postgres() {
		return
	}
	for _, s := range statements {
		if _, err := d.SQL().ExecContext(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
}
