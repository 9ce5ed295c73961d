package api_test

import (
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

// TestUpdateSubmodule sets submodules to other commits, and refuses other paths.
func TestUpdateSubmodule(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		one, two := strings.Repeat("1", 40), strings.Repeat("2", 40)
		first := writeFiles("a.txt", "a", "dir/b.txt", "b")
		first.Changes = append(first.Changes, gittest.Change{Path: "lib/module", Mode: "160000", Content: one})
		at, r := newCode(t, s, alice, "code", first)
		start := r.Tip("refs/heads/main")
		do := "PUT " + at + "/repository/submodules/"
		to := func(commit string) string { return `{"branch":"main","commit_sha":"` + commit + `"}` }
		s.Table(t, []apptest.Call{
			{Name: "no commit", Do: do + "lib%2Fmodule", As: alice, JSON: `{"branch":"main"}`, Status: 400, Want: `{"error":"commit_sha is missing"}`},
			{Name: "no branch", Do: do + "lib%2Fmodule", As: alice, JSON: `{"commit_sha":"` + two + `"}`, Status: 400, Want: `{"error":"branch is missing"}`},
			{Name: "a short ID", Do: do + "lib%2Fmodule", As: alice, JSON: to("2222222"), Status: 400, Want: `{"error":"commit_sha is invalid"}`},
			{Name: "a name", Do: do + "lib%2Fmodule", As: alice, JSON: to("main"), Status: 400, Want: `{"error":"commit_sha is invalid"}`},
			{Name: "no object", Do: do + "lib%2Fmodule", As: alice, JSON: to(strings.Repeat("0", 40)), Status: 400, Want: `{"error":"commit_sha is invalid"}`},
			{Name: "an unknown branch", Do: do + "lib%2Fmodule", As: alice, JSON: `{"branch":"gone","commit_sha":"` + two + `"}`, Status: 404},
			{Name: "an option", Do: do + "lib%2Fmodule", As: alice, JSON: `{"branch":"--all","commit_sha":"` + two + `"}`, Status: 404},
			{Name: "an unknown path", Do: do + "lib%2Fnone", As: alice, JSON: to(two), Status: 400, Want: `{"message":"Invalid submodule path"}`},
			{Name: "a file", Do: do + "a.txt", As: alice, JSON: to(two), Status: 400, Want: `{"message":"Invalid submodule path"}`},
			{Name: "a directory", Do: do + "lib", As: alice, JSON: to(two), Status: 400, Want: `{"message":"Invalid submodule path"}`},
			{Name: "a path upwards", Do: do + "lib%2F..%2Flib%2Fmodule", As: alice, JSON: to(two), Status: 400, Want: `{"message":"Invalid submodule path"}`},
			{Name: "the same commit", Do: do + "lib%2Fmodule", As: alice, JSON: to(one), Status: 400, Want: `{"message":"The submodule lib/module is already at ` + one + `"}`},
		})
		if got := r.Tip("refs/heads/main"); got != start {
			t.Fatalf("the branch moved to %s", got)
		}
		s.Table(t, []apptest.Call{
			{Name: "another commit", Do: do + "lib%2Fmodule", As: alice, JSON: to(strings.ToUpper(two)), Status: 200, Want: `{"title":"Update submodule module to ` + two + `",
				"author_name":"alice","parent_ids":["` + start + `"]}`},
			{Name: "with a message", Do: do + "lib%2Fmodule", As: alice, JSON: `{"branch":"main","commit_sha":"` + one + `","commit_message":"Go back"}`, Status: 200, Want: `{"message":"Go back"}`},
			{Name: "and back", Do: do + "lib%2Fmodule", As: alice, JSON: to(two), Status: 200, Want: `{}`},
		})
		if got, want := r.Git("ls-tree", "-r", "main"), r.Git("ls-tree", "-r", start); got != strings.Replace(want, one, two, 1) {
			t.Errorf("got\n%s\nfrom\n%s", got, want)
		}
		r.Git("fsck", "--strict")
	})
}
