package db

import (
	"path/filepath"
	"testing"
)

// TestMigrateKeepsTodos checks that existing to-do items keep their IDs, and that new items
// get higher IDs.
func TestMigrateKeepsTodos(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), "", filepath.Join(t.TempDir(), "svc.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	p, err := d.provider(d.writer.db)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), 31); err != nil {
		t.Fatal(err)
	}
	const item = `INSERT INTO todos (id, user_id, author_id, project_id, issue_id, merge_request_id, action, created_at, updated_at) VALUES `
	run := func(query string) {
		t.Helper()
		if _, err := d.ExecContext(t.Context(), query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	for _, query := range []string{
		`INSERT INTO users (id, username, name, email, created_at, updated_at) VALUES (7, 'alice', 'Alice', 'a@example.org', 1, 1)`,
		`INSERT INTO namespaces (id, kind, user_id, path, name, full_path, full_name, created_at, updated_at) VALUES (9, 'user', 7, 'alice', 'Alice', 'alice', 'Alice', 1, 1)`,
		`INSERT INTO projects (id, namespace_id, path, name, full_path, created_at, updated_at, last_activity_at) VALUES (3, 9, 'p', 'p', 'alice/p', 1, 1, 1)`,
		`INSERT INTO issues (id, project_id, iid, author_id, created_at, updated_at, title) VALUES (4, 3, 1, 7, 1, 1, 't')`,
		`INSERT INTO merge_requests (id, project_id, iid, author_id, created_at, updated_at, source_branch, target_branch, title, head_sha) VALUES (5, 3, 1, 7, 1, 1, 'a', 'b', 't', 'x')`,
		item + `(11, 7, 7, 3, 4, NULL, 'assigned', 1, 2)`,
		item + `(12, 7, 7, 3, NULL, 5, 'mentioned', 1, 2)`,
	} {
		run(query)
	}
	if err := d.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	var first, second, next string
	check := func(query string, into *string, want string) {
		t.Helper()
		if err := d.QueryRowContext(t.Context(), query).Scan(into); err != nil || *into != want {
			t.Errorf("%s: %q, %v, want %q", query, *into, err, want)
		}
	}
	check(`SELECT target_type || issue_id || action FROM todos WHERE id = 11`, &first, "Issue4assigned")
	check(`SELECT target_type || merge_request_id || state FROM todos WHERE id = 12`, &second, "MergeRequest5pending")
	check(`INSERT INTO todos (user_id, author_id, target_type, action, created_at, updated_at) VALUES (7, 7, 'Namespace', 'x', 1, 1) RETURNING CAST(id AS TEXT)`, &next, "13")
}
