package db

import (
	"path/filepath"
	"testing"
)

// TestMigrateFillsNamespaces checks that the namespaces of users from before groups existed
// get their full paths and positions in the tree.
func TestMigrateFillsNamespaces(t *testing.T) {
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
	if _, err := p.UpTo(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{
		`INSERT INTO users (id, username, name, email, created_at, updated_at) VALUES (7, 'alice', 'Alice', 'a@example.org', 1, 1)`,
		`INSERT INTO namespaces (id, kind, user_id, path, name, created_at, updated_at) VALUES (9, 'user', 7, 'alice', 'Alice', 1, 1)`,
	} {
		if _, err := d.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	var path, name, visibility string
	var ancestor, depth int64
	err = d.QueryRowContext(t.Context(), `
		SELECT n.full_path, n.full_name, n.visibility, t.ancestor_id, t.depth FROM namespaces n JOIN namespace_tree t ON t.descendant_id = n.id`).
		Scan(&path, &name, &visibility, &ancestor, &depth)
	if err != nil || path != "alice" || name != "Alice" || visibility != "public" || ancestor != 9 || depth != 0 {
		t.Errorf("namespace %q %q %q below %d at depth %d, %v", path, name, visibility, ancestor, depth, err)
	}
}
