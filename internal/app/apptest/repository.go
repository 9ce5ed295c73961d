package apptest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/git"
	"svc/internal/git/gittest"
	"svc/internal/project"
)

// Repository returns the repository of a project, with the commits of history
// added. It sets the default branch, as a push does; nothing else is notified of
// the commits.
func (s *Server) Repository(t testing.TB, projectID int64, history ...gittest.Commit) *gittest.Repo {
	t.Helper()
	// Fetch creates the repository if it does not exist yet.
	if _, err := s.Repos.Fetch(t.Context(), actor.System(), project.RefTo(projectID)); err != nil {
		t.Fatal(err)
	}
	pattern := filepath.Join(s.Config.Storages["default"], "projects", "*", strconv.FormatInt(projectID, 10)+".git")
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("repository of project %d: %v %v", projectID, found, err)
	}
	r := gittest.At(t, found[0])
	if _, ok := s.Config.Buckets["default"]; ok {
		r.Around = func(run func()) { s.published(t, r.Path, run) }
	}
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

// published calls run, which may change the cache of a repository in an object
// store, and stores the changes.
func (s *Server) published(t testing.TB, dir string, run func()) {
	t.Helper()
	r, local := s.Git.Repo(dir), s.Git.Local(dir)
	if err := r.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	run()
	var refs [2]map[string]git.OID
	var heads [2]string
	for i, one := range []git.Repo{r, local} {
		list, err := one.Refs(t.Context(), git.RefOptions{})
		if err != nil {
			t.Fatal(err)
		}
		refs[i] = map[string]git.OID{}
		for _, ref := range list {
			refs[i][ref.Name] = ref.ID
		}
		if heads[i], err = one.DefaultBranch(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var updates []git.Update
	for name, id := range refs[1] {
		if refs[0][name] != id {
			updates = append(updates, git.Update{Ref: name, New: id})
		}
	}
	for name := range refs[0] {
		if refs[1][name] == "" {
			updates = append(updates, git.Update{Ref: name, New: git.ZeroOID})
		}
	}
	if err := r.UpdateRefs(t.Context(), updates); err != nil {
		t.Fatal(err)
	}
	if heads[0] != heads[1] {
		if err := r.SetDefaultBranch(t.Context(), heads[1]); err != nil {
			t.Fatal(err)
		}
	}
	for _, u := range updates { // git prefers loose refs to packed refs of later updates
		if err := os.Remove(filepath.Join(dir, u.Ref)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}

// branchOf returns the branch that HEAD names, or an empty string if the branch does
// not exist. Tests call it often, so it starts a process only if necessary.
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
