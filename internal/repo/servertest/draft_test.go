package servertest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"svc/internal/app/apptest"
)

// TestSweepDrafts creates two drafts of repositories, as left behind by a crash.
func TestSweepDrafts(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"name":"p","initialize_with_readme":true}`, Status: 201})
		root := s.Config.Storages["default"]
		now := s.Clock.Now()
		for name, age := range map[string]time.Duration{"00/.init-old": 25 * time.Hour, "00/.init-new": time.Hour, "00/7.git": 99 * time.Hour} {
			dir := filepath.Join(root, "projects", name)
			if err := os.MkdirAll(filepath.Join(dir, "objects"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(dir, now.Add(-age), now.Add(-age)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Repos.SweepDrafts(t.Context()); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]bool{"00/.init-old": false, "00/.init-new": true, "00/7.git": true} {
			if _, err := os.Stat(filepath.Join(root, "projects", name)); (err == nil) != want {
				t.Errorf("%s: %v", name, err)
			}
		}
		s.Check(t, apptest.Call{Do: "GET /projects/alice%2Fp/repository/tree", As: alice, Status: 200, Want: `[{"name":"README.md"}]`})
	})
}
