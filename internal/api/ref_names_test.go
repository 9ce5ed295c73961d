package api_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

// TestAmbiguousRefNames checks that no branch or tag can be created with a name that
// git resolves to another ref.
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

// TestGroupDefaultBranchNames checks that a group cannot have a default branch name
// that is invalid in its projects.
func TestGroupDefaultBranchNames(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, token := s.User(t, "olga")
		var group struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /groups", As: token, JSON: `{"name":"g","path":"g"}`, Status: 201}).JSON(t, &group)
		at := fmt.Sprintf("PUT /groups/%d", group.ID)
		for _, name := range []string{"HEAD", "@", "refs/heads/x", "refs/x", "a b", "a..b", "-x", "x.lock", "a~1", "/x", strings.Repeat("a1", 20)} {
			want := `{"message":{"default_branch":["is not a valid name of a branch"]}}`
			s.Check(t, apptest.Call{Name: name, Do: at, As: token, JSON: fmt.Sprintf(`{"default_branch":%q}`, name), Status: 400, Want: want})
			s.Check(t, apptest.Call{Name: name, Do: "POST /groups", As: token, JSON: fmt.Sprintf(`{"name":"h","path":"h","default_branch":%q}`, name), Status: 400, Want: want})
			s.Check(t, apptest.Call{Name: name, Do: "POST /projects", As: token, JSON: fmt.Sprintf(`{"name":"p","default_branch":%q}`, name), Status: 400, Want: want})
		}
		s.Check(t, apptest.Call{Do: at, As: token, JSON: `{"default_branch":"trunk"}`, Status: 200, Want: `{"default_branch":"trunk"}`})
		// An invalid name from before the rule does not prevent other changes.
		if _, err := s.DB.ExecContext(t.Context(), `UPDATE namespaces SET settings = REPLACE(settings, 'trunk', 'refs/heads/x') WHERE id = ?`, group.ID); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: at, As: token, JSON: `{"description":"new"}`, Status: 200})
	})
}
