package api_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/ci"
	"svc/internal/git/gittest"
	"svc/internal/project"
)

// TestTagShadowsBranch creates tags with the names of branches: such a name refers
// to the branch, and the name of a protected branch is refused.
func TestTagShadowsBranch(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, withArtifacts)
		devID, dev := s.User(t, "dev")
		enlist(t, s, b.project, devID, project.Developer)
		r := s.Repository(t, b.project)
		good := r.Tip("refs/heads/main")
		r.Git("branch", "stable", good)
		r.Git("branch", "release/1", good)
		evil := r.Commit(gittest.Commit{Branch: "evil", Parents: []string{good}, Changes: []gittest.Change{{Path: "go.sum", Content: "evil\n"}}})
		r.Git("update-ref", "refs/heads/work", good)
		r.Git("update-ref", "refs/tags/work", evil)
		for _, name := range []string{"stable", "release/*"} {
			s.Check(t, apptest.Call{Do: "POST " + b.at("/protected_branches"), As: b.owner, JSON: fmt.Sprintf(`{"name":%q}`, name), Status: 201})
		}
		// The artifacts of the tag are separate from those of the branch.
		for _, one := range []struct{ ref, text string }{{"refs/heads/work", "GOOD"}, {"refs/tags/work", "EVIL"}} {
			if _, _, err := s.CI.CreatePipeline(t.Context(), actorOf(t, s, b.owner), project.RefTo(b.project), ci.NewPipeline{Ref: one.ref}); err != nil {
				t.Fatal(err)
			}
			j := b.run()
			b.upload(j, "artifact_type=archive&artifact_format=zip", zipped(t, map[string]string{"a": one.text}), 201)
			b.update(j, 200, `{"state":"success"}`)
		}
		b.settled()
		raw := func(ref string) string { return b.at("/jobs/artifacts/%s/raw/a?job=build", url.PathEscape(ref)) }
		s.Table(t, []apptest.Call{
			{Do: "GET " + raw("work"), As: dev, Status: 200, Text: "GOOD"},
			{Do: "GET " + raw("refs/heads/work"), As: dev, Status: 200, Text: "GOOD"},
			{Do: "GET " + raw("refs/tags/work"), As: dev, Status: 200, Text: "EVIL"},
			{Do: "GET " + b.at("/pipelines/latest?ref=work"), As: dev, Status: 200, Want: fmt.Sprintf(`{"sha":%q,"tag":false}`, good)},
		})
		file := func(ref string) string { return b.at("/repository/files/go.sum/raw?ref=%s", url.QueryEscape(ref)) }
		s.Table(t, []apptest.Call{
			{Do: "GET " + file("work"), As: dev, Status: 200, Text: "x\n"},
			{Do: "GET " + file("refs/heads/work"), As: dev, Status: 200, Text: "x\n"},
			{Do: "GET " + file("refs/tags/work"), As: dev, Status: 200, Text: "evil\n"},
			{Do: "GET " + b.at("/repository/commits/work"), As: dev, Status: 200, Want: fmt.Sprintf(`{"id":%q}`, good)},
			{Name: "a protected branch", Do: "POST " + b.at("/repository/tags"), As: dev, JSON: `{"tag_name":"stable","ref":"evil"}`, Status: 403},
			{Name: "one by a pattern", Do: "POST " + b.at("/repository/tags"), As: dev, JSON: `{"tag_name":"release/1","ref":"evil"}`, Status: 403},
			{Name: "a name that no branch has", Do: "POST " + b.at("/repository/tags"), As: dev, JSON: `{"tag_name":"release/2","ref":"evil"}`, Status: 201},
			{Name: "by the owner", Do: "POST " + b.at("/repository/tags"), As: b.owner, JSON: `{"tag_name":"stable","ref":"evil"}`, Status: 403},
			{Name: "a tag before its branch is protected", Do: "POST " + b.at("/protected_branches"), As: b.owner, JSON: `{"name":"work"}`, Status: 201},
			{Name: "the branch is meant", Do: "GET " + file("work"), As: dev, Status: 200, Text: "x\n"},
		})
		// A push by git is refused too.
		dir := t.TempDir()
		c := exec.CommandContext(t.Context(), "git", "-c", "protocol.http.allow=always", "--git-dir="+r.Path, "push", strings.Replace(s.URL, "://", "://dev:"+dev+"@", 1)+"/alice/code.git", evil+":refs/tags/stable")
		c.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_GLOBAL=/dev/null", "HOME="+dir)
		if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), "protected branch") {
			t.Errorf("push of a tag: %v %s", err, out)
		}
	})
}

// TestForkMoreVisible tries to make forks more visible than their source.
func TestForkMoreVisible(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		id := code(t, s, alice, "code", "")
		enlist(t, s, id, bobID, project.Developer)
		at := fmt.Sprintf("/projects/%d", id)
		s.Table(t, []apptest.Call{
			{Name: "public", Do: "POST " + at + "/fork", As: bob, JSON: `{"visibility":"public"}`, Status: 409},
			{Name: "internal", Do: "POST " + at + "/fork", As: bob, JSON: `{"visibility":"internal"}`, Status: 409},
		})
		fork := made(t, s, bob, "POST "+at+"/fork", `{"path":"mine"}`)
		forkAt := fmt.Sprintf("/projects/%d", fork)
		s.Settled(t)
		s.Table(t, []apptest.Call{
			{Name: "as its source", Do: "GET " + forkAt, As: bob, Status: 200, Want: `{"visibility":"private"}`},
			{Name: "made public", Do: "PUT " + forkAt, As: bob, JSON: `{"visibility":"public"}`, Status: 400},
			{Name: "the source goes first", Do: "PUT " + at, As: alice, JSON: `{"visibility":"public"}`, Status: 200},
			{Name: "then it may", Do: "PUT " + forkAt, As: bob, JSON: `{"visibility":"public"}`, Status: 200},
		})
		below := made(t, s, bob, "POST "+forkAt+"/fork", `{"path":"below","name":"below"}`)
		s.Settled(t)
		s.Table(t, []apptest.Call{
			{Name: "the fork of the fork", Do: fmt.Sprintf("GET /projects/%d", below), Status: 200},
			{Name: "the source goes back", Do: "PUT " + at, As: alice, JSON: `{"visibility":"internal"}`, Status: 200},
			{Name: "with its fork", Do: "GET " + forkAt, As: bob, Status: 200, Want: `{"visibility":"internal"}`},
			{Name: "and the fork of that", Do: fmt.Sprintf("GET /projects/%d", below), Status: 404},
			{Name: "the code becomes the members'", Do: "PUT " + at, As: alice, JSON: `{"repository_access_level":"private","merge_requests_access_level":"private","builds_access_level":"private"}`, Status: 200},
			{Name: "the code of the fork too", Do: "GET " + forkAt, As: bob, Status: 200, Want: `{"visibility":"private"}`},
			{Name: "not again", Do: "PUT " + forkAt, As: bob, JSON: `{"visibility":"internal"}`, Status: 400},
		})
		open := code(t, s, root, "open", `,"visibility":"public"`)
		s.Check(t, apptest.Call{Name: "made a fork of one that is less visible", Do: fmt.Sprintf("POST /projects/%d/fork/%d", open, id), As: root, Status: 400})
	})
}

// TestCommitSkipsFsck checks that commits by the API are refused if a push of them
// would be.
func TestCommitSkipsFsck(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id := code(t, s, alice, "code", "")
		commit := func(path, content string, status int) {
			t.Helper()
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/repository/commits", id), As: alice, Status: status,
				JSON: fmt.Sprintf(`{"branch":"main","commit_message":"x","actions":[{"action":"create","file_path":%q,"content":%q}]}`, path, content)})
		}
		commit(".gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = --upload-pack=touch\n", 400)
		commit(".gitmodules", "[submodule \"../x\"]\n\tpath = x\n\turl = https://a.example/x\n", 400)
		commit(".gitmodules", "[submodule \"x\"]\n\tpath = -x\n\turl = https://a.example/x\n", 400)
		commit(".GITMODULES", "[submodule \"x\"]\n\tpath = x\n\turl = -x\n", 400)
		commit("gitmod~1", "[submodule \"x\"]\n\tpath = x\n\turl = -x\n", 400)
		commit(".gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = https://a.example/x\n", 201)
		commit(".gitignore", "x\n", 201)
		commit("dir/\u00fc~.txt", "x\n", 201)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/wikis", id), As: alice, JSON: `{"title":"Home","content":"x"}`, Status: 201})
	})
}
