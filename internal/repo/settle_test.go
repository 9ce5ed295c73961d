package repo_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

// TestRecover leaves what a server leaves that is killed in the middle of
// pushes: rows of them, refs that have moved or have not, and locks.
func TestRecover(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"name":"p","initialize_with_readme":true}`, Status: 201})
		var project int64
		if err := s.DB.QueryRowContext(t.Context(), `SELECT id FROM projects WHERE full_path = 'alice/p'`).Scan(&project); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(s.Config.Storages["default"], "projects", fmt.Sprintf("%02x", project%256), fmt.Sprintf("%d.git", project))
		tip := gittest.Run(t, dir, "rev-parse", "refs/heads/main")
		gittest.Run(t, dir, "update-ref", "refs/heads/moved", tip)
		for _, branch := range []string{"moved", "not-moved"} {
			who, err := json.Marshal(map[string]any{"ID": id, "Username": "alice"})
			if err != nil {
				t.Fatal(err)
			}
			what := fmt.Sprintf(`{"Changes":[{"Ref":"refs/heads/%s","Old":"0000000000000000000000000000000000000000","New":%q}]}`, branch, tip)
			if _, err := s.DB.ExecContext(t.Context(), `INSERT INTO pushes (project_id, actor, push, created_at) VALUES (?, ?, ?, ?)`,
				project, string(who), what, s.Clock.Now()); err != nil {
				t.Fatal(err)
			}
		}
		locks := []string{"HEAD.lock", "refs/heads/not-moved.lock"}
		for _, lock := range locks {
			if err := os.WriteFile(filepath.Join(dir, lock), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the second time there is nothing to do
			if err := s.Repos.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, lock := range locks {
			if _, err := os.Stat(filepath.Join(dir, lock)); err == nil {
				t.Errorf("%s is still there", lock)
			}
		}
		for branch, want := range map[string]int{"moved": 1, "not-moved": 0} {
			var n int
			if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM activity_events WHERE push LIKE ?`, `%"`+branch+`"%`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			if n != want {
				t.Errorf("%s is recorded %d times, want %d", branch, n, want)
			}
		}
		var left int
		if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM pushes`).Scan(&left); err != nil || left != 0 {
			t.Errorf("%d pushes are left: %v", left, err)
		}
	})
}
