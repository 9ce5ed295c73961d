package servertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
	"svc/internal/project"
)

// clone is a work tree from which a user pushes.
type clone struct {
	t           *testing.T
	dir         string
	name, email string // of author and committer
}

// as returns a clone that commits as another author.
func (c clone) as(name, email string) clone {
	c.name, c.email = name, email
	return c
}

// newClone clones a project of the server over HTTP with a token.
func newClone(t *testing.T, s *apptest.Server, token, path string) clone {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "work")
	address := strings.Replace(s.URL, "http://", "http://git:"+token+"@", 1) + "/" + path + ".git"
	gittest.Run(t, t.TempDir(), "clone", "-q", address, dir)
	return clone{t, dir, "Ann Author", "ann@example.com"}
}

// commit writes a file and commits it.
func (c clone) commit(path, content, message string, more ...string) {
	c.t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(c.dir, path)), 0o750); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.dir, path), []byte(content), 0o600); err != nil {
		c.t.Fatal(err)
	}
	gittest.Run(c.t, c.dir, "add", "-A")
	cmd := gittest.Command(c.dir, append([]string{"commit", "-q", "-m", message}, more...)...)
	cmd.Env = append(cmd.Env, "GIT_AUTHOR_NAME="+c.name, "GIT_AUTHOR_EMAIL="+c.email, "GIT_COMMITTER_NAME="+c.name, "GIT_COMMITTER_EMAIL="+c.email)
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("%v: %s", err, out)
	}
}

// git runs git.
func (c clone) git(args ...string) { gittest.Run(c.t, c.dir, args...) }

// push pushes, and expects it to be refused with a text, or to be accepted if the text is
// empty.
func (c clone) push(refused string, args ...string) {
	c.t.Helper()
	out, err := gittest.Command(c.dir, append([]string{"push", "-q", "origin"}, args...)...).CombinedOutput()
	switch {
	case refused == "" && err != nil:
		c.t.Errorf("push %v: %v: %s", args, err, out)
	case refused != "" && (err == nil || !strings.Contains(string(out), refused)):
		c.t.Errorf("push %v: want %q, got %v: %s", args, refused, err, out)
	}
}

// place is a project of alice in which bob is a Developer.
type place struct {
	id         int64
	path       string
	alice, bob string
	bobID      int64
}

func newPlace(t *testing.T, s *apptest.Server, more string) place {
	t.Helper()
	p := place{path: "alice/code"}
	_, p.alice = s.User(t, "alice")
	p.bobID, p.bob = s.User(t, "bob")
	var made struct{ ID int64 }
	s.Check(t, apptest.Call{Do: "POST /projects", As: p.alice, JSON: `{"path":"code"` + more + `}`, Status: 201}).JSON(t, &made)
	p.id = made.ID
	s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/members", p.id), As: p.alice, Status: 201, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, p.bobID)})
	return p
}

// TestProtectedBranches pushes to protected branches with and without permission.
func TestProtectedBranches(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		p := newPlace(t, s, "")
		at := fmt.Sprintf("/projects/%d", p.id)
		alice := newClone(t, s, p.alice, p.path)
		alice.commit("a", "1", "One")
		alice.push("", "HEAD:main") // the first push protects its branch
		s.Check(t, apptest.Call{Do: "GET " + at + "/protected_branches", As: p.bob, Status: 200, Want: `[{"name":"main","allow_force_push":false,
			"push_access_levels":[{"access_level":40,"access_level_description":"Maintainers","user_id":null,"deploy_key_id":null}],
			"merge_access_levels":[{"access_level":40}],"unprotect_access_levels":[{"access_level":40}],"inherited":false}]`})

		bob := newClone(t, s, p.bob, p.path)
		bob.commit("b", "1", "Two")
		bob.push("You are not allowed to push code to protected branches on this project.", "HEAD:main")
		bob.push("", "HEAD:topic")
		bob.push("", "--delete", "topic")
		alice.commit("c", "1", "Three")
		alice.push("", "HEAD:main")
		alice.git("commit", "-q", "--amend", "-m", "Three anew")
		alice.push("You are not allowed to force push code to a protected branch on this project.", "--force", "HEAD:main")
		alice.push("The default branch of a project cannot be deleted.", "--delete", "main")

		// A pattern for Developers, with force push.
		s.Check(t, apptest.Call{Do: "POST " + at + "/protected_branches", As: p.alice, JSON: `{"name":"release/*","push_access_level":0,"merge_access_level":30}`, Status: 201,
			Want: `{"push_access_levels":[{"access_level":0,"access_level_description":"No one"}],"merge_access_levels":[{"access_level":30,"access_level_description":"Developers + Maintainers"}]}`})
		alice.push("You can only use an existing protected branch ref as the basis of a new protected branch.", "HEAD:release/1")
		bob.push("You can only create protected branches using the web interface and API.", "origin/main:refs/heads/release/1")
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/repository/branches", As: p.bob, JSON: `{"branch":"release/1","ref":"main"}`, Status: 201, Want: `{"protected":true,"can_push":false,"developers_can_merge":true,"developers_can_push":false}`},
			{Do: "POST " + at + "/repository/files/x", As: p.alice, JSON: `{"branch":"release/1","commit_message":"m","content":"x"}`, Status: 403,
				Want: `{"message":"403 Forbidden - You are not allowed to push code to protected branches on this project."}`},
			{Do: "PATCH " + at + "/protected_branches/release%2F*", As: p.alice, Status: 200, JSON: fmt.Sprintf(`{"allow_force_push":true,"allowed_to_push":[{"user_id":%d}]}`, p.bobID),
				Want: fmt.Sprintf(`{"allow_force_push":true,"push_access_levels":[{"access_level":0},{"access_level":40,"access_level_description":"bob","user_id":%d}]}`, p.bobID)},
			{Do: "GET " + at + "/repository/branches/release%2F1", As: p.bob, Status: 200, Want: `{"can_push":true}`},
			{Do: "GET " + at + "/repository/branches/release%2F1", As: p.alice, Status: 200, Want: `{"can_push":false}`},
		})
		bob.git("fetch", "-q")
		bob.git("reset", "-q", "--hard", "origin/release/1")
		bob.commit("e", "1", "Two")
		bob.push("", "HEAD:release/1")
		bob.git("commit", "-q", "--amend", "-m", "Two anew")
		bob.push("", "--force", "HEAD:release/1")
		alice.push("You can only delete protected branches using the web interface.", "--delete", "release/1")
		bob.push("You are not allowed to delete protected branches from this project.", "--delete", "release/1")
		s.Table(t, []apptest.Call{
			{Do: "DELETE " + at + "/repository/branches/release%2F1", As: p.bob, Status: 403},
			{Do: "DELETE " + at + "/repository/branches/release%2F1", As: p.alice, Status: 204},
			{Do: "DELETE " + at + "/protected_branches/main", As: p.alice, Status: 204},
		})
		bob.git("fetch", "-q")
		bob.git("reset", "-q", "--hard", "origin/main")
		bob.commit("d", "1", "Four")
		bob.push("", "HEAD:main")
		// An unprotected branch is not protected again.
		s.Check(t, apptest.Call{Do: "GET " + at + "/protected_branches?search=MAIN", As: p.alice, Status: 200, Want: `[]`})
	})
}

// TestProtectedTags creates, moves and deletes protected tags.
func TestProtectedTags(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		p := newPlace(t, s, `,"initialize_with_readme":true`)
		at := fmt.Sprintf("/projects/%d", p.id)
		alice, bob := newClone(t, s, p.alice, p.path), newClone(t, s, p.bob, p.path)
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/protected_tags", As: p.alice, JSON: `{"name":"v*"}`, Status: 201, Want: `{"name":"v*","create_access_levels":[{"access_level":40,"access_level_description":"Maintainers"}]}`},
			{Do: "POST " + at + "/protected_tags", As: p.alice, JSON: `{"name":"v*"}`, Status: 409, Want: `{"message":"Protected tag 'v*' already exists"}`},
			{Do: "POST " + at + "/protected_tags", As: p.alice, JSON: `{"name":"a..b"}`, Status: 422},
			{Do: "GET " + at + "/protected_tags", As: p.bob, Status: 200, Want: `[{"name":"v*"}]`},
			{Do: "GET " + at + "/protected_tags/v*", As: p.bob, Status: 200, Want: `{"name":"v*"}`},
			{Do: "POST " + at + "/repository/tags", As: p.bob, JSON: `{"tag_name":"v1","ref":"main"}`, Status: 403,
				Want: `{"message":"403 Forbidden - You are not allowed to create this tag as it is protected."}`},
			{Do: "POST " + at + "/repository/tags", As: p.bob, JSON: `{"tag_name":"w1","ref":"main"}`, Status: 201, Want: `{"protected":false}`},
			{Do: "POST " + at + "/repository/tags", As: p.alice, JSON: `{"tag_name":"v1","ref":"main"}`, Status: 201, Want: `{"protected":true}`},
		})
		bob.push("You are not allowed to create this tag as it is protected.", "HEAD:refs/tags/v2")
		alice.push("", "HEAD:refs/tags/v2")
		alice.commit("a", "1", "One")
		alice.push("Protected tags cannot be updated.", "--force", "HEAD:refs/tags/v2")
		alice.push("You can only delete protected tags using the web interface.", "--delete", "v2")
		bob.push("You are not allowed to delete protected tags from this project.", "--delete", "v2")
		bob.push("", "--delete", "refs/tags/w1")
		s.Table(t, []apptest.Call{
			{Do: "DELETE " + at + "/repository/tags/v2", As: p.bob, Status: 403},
			{Do: "DELETE " + at + "/repository/tags/v2", As: p.alice, Status: 204},
			{Do: "DELETE " + at + "/protected_tags/v*", As: p.alice, Status: 204},
			{Do: "DELETE " + at + "/protected_tags/v*", As: p.alice, Status: 404},
		})
		bob.push("", "HEAD:refs/tags/v3")
	})
}

// TestDeployKeyPush checks that a deploy key can push to a protected branch only if the rule of
// the branch names the key.
func TestDeployKeyPush(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		p := newPlace(t, s, `,"initialize_with_readme":true`)
		at := fmt.Sprintf("/projects/%d", p.id)
		var key struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST " + at + "/deploy_keys", As: p.alice, Status: 201,
			JSON: `{"title":"Robot","can_push":true,"key":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"}`}).JSON(t, &key)
		robot := actor.Actor{Deploy: &actor.Deploy{Kind: actor.DeployKey, ID: key.ID, Name: "Robot"}}
		try := func(branch string) error {
			_, _, err := s.Repos.CreateBranch(t.Context(), robot, project.RefTo(p.id), branch, "main")
			return err
		}
		if err := try("free"); err != nil {
			t.Error(err)
		}
		s.Check(t, apptest.Call{Do: "POST " + at + "/protected_branches", As: p.alice, JSON: `{"name":"one","push_access_level":30}`, Status: 201})
		if err := try("one"); err == nil {
			t.Error("the key may push although the rule does not name it")
		}
		s.Check(t, apptest.Call{Do: "POST " + at + "/protected_branches", As: p.alice, JSON: fmt.Sprintf(`{"name":"two","allowed_to_push":[{"deploy_key_id":%d}]}`, key.ID), Status: 201,
			Want: fmt.Sprintf(`{"push_access_levels":[{"deploy_key_id":%d,"access_level":40,"access_level_description":"Robot"}]}`, key.ID)})
		if err := try("two"); err != nil {
			t.Error(err)
		}

		// The creator must still see the project.
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT %s/members/%d", at, p.bobID), As: p.alice, Status: 200, JSON: `{"access_level":40}`})
		s.Check(t, apptest.Call{Do: "POST " + at + "/deploy_keys", As: p.bob, Status: 201,
			JSON: `{"title":"Other","can_push":true,"key":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICgxKKzvFJQ8En9zJ8qPV+fNfDHsbFVG3l1iqxai+XWK"}`}).JSON(t, &key)
		robot.Deploy.ID = key.ID
		s.Check(t, apptest.Call{Do: "POST " + at + "/protected_branches", As: p.alice, JSON: fmt.Sprintf(`{"name":"three*","allowed_to_push":[{"deploy_key_id":%d}]}`, key.ID), Status: 201})
		if err := try("three"); err != nil {
			t.Error(err)
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE %s/members/%d", at, p.bobID), As: p.alice, Status: 204})
		if err := try("three-again"); err == nil {
			t.Error("the key may push to a protected branch although its creator cannot see the project")
		}
		if err := try("free-again"); err != nil {
			t.Error(err)
		}
	})
}

// TestProtectedRules checks the validation of rules, and their audit events.
func TestProtectedRules(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		p := newPlace(t, s, "")
		at := fmt.Sprintf("/projects/%d/protected_branches", p.id)
		strangerID, _ := s.User(t, "stranger")
		var groupID struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /groups", As: p.alice, JSON: `{"name":"G","path":"g"}`, Status: 201}).JSON(t, &groupID)
		s.Table(t, []apptest.Call{
			{Do: "POST " + at, As: p.alice, JSON: `{}`, Status: 400, Want: `{"error":"name is missing"}`},
			{Do: "POST " + at, As: p.alice, JSON: `{"name":"x","push_access_level":7}`, Status: 400},
			{Do: "POST " + at, As: p.alice, JSON: `{"name":"-x"}`, Status: 422},
			{Do: "POST " + at, As: p.alice, JSON: fmt.Sprintf(`{"name":"x","allowed_to_push":[{"user_id":%d}]}`, strangerID), Status: 422},
			{Do: "POST " + at, As: p.alice, JSON: fmt.Sprintf(`{"name":"x","allowed_to_merge":[{"group_id":%d}]}`, groupID.ID), Status: 422},
			{Do: "POST " + at, As: p.alice, JSON: `{"name":"x","allowed_to_push":[{"deploy_key_id":77}]}`, Status: 422},
			{Do: fmt.Sprintf("POST /projects/%d/share", p.id), As: p.alice, JSON: fmt.Sprintf(`{"group_id":%d,"group_access":30}`, groupID.ID), Status: 201},
			{Do: "POST " + at, As: p.alice, Status: 201,
				JSON: fmt.Sprintf(`{"name":"x","push_access_level":30,"allowed_to_merge":[{"group_id":%d}],"allowed_to_unprotect":[{"user_id":%d}],"code_owner_approval_required":true}`, groupID.ID, p.bobID),
				Want: `{"name":"x","push_access_levels":[{"access_level":30}],"merge_access_levels":[{"access_level_description":"G"}],"unprotect_access_levels":[{"access_level_description":"bob"}],"code_owner_approval_required":true}`},
			{Do: "POST " + at, As: p.alice, JSON: `{"name":"x"}`, Status: 409, Want: `{"message":"Protected branch 'x' already exists"}`},
			{Do: "DELETE " + at + "/x", As: p.alice, Status: 403},
			{Do: "DELETE " + at + "/y", As: p.alice, Status: 404, Want: `{"message":"404 Not found"}`},
			{Do: "PATCH " + at + "/x", As: p.alice, JSON: `{"allowed_to_push":[{"id":1000000,"access_level":40}]}`, Status: 404},
		})
		var rule struct {
			Push      []struct{ ID int64 } `json:"push_access_levels"`
			Unprotect []struct{ ID int64 } `json:"unprotect_access_levels"`
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "/x", As: p.bob, Status: 200}).JSON(t, &rule)
		s.Table(t, []apptest.Call{
			{Name: "not the entry of this action", Do: "PATCH " + at + "/x", As: p.alice, JSON: fmt.Sprintf(`{"allowed_to_merge":[{"id":%d,"access_level":40}]}`, rule.Push[0].ID), Status: 404},
			{Name: "change", Do: "PATCH " + at + "/x", As: p.alice, Status: 200,
				JSON: fmt.Sprintf(`{"allowed_to_push":[{"id":%d,"access_level":40}],"allowed_to_unprotect":[{"id":%d,"_destroy":true}]}`, rule.Push[0].ID, rule.Unprotect[0].ID),
				Want: fmt.Sprintf(`{"push_access_levels":[{"id":%d,"access_level":40}],"unprotect_access_levels":[]}`, rule.Push[0].ID)},
			{Do: "DELETE " + at + "/x", As: p.alice, Status: 204},
			{Do: fmt.Sprintf("GET /projects/%d/audit_events", p.id), As: p.alice, Status: 200,
				Want: `[{"event_type":"protected_branch_removed","details":{"target_details":"x"}},{"event_type":"protected_branch_updated"},{"event_type":"protected_branch_created"},
					{"event_type":"<any>"},{"event_type":"<any>"},{"event_type":"<any>"}]`},
		})
	})
}

// TestFreeTier checks that endpoints of higher tiers do not exist.
func TestFreeTier(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		p := newPlace(t, s, "")
		at := fmt.Sprintf("/projects/%d", p.id)
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/protected_branches", As: p.alice, Status: 201, JSON: fmt.Sprintf(`{"name":"x","allowed_to_push":[{"user_id":%d}],"code_owner_approval_required":true}`, p.bobID),
				Want: `{"push_access_levels":[{"access_level":40,"user_id":null}],"code_owner_approval_required":false}`},
			{Do: "GET " + at + "/push_rule", As: p.alice, Status: 404, Want: `{"error":"404 Not Found"}`},
		})
	}, apptest.Tier("free"))
}
