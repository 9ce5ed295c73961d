package servertest

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

// TestPushOwned pushes files with code owners to a branch that requires their approval: as an
// owner, as others, and as a user who is allowed to push to the branch.
func TestPushOwned(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		p := newPlace(t, s, "")
		at := fmt.Sprintf("/projects/%d", p.id)
		danID, danToken := s.User(t, "dan")
		s.Check(t, apptest.Call{Do: "POST " + at + "/members", As: p.alice, Status: 201, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, danID)})
		alice := newClone(t, s, p.alice, p.path)
		alice.commit("docs/CODEOWNERS", "*.rb @bob\n/lib/ @bob\n^[Texts]\n*.txt @bob\n", "Owners")
		alice.commit("a.rb", "a", "Code")
		alice.push("", "HEAD:main")
		alice.push("", "HEAD:topic")
		s.Table(t, []apptest.Call{
			{Do: "DELETE " + at + "/protected_branches/main", As: p.alice, Status: 204},
			{Do: "POST " + at + "/protected_branches", As: p.alice, JSON: `{"name":"main","push_access_level":30,"merge_access_level":30,"code_owner_approval_required":true}`, Status: 201},
		})
		dan := newClone(t, s, danToken, p.path)
		dan.commit("other.md", "1", "Not owned")
		dan.commit("notes.txt", "1", "Optional")
		dan.push("", "HEAD:main")
		dan.commit("x/b.rb", "1", "Owned")
		dan.git("mv", "a.rb", "a.c")
		dan.git("commit", "-q", "-m", "Move")
		dan.push("You cannot push changes to files that have code owners to main. Create a merge request, so that the owners can approve them. "+
			"Files that match docs/CODEOWNERS: a.rb, x/b.rb", "HEAD:main")
		dan.push("", "HEAD:topic2")
		dan.commit("docs/CODEOWNERS", "*.rb @dan\n", "The owners of the branch count, not the pushed ones")
		dan.push("Files that match docs/CODEOWNERS: a.rb, x/b.rb", "HEAD:main")

		bob := newClone(t, s, p.bob, p.path)
		bob.commit("lib/c.rb", "1", "Own")
		bob.push("", "HEAD:main")

		put := apptest.Call{Do: "PUT " + at + "/repository/files/a.rb", As: danToken, JSON: `{"branch":"main","commit_message":"m","content":"z"}`, Status: 403,
			Want: `{"message":"403 Forbidden - You cannot push changes to files that have code owners to main. Create a merge request, so that the owners can approve them. Files that match docs/CODEOWNERS: a.rb"}`}
		many := `{"branch":"main","commit_message":"m","actions":[`
		for i := range 8 {
			many += fmt.Sprintf(`{"action":"create","file_path":"%d.rb","content":"x"},`, i)
		}
		many = many[:len(many)-1] + `]}`
		s.Table(t, []apptest.Call{
			put,
			{Name: "the first files are named", Do: "POST " + at + "/repository/commits", As: danToken, JSON: many, Status: 403,
				Want: `{"message":"403 Forbidden - You cannot push changes to files that have code owners to main. Create a merge request, so that the owners can approve them. Files that match docs/CODEOWNERS: 0.rb, 1.rb, 2.rb, 3.rb, 4.rb and 3 more"}`},
			{Name: "an administrator", Do: put.Do, As: apptest.RootToken, JSON: put.JSON, Status: 403},
			{Name: "named", Do: "PATCH " + at + "/protected_branches/main", As: p.alice, JSON: fmt.Sprintf(`{"allowed_to_push":[{"user_id":%d}]}`, danID), Status: 200},
			{Do: put.Do, As: danToken, JSON: put.JSON, Status: 200},
			{Name: "not named", Do: put.Do, As: p.alice, JSON: `{"branch":"main","commit_message":"m","content":"alice"}`, Status: 403},
			{Name: "off", Do: "PATCH " + at + "/protected_branches/main", As: p.alice, JSON: `{"code_owner_approval_required":false}`, Status: 200},
			{Do: put.Do, As: p.alice, JSON: `{"branch":"main","commit_message":"m","content":"y"}`, Status: 200},
			{Do: "PATCH " + at + "/protected_branches/main", As: p.alice, JSON: `{"code_owner_approval_required":true}`, Status: 200},
			{Name: "a merge has its own check", Do: "POST " + at + "/merge_requests", As: danToken, JSON: `{"source_branch":"topic2","target_branch":"main","title":"t"}`, Status: 201},
		})
	})
}

// TestPushOwnedAmongMany changes a file with code owners together with more files
// than a comparison lists.
func TestPushOwnedAmongMany(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		p := newPlace(t, s, "")
		at := fmt.Sprintf("/projects/%d", p.id)
		alice := newClone(t, s, p.alice, p.path)
		alice.commit("CODEOWNERS", "*.rb @alice\n", "Owners")
		alice.push("", "HEAD:main")
		s.Table(t, []apptest.Call{
			{Do: "DELETE " + at + "/protected_branches/main", As: p.alice, Status: 204},
			{Do: "POST " + at + "/protected_branches", As: p.alice, JSON: `{"name":"main","push_access_level":30,"merge_access_level":30,"code_owner_approval_required":true}`, Status: 201},
		})

		// A few objects are 317 × 317 files, which sort before the owned file.
		bob := newClone(t, s, p.bob, p.path)
		tree := func(entries string) string {
			return gittest.RunInput(t, bob.dir, strings.NewReader(entries), "mktree")
		}
		repeat := func(entry string) string {
			var b strings.Builder
			for i := range 317 {
				fmt.Fprintf(&b, "%s\t%03d\n", entry, i)
			}
			return b.String()
		}
		blob := gittest.RunInput(t, bob.dir, strings.NewReader("x"), "hash-object", "-w", "--stdin")
		many := tree(repeat("040000 tree " + tree(repeat("100644 blob "+blob))))
		owners := gittest.Run(t, bob.dir, "rev-parse", "HEAD:CODEOWNERS")
		root := tree("100644 blob " + owners + "\tCODEOWNERS\n040000 tree " + many + "\tmany\n100644 blob " + blob + "\tz.rb\n")
		bob.git("reset", "-q", "--soft", gittest.Run(t, bob.dir, "commit-tree", "-p", "HEAD", "-m", "Many files", root))
		bob.push("You cannot push so many changes to main, because it requires the approval of code owners.", "HEAD:main")
		bob.push("", "HEAD:topic")
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/merge_requests", As: p.bob, JSON: `{"source_branch":"topic","target_branch":"main","title":"t"}`, Status: 201},
			{Do: "GET " + at + "/merge_requests/1/approval_state", As: p.bob, Status: 200, Want: `{"rules":[{"name":"*.rb","rule_type":"code_owner","approvals_required":1,"approved":false}]}`},
		})
	})
}
