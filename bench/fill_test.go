package bench

import (
	"testing"

	"svc/internal/db"
)

// fill adds accounts, each with its namespace, its address and an identity or
// two, and audit events. Names and usernames are scattered, so that a page by
// name reads rows from all over the table.
func fill(b testing.TB, d *db.DB, users, events int) {
	b.Helper()
	pragma(b, d, "PRAGMA synchronous = OFF", "PRAGMA cache_size = -262144")
	var first int64 // the accounts that are there already
	if err := d.QueryRowContext(b.Context(), `SELECT COALESCE(max(id), 0) FROM users`).Scan(&first); err != nil {
		b.Fatal(err)
	}
	err := d.Tx(b.Context(), func(tx *db.Tx) error {
		for _, s := range []struct {
			text string
			args []any
		}{
			// To multiply by a number below a prime visits all others once.
			{series + `INSERT INTO users (username, name, email, confirmed_at, state, password_hash, bio, location, job_title, organization,
					sign_in_count, current_sign_in_at, current_sign_in_ip, last_sign_in_at, last_sign_in_ip, last_activity_on,
					created_by, created_at, updated_at)
				SELECT 'user-' || (n * 104729 % 1299709), 'Name ' || (n * 7919 % 1000003), 'user-' || n || '@example.org', 1700000000000000 + n,
					CASE WHEN n % 50 = 0 THEN 'blocked' ELSE 'active' END, '', 'Number ' || n, 'Somewhere', 'Tester', 'Example',
					n % 100, 1700000000000000 + n, '192.0.2.1', 1700000000000000 + n, '192.0.2.2', '2024-01-01',
					1, 1700000000000000 + n, 1700000000000000 + n
				FROM series`, []any{users}},
			{`INSERT INTO namespaces (kind, user_id, path, name, created_at, updated_at)
				SELECT 'user', id, username, name, created_at, updated_at FROM users WHERE id > ?`, []any{first}},
			{`INSERT INTO emails (user_id, email, confirmed_at, created_at)
				SELECT id, email, confirmed_at, created_at FROM users WHERE id > ?`, []any{first}},
			{`INSERT INTO identities (user_id, provider, extern_uid)
				SELECT id, 'ldapmain', 'uid=' || username FROM users WHERE id > ?`, []any{first}},
			{`INSERT INTO identities (user_id, provider, extern_uid)
				SELECT id, 'saml', email FROM users WHERE id > ? AND id % 2 = 0`, []any{first}},
			{series + `INSERT INTO audit_events (event_type, author_id, author_name, author_email, author_class, entity_type, entity_id,
					entity_path, target_type, target_id, target_details, ip_address, details, created_at)
				SELECT 'user_created', 1, 'Administrator', 'root@localhost', 'User', 'User', n, 'user-' || n, 'User', n, 'user-' || n, '192.0.2.1',
					'{"add":"user","custom_message":"User user-' || n || ' created"}', 1700000000000000 + n
				FROM series`, []any{events}},
		} {
			if _, err := tx.ExecContext(b.Context(), s.text, s.args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	if d.Postgres() { // does it by itself, but some time later; nobody does it on SQLite
		if _, err := d.SQL().ExecContext(b.Context(), "ANALYZE"); err != nil {
			b.Fatal(err)
		}
	}
	pragma(b, d, "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA cache_size = -2000", "PRAGMA synchronous = FULL")
}

// series is the numbers from 1 to the argument, none below 1.
const series = `WITH RECURSIVE series (n) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM series WHERE n < ?) `

// pragma tunes SQLite's only writer.
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
