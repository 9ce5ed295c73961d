package api_test

import (
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

// TestCachedResponses repeats requests so that responses are cached, and checks that
// changes invalidate them.
func TestCachedResponses(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		at, r := newCode(t, s, alice, "code", writeFiles("a", "a\n", "d/x", "x\n", "d/y", "y\n", "e/z", "z\n"))
		first := r.Tip("refs/heads/main")
		ask := func(when, path string, status int, want string) {
			t.Helper()
			for range 3 {
				s.Check(t, apptest.Call{Name: when, Do: "GET " + at + "/repository/" + path, Status: status, Want: want})
			}
		}
		ask("at first", "tree", 200, `[{"name":"d"},{"name":"e"},{"name":"a"}]`)
		ask("one", "tree?per_page=1", 200, `[{"name":"d"}]`)
		ask("the next one", "tree?per_page=1&page=2", 200, `[{"name":"e"}]`)
		ask("below", "tree?path=d", 200, `[{"path":"d/x"},{"path":"d/y"}]`)
		ask("beside it", "tree?path=e", 200, `[{"path":"e/z"}]`)
		ask("all", "tree?recursive=true", 200, `[{"path":"a"},{"path":"d"},{"path":"d/x"},{"path":"d/y"},{"path":"e"},{"path":"e/z"}]`)
		ask("after one", "tree?page_token="+r.Git("rev-parse", "main:d"), 200, `[{"name":"e"},{"name":"a"}]`)
		ask("a file", "files/a?ref=main", 200, `{"ref":"main","last_commit_id":"`+first+`"}`)
		ask("by another name", "files/a?ref=HEAD", 200, `{"ref":"HEAD","commit_id":"`+first+`"}`)

		second := r.Commit(writeFiles("a", "b\n", "b", "b\n"))
		ask("after a commit", "tree", 200, `[{"name":"d"},{"name":"e"},{"name":"a"},{"name":"b"}]`)
		ask("a file after it", "files/a?ref=main", 200, `{"ref":"main","last_commit_id":"`+second+`"}`)
		r.Commit(gittest.Commit{Branch: "topic", Parents: []string{first}, Changes: []gittest.Change{{Path: "t", Content: "t\n"}}})
		compare := "compare?from=" + first + "&to=main"
		url := `{"commits":[{"web_url":"` + s.URL + `/alice/code/-/commit/` + second + `"}],"web_url":"` + s.URL + `/alice/code/-/compare/` + first + `...` + second + `"}`
		ask("compared", compare, 200, url)
		ask("compared straight", compare+"&straight=true", 200, strings.ReplaceAll(url, "...", ".."))
		ask("with names", compare+"&unidiff=true", 200, `{"diffs":[{"diff":"--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n"},{}]}`)
		ask("from a side", "compare?from=topic&to=main", 200, `{"commits":[{"id":"`+second+`"}],"diffs":[{"diff":"@@ -1 +1 @@\n-a\n+b\n"},{}]}`)

		s.Check(t, apptest.Call{Do: "PUT " + at, As: alice, JSON: `{"path":"moved"}`, Status: 200})
		ask("under another path", compare, 200, strings.ReplaceAll(url, "/alice/code/", "/alice/moved/"))
		s.Check(t, apptest.Call{Do: "PUT " + at, As: alice, JSON: `{"visibility":"private"}`, Status: 200})
		for _, path := range []string{"tree", "files/a?ref=main", "files/a/raw?ref=main", compare} {
			ask("when it is nobody else's", path, 404, "")
		}
	})
}
