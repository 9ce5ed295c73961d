package web_test

import (
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

// TestPatchPages reads commits and merge requests as patches and diffs.
func TestPatchPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		id := newProject(t, s, ada, "p", "public")
		r := s.Repository(t, id, gittest.Commit{Message: "Begin\n", Changes: change("a.txt", "one\n")})
		root := r.Tip("main")
		r.Commit(gittest.Commit{Branch: "work", Message: "Second\n", Parents: []string{root}, Changes: change("a.txt", "two\n")})
		second := r.Tip("work")
		r.Commit(gittest.Commit{Branch: "work", Message: "Third\n", Changes: change("b.txt", "<b>\n")})
		s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/merge_requests", As: ada, Status: 201, JSON: `{"source_branch":"work","target_branch":"main","title":"x"}`})
		text := map[string]string{"Content-Type": "text/plain; charset=utf-8", "Content-Security-Policy": "default-src 'none'; sandbox"}
		read := func(path string, want ...string) string {
			t.Helper()
			got := string(s.Check(t, apptest.Call{Do: "GET //ada/p/-/" + path, Status: 200, WantHeader: text}).Body)
			for _, part := range want {
				if !strings.Contains(got, part) {
					t.Errorf("%s lacks %q:\n%s", path, part, got)
				}
			}
			return got
		}
		if got := read("commit/"+second+".patch", "From "+second, "Subject: [PATCH] Second\n", "-one\n+two\n"); strings.Contains(got, "Third") {
			t.Errorf("the patch of a commit has others:\n%s", got)
		}
		read("commit/"+root+".patch", "Subject: [PATCH] Begin\n", "+one\n")
		read("commit/"+second+".diff", "diff --git a/a.txt b/a.txt\n", "--- a/a.txt\n+++ b/a.txt\n", "-one\n+two\n")
		read("commit/"+root+".diff", "new file mode 100644\n", "+one\n")
		series := read("merge_requests/1.patch", "Subject: [PATCH 1/2] Second\n", "Subject: [PATCH 2/2] Third\n", "+<b>\n")
		if strings.Index(series, "Second") > strings.Index(series, "Third") {
			t.Errorf("the newest commit is first:\n%s", series)
		}
		read("merge_requests/1.diff", "-one\n+two\n", "diff --git a/b.txt b/b.txt\n", "+<b>\n")
		for _, path := range []string{"commit/none.patch", "commit/--all.patch", "commit/none.diff", "merge_requests/2.patch", "merge_requests/x.diff"} {
			s.Check(t, apptest.Call{Do: "GET //ada/p/-/" + path, Status: 404})
		}
		s.Check(t, apptest.Call{Do: "PUT /projects/ada%2Fp", As: ada, JSON: `{"visibility":"private"}`, Status: 200})
		for _, path := range []string{"commit/" + second + ".patch", "commit/" + second + ".diff", "merge_requests/1.patch", "merge_requests/1.diff"} {
			s.Check(t, apptest.Call{Name: "private", Do: "GET //ada/p/-/" + path, Status: 404})
		}
	})
}
