package db

import (
	"path/filepath"
	"testing"
)

// TestMigrateKeepsProtectedRefs checks that existing protected refs are migrated, with their
// access lists and approval rules.
func TestMigrateKeepsProtectedRefs(t *testing.T) {
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
	if _, err := p.UpTo(t.Context(), 44); err != nil {
		t.Fatal(err)
	}
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
		`INSERT INTO protected_refs (id, project_id, kind, name, allow_force_push, created_at) VALUES (21, 3, 'branch', 'main', TRUE, 1)`,
		`INSERT INTO protected_ref_access (id, protected_ref_id, action, access_level, user_id) VALUES (31, 21, 'push', 40, 7)`,
		`INSERT INTO approval_rules (id, project_id, type, name, approvals_required, created_at) VALUES (41, 3, 'regular', 'r', 1, 1)`,
		`INSERT INTO approval_rule_branches (approval_rule_id, protected_ref_id) VALUES (41, 21)`,
	} {
		run(query)
	}
	if err := d.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	check := func(query, want string) {
		t.Helper()
		var got string
		if err := d.QueryRowContext(t.Context(), query).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", query, got, err, want)
		}
	}
	check(`SELECT r.name || a.action || a.access_level || a.user_id FROM protected_refs r JOIN protected_ref_access a ON a.protected_ref_id = r.id WHERE r.id = 21`, "mainpush407")
	check(`SELECT CAST(protected_ref_id AS TEXT) FROM approval_rule_branches WHERE approval_rule_id = 41`, "21")
	check(`INSERT INTO protected_refs (namespace_id, kind, name, created_at) VALUES (9, 'branch', 'main', 1) RETURNING CAST(id AS TEXT)`, "22")
	// The foreign keys refer to the renamed table.
	run(`DELETE FROM protected_refs WHERE id = 21`)
	check(`SELECT CAST((SELECT count(*) FROM protected_ref_access) + (SELECT count(*) FROM approval_rule_branches) AS TEXT)`, "0")
}
