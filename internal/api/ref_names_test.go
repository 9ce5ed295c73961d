package api_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

// TestAmbiguousRefNames: no branch or tag gets a name that git reads as another
// ref, whichever way it is created.
func TestAmbiguousRefNames(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}")
		dev, token := s.User(t, "dev")
		member(t, s, b.owner, b.project, dev, 30)
		remote := strings.Replace(s.URL, "://", "://dev:"+token+"@", 1) + "/alice/code.git"
		clone := t.TempDir()
		if out, err := gittest.Command(clone, "clone", "-q", "--bare", remote, ".").CombinedOutput(); err != nil {
			t.Fatalf("clone: %v %s", err, out)
		}
		for _, name := range []string{"HEAD", "@", "refs/heads/main", "refs/tags/main", "refs/x", strings.Repeat("a1", 20)} {
			for _, c := range []apptest.Call{
				{Do: "POST " + b.at("/repository/branches"), JSON: fmt.Sprintf(`{"branch":%q,"ref":"main"}`, name)},
				{Do: "POST " + b.at("/repository/tags"), JSON: fmt.Sprintf(`{"tag_name":%q,"ref":"main"}`, name)},
				{Do: "POST " + b.at("/repository/commits"), JSON: fmt.Sprintf(`{"branch":%q,"start_branch":"main","commit_message":"m","actions":[{"action":"create","file_path":"z","content":"z"}]}`, name)},
			} {
				c.Name, c.As = c.Do+" "+name, token
				if got := s.Send(t, c); got.Status != 400 && got.Status != 403 {
					t.Errorf("%s: %d %s", c.Name, got.Status, got.Body)
				}
			}
			for _, place := range []string{"refs/heads/", "refs/tags/"} {
				if out, err := gittest.Command(clone, "push", remote, "main:"+place+name).CombinedOutput(); err == nil {
					t.Errorf("push %s%s: %s", place, name, out)
				}
			}
		}
		for _, name := range []string{"head", "x/HEAD", "refs", "references/x", "a@b"} {
			s.Check(t, apptest.Call{Name: name, Do: "POST " + b.at("/repository/branches"), As: token, JSON: fmt.Sprintf(`{"branch":%q,"ref":"main"}`, name), Status: 201})
		}
	})
}
