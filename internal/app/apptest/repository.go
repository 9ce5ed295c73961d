package apptest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/git/gittest"
	"svc/internal/project"
)

// Repository returns the repository of a project, with the commits of history
// added. It sets the default branch, as a push does; nothing else is notified of
// the commits.
func (s *Server) Repository(t testing.TB, projectID int64, history ...gittest.Commit) *gittest.Repo {
	t.Helper()
	// Anyone who opens it for a fetch finds a repository, from the first day on.
	if _, err := s.Repos.Fetch(t.Context(), actor.System(), project.RefTo(projectID)); err != nil {
		t.Fatal(err)
	}
	pattern := filepath.Join(s.Config.Storages["default"], "projects", "*", strconv.FormatInt(projectID, 10)+".git")
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("repository of project %d: %v %v", projectID, found, err)
	}
	r := gittest.At(t, found[0])
	for _, c := range history {
		r.Commit(c)
	}
	head := branchOf(t, r)
	if head == "" {
		return r
	}
	err = s.DB.Tx(t.Context(), func(tx *db.Tx) error {
		return s.Projects.Pushed(t.Context(), tx, projectID, head, nil, s.Clock.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// branchOf is the branch that HEAD names; empty when it does not exist. Tests
// ask for it often, so no process is started unless it must.
func branchOf(t testing.TB, r *gittest.Repo) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.Path, "HEAD"))
	if err != nil {
		t.Fatal(err)
	}
	ref := strings.TrimSpace(strings.TrimPrefix(string(text), "ref: "))
	if _, err := os.Stat(filepath.Join(r.Path, ref)); err != nil && r.Tip(ref) == "" {
		return ""
	}
	return strings.TrimPrefix(ref, "refs/heads/")
}
