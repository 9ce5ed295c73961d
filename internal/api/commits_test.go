package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

func TestCommitReads(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id, r := codeProject(t, s, alice, "code", gittest.Commit{Seconds: 1_600_000_000, Message: "One", Changes: file("a", "1\n2\n")})
		one := r.Tip("refs/heads/main")
		two := r.Commit(gittest.Commit{Seconds: 1_600_001_000, Author: "Bob <bob@example.org>", Message: "Two\n\nChangelog: added\nRef: a\nRef: b\n", Changes: file("dir/b", "b\n")})
		side := r.Commit(gittest.Commit{Branch: "side", Parents: []string{one}, Seconds: 1_600_002_000, Message: "Side", Changes: file("a", "1\n3\n")})
		r.Git("tag", "v1", one)
		at := fmt.Sprintf("/projects/%d/repository/commits", id)
		web := s.URL + "/alice/code/-/commit/"
		s.Table(t, []apptest.Call{
			{Do: "GET " + at + "?trailers=true", As: alice, Status: 200, Want: `[
				{"id":"` + two + `","short_id":"` + two[:8] + `","title":"Two","author_name":"Bob","author_email":"bob@example.org","authored_date":"2020-09-13T14:43:20.000+02:00",
				 "committed_date":"2020-09-13T12:43:20.000+00:00","created_at":"2020-09-13T12:43:20.000+00:00","parent_ids":["` + one + `"],
				 "trailers":{"Changelog":"added","Ref":"b"},"extended_trailers":{"Changelog":["added"],"Ref":["a","b"]},"web_url":"` + web + two + `"},
				{"id":"` + one + `","parent_ids":[]}]`,
				WantHeader: map[string]string{"X-Total": "-", "X-Total-Pages": "-", "X-Page": "1", "X-Next-Page": ""}},
			{Name: "trailers only for those who ask", Do: "GET " + at, As: alice, Status: 200, Want: `[{"id":"` + two + `","trailers":{},"extended_trailers":{}},{}]`, Not: []string{`"Changelog":`}},
			{Do: "GET " + at + "/" + two, As: alice, Status: 200, Want: `{"trailers":{},"extended_trailers":{}}`, Not: []string{`"Changelog":`}},
			{Do: "GET " + at + "?per_page=1&page=1", As: alice, Status: 200, Want: `[{"id":"` + two + `"}]`, WantHeader: map[string]string{"X-Next-Page": "2"}},
			{Do: "GET " + at + "?per_page=1&page=2", As: alice, Status: 200, Want: `[{"id":"` + one + `"}]`, WantHeader: map[string]string{"X-Next-Page": "", "X-Prev-Page": "1"}},
			{Do: "GET " + at + "?ref_name=side&with_stats=true", As: alice, Status: 200, Want: `[{"title":"Side","stats":{"additions":1,"deletions":1,"total":2}},{"title":"One","stats":{"additions":2}}]`},
			{Do: "GET " + at + "?ref_name=v1..main", As: alice, Status: 200, Want: `[{"title":"Two"}]`},
			{Do: "GET " + at + "?ref_name=nowhere", As: alice, Status: 200, Want: `[]`},
			{Do: "GET " + at + "?all=true", As: alice, Status: 200, Want: `[{"title":"Side"},{"title":"Two"},{"title":"One"}]`},
			{Do: "GET " + at + "?path=dir", As: alice, Status: 200, Want: `[{"title":"Two"}]`},
			{Do: "GET " + at + "?author=BOB", As: alice, Status: 200, Want: `[{"title":"Two"}]`},
			{Do: "GET " + at + "?since=2020-09-13T12:43:20Z", As: alice, Status: 200, Want: `[{"title":"Two"}]`},
			{Do: "GET " + at + "?until=2020-09-13T12:43:19Z", As: alice, Status: 200, Want: `[{"title":"One"}]`},
			{Do: "GET " + at + "?first_parent=true&order=topo", As: alice, Status: 200, Want: `[{"title":"Two"},{"title":"One"}]`},
			{Do: "GET " + at + "?order=x", As: alice, Status: 400},
			{Do: "GET " + at + "?page=9223372036854775807&per_page=100", As: alice, Status: 200, Want: `[]`},
			{Do: "GET " + at + "?page=30000000000", As: alice, Status: 200, Want: `[]`},
			{Do: "GET " + at + "?since=0001-01-02T00:00:00Z&until=9999-12-31T00:00:00Z", As: alice, Status: 200, Want: `[{"title":"Two"},{"title":"One"}]`},
			{Do: "GET " + at + "?until=1900-01-01T00:00:00Z", As: alice, Status: 200, Want: `[]`},
			{Do: "GET " + at + "?since=9999-12-31T00:00:00Z", As: alice, Status: 200, Want: `[]`},
			{Do: "GET " + at + "?author=--all&path=-x", As: alice, Status: 200, Want: `[]`},

			{Do: "GET " + at + "/main", As: alice, Status: 200, Want: `{"id":"` + two + `","stats":{"additions":1,"deletions":0,"total":1},"status":null,"last_pipeline":null,"project_id":` + fmt.Sprint(id) + `}`},
			{Do: "GET " + at + "/" + side[:10] + "?stats=false", As: alice, Status: 200, Want: `{"id":"` + side + `"}`, Not: []string{`"stats"`}},
			{Do: "HEAD " + at + "/v1", As: alice, Status: 200},
			{Do: "GET " + at + "/nope", As: alice, Status: 404, Want: `{"message":"404 Commit Not Found"}`},
			{Do: "GET " + at + "/side/diff", As: alice, Status: 200, Want: `[{"old_path":"a","new_path":"a","a_mode":"100644","b_mode":"100644",
				"diff":"@@ -1,2 +1,2 @@\n 1\n-2\n+3\n","new_file":false,"renamed_file":false,"deleted_file":false,"too_large":false,"collapsed":false}]`,
				WantHeader: map[string]string{"X-Total": "1"}},
			{Do: "GET " + at + "/side/diff?unidiff=true", As: alice, Status: 200, Want: `[{"diff":"--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n"}]`},
			{Do: "GET " + at + "/v1/diff", As: alice, Status: 200, Want: `[{"new_path":"a","new_file":true,"a_mode":"0"}]`},
			{Do: "GET " + at + "/v1/refs", As: alice, Status: 200, Want: `[{"type":"branch","name":"main"},{"type":"branch","name":"side"},{"type":"tag","name":"v1"}]`},
			{Do: "GET " + at + "/v1/refs?type=tag", As: alice, Status: 200, Want: `[{"type":"tag","name":"v1"}]`},
			{Do: "GET " + at + "/side/refs?type=branch", As: alice, Status: 200, Want: `[{"type":"branch","name":"side"}]`},
			{Do: "GET " + at + "/main/sequence", As: alice, Status: 200, Want: `{"count":2}`},
			{Do: "GET " + at + "/main/signature", As: alice, Status: 404, Want: `{"message":"404 Signature Not Found"}`},
		})
	})
}

// actions returns the body of a request that creates a commit.
func actions(branch, more string, list ...string) string {
	return fmt.Sprintf(`{"branch":%q,"commit_message":"Change"%s,"actions":[%s]}`, branch, more, strings.Join(list, ","))
}

func TestCommitWrites(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id, r := codeProject(t, s, alice, "code", gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "a\n"}, {Path: "run.sh", Content: "x\n"}, {Path: "dir/b", Content: "b\n"}}})
		one := r.Tip("refs/heads/main")
		at := fmt.Sprintf("/projects/%d/repository/commits", id)
		create := func(path string) string {
			return fmt.Sprintf(`{"action":"create","file_path":%q,"content":"new\n"}`, path)
		}
		s.Table(t, []apptest.Call{
			{Name: "all actions", Do: "POST " + at, As: alice, Status: 201, JSON: actions("main", `,"author_name":"Bob","author_email":"bob@example.org"`,
				create("dir/new"),
				`{"action":"update","file_path":"a","content":"YmFzZQo=","encoding":"base64"}`,
				`{"action":"move","file_path":"moved/b","previous_path":"dir/b"}`,
				`{"action":"chmod","file_path":"run.sh","execute_filemode":true}`,
				`{"action":"delete","file_path":"dir/new"}`,
				`{"action":"create","file_path":"tool","content":"","execute_filemode":true}`),
				Want: `{"title":"Change","author_name":"Bob","author_email":"bob@example.org","committer_name":"alice","committer_email":"alice@example.org",
					"parent_ids":["` + one + `"],"stats":{"additions":1,"deletions":1,"total":2}}`},
			{Name: "no stats", Do: "POST " + at, As: alice, Status: 201, JSON: actions("main", `,"stats":false`, create("q")), Not: []string{`"stats"`}},
			{Name: "start branch", Do: "POST " + at, As: alice, Status: 201, JSON: actions("new", `,"start_branch":"main"`, create("n1"))},
			{Name: "start sha", Do: "POST " + at, As: alice, Status: 201, JSON: actions("newer", `,"start_sha":"`+one+`"`, create("n2")), Want: `{"parent_ids":["` + one + `"]}`},
			{Name: "taken", Do: "POST " + at, As: alice, Status: 400, JSON: actions("new", `,"start_branch":"main"`, create("n3")),
				Want: `{"message":"A branch called 'new' already exists. Switch to that branch in order to make changes"}`},
			{Name: "force", Do: "POST " + at, As: alice, Status: 201, JSON: actions("new", `,"start_sha":"`+one+`","force":true`, create("n4")), Want: `{"parent_ids":["` + one + `"]}`},
			{Name: "both starts", Do: "POST " + at, As: alice, Status: 400, JSON: actions("x", `,"start_sha":"`+one+`","start_branch":"main"`, create("n4"))},
			{Name: "no branch", Do: "POST " + at, As: alice, Status: 400, JSON: actions("nope", ``, create("n5")),
				Want: `{"message":"You can only create or edit files when you are on a branch"}`},
			{Name: "no start", Do: "POST " + at, As: alice, Status: 400, JSON: actions("nope", `,"start_branch":"gone"`, create("n5"))},
			{Name: "exists", Do: "POST " + at, As: alice, Status: 400, JSON: actions("main", ``, create("n6"), create("a")), Want: `{"message":"A file with this name already exists"}`},
			{Name: "missing", Do: "POST " + at, As: alice, Status: 400, JSON: actions("main", ``, `{"action":"update","file_path":"zz","content":"x"}`),
				Want: `{"message":"A file with this name doesn't exist"}`},
			{Name: "git directory", Do: "POST " + at, As: alice, Status: 400, JSON: actions("main", ``, create(".git/config"))},
			{Name: "climbs", Do: "POST " + at, As: alice, Status: 400, JSON: actions("main", ``, create("../x"))},
			{Name: "no content", Do: "POST " + at, As: alice, Status: 400, JSON: actions("main", ``, `{"action":"update","file_path":"a"}`), Want: `{"error":"actions[0][content] is missing"}`},
			{Name: "an empty file", Do: "POST " + at, As: alice, Status: 201, JSON: actions("empty", `,"start_branch":"main"`, `{"action":"create","file_path":"n"}`)},
			{Name: "it is empty", Do: "GET " + strings.Replace(at, "/commits", "/files/n?ref=empty", 1), As: alice, Status: 200, Want: `{"size":0,"content":""}`},
			{Name: "no previous path", Do: "POST " + at, As: alice, Status: 400, JSON: actions("main", ``, `{"action":"move","file_path":"n"}`), Want: `{"error":"actions[0][previous_path] is missing"}`},
			{Name: "bad base64", Do: "POST " + at, As: alice, Status: 400, JSON: actions("main", ``, `{"action":"create","file_path":"n","content":"!!","encoding":"base64"}`)},
			{Name: "no actions", Do: "POST " + at, As: alice, Status: 400, JSON: `{"branch":"main","commit_message":"m"}`, Want: `{"error":"actions is missing"}`},
			{Name: "old state", Do: "POST " + at, As: alice, Status: 400, JSON: actions("main", ``, `{"action":"update","file_path":"a","content":"x","last_commit_id":"`+one+`"}`)},
		})
		if got := r.Git("ls-tree", "-r", "--format=%(objectmode) %(path)", "main"); got != "100644 a\n100644 moved/b\n100644 q\n100755 run.sh\n100755 tool" {
			t.Errorf("the tree is\n%s", got)
		}
		r.Git("fsck", "--strict")

		var empty struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"path":"empty"}`, Status: 201}).JSON(t, &empty)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/repository/commits", empty.ID), As: alice, Status: 201, JSON: actions("first", ``, create("f"))})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d", empty.ID), As: alice, Status: 200, Want: `{"default_branch":"first","empty_repo":false}`})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/protected_branches", empty.ID), As: alice, Status: 200,
			Want: `[{"name":"first","push_access_levels":[{"access_level":40}],"merge_access_levels":[{"access_level":40}],"allow_force_push":false}]`})
	})
}

// TestCommitFromFork creates a branch from a commit that only a fork has.
func TestCommitFromFork(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		id, r := codeProject(t, s, alice, "code", gittest.Commit{Changes: file("a", "a\n")})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", id), As: alice, JSON: `{"visibility":"public"}`, Status: 200})
		var fork, other struct{ ID int64 }
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/fork", id), As: bob, Status: 201}).JSON(t, &fork)
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/protected_branches", fork.ID), As: bob, Status: 200, Want: `[{"name":"main"}]`})
		made := s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/repository/commits", fork.ID), As: bob, Status: 201,
			JSON: actions("topic", `,"start_branch":"main"`, `{"action":"create","file_path":"b","content":"b"}`)})
		var topic struct{ ID string }
		made.JSON(t, &topic)
		s.Check(t, apptest.Call{Do: "POST /projects", As: bob, JSON: `{"path":"other","initialize_with_readme":true}`, Status: 201}).JSON(t, &other)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", fork.ID), As: bob, JSON: `{"visibility":"public"}`, Status: 200})
		at := fmt.Sprintf("POST /projects/%d/repository/commits", id)
		one := `{"action":"create","file_path":"c","content":"c"}`
		s.Table(t, []apptest.Call{
			{Name: "fork", Do: at, As: alice, Status: 201, JSON: actions("taken", fmt.Sprintf(`,"start_branch":"topic","start_project":%d`, fork.ID), one),
				Want: `{"parent_ids":["` + topic.ID + `"]}`},
			{Name: "unseen", Do: at, As: alice, Status: 404, JSON: actions("x", fmt.Sprintf(`,"start_branch":"main","start_project":%d`, other.ID), one)},
			{Name: "stranger", Do: fmt.Sprintf("POST /projects/%d/repository/commits", fork.ID), As: bob, Status: 400,
				JSON: actions("x", fmt.Sprintf(`,"start_branch":"main","start_project":%d`, other.ID), one)},
		})
		r.Git("fsck", "--strict")
	})
}

func TestCherryPick(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id, r := codeProject(t, s, alice, "code", gittest.Commit{Changes: file("a", "1\n")})
		one := r.Tip("refs/heads/main")
		pick := r.Commit(gittest.Commit{Branch: "side", Parents: []string{one}, Author: "Bob <bob@example.org>", Message: "Add b\n", Changes: file("b", "b\n")})
		clash := r.Commit(gittest.Commit{Branch: "clash", Parents: []string{one}, Message: "Change a", Changes: file("a", "2\n")})
		r.Commit(gittest.Commit{Message: "Other", Changes: file("a", "3\n")})
		at := fmt.Sprintf("POST /projects/%d/repository/commits/", id)
		tip := r.Tip("refs/heads/main")
		s.Table(t, []apptest.Call{
			{Name: "dry", Do: at + pick + "/cherry_pick", As: alice, JSON: `{"branch":"main","dry_run":true}`, Status: 200, Want: `{"dry_run":"success"}`},
			{Name: "pick", Do: at + pick + "/cherry_pick", As: alice, JSON: `{"branch":"main"}`, Status: 201,
				Want: `{"title":"Add b","message":"Add b\n\n(cherry picked from commit ` + pick + `)","author_name":"Bob","committer_name":"alice","parent_ids":["` + tip + `"]}`},
			{Name: "again", Do: at + pick + "/cherry_pick", As: alice, JSON: `{"branch":"main"}`, Status: 400, Want: `{"error_code":"empty","message":"Sorry, we cannot cherry-pick this commit automatically. This commit may already have been cherry-picked, or a more recent commit may have updated some of its content."}`},
			{Name: "clash", Do: at + clash + "/cherry_pick", As: alice, JSON: `{"branch":"main"}`, Status: 400, Want: `{"error_code":"conflict"}`},
			{Name: "dry clash", Do: at + clash + "/cherry_pick", As: alice, JSON: `{"branch":"main","dry_run":true}`, Status: 400, Want: `{"error_code":"conflict"}`},
			{Name: "no branch given", Do: at + clash + "/cherry_pick", As: alice, JSON: `{}`, Status: 400, Want: `{"error":"branch is missing"}`},
			{Name: "message", Do: at + clash + "/cherry_pick", As: alice, JSON: `{"branch":"side","message":"Mine"}`, Status: 201, Want: `{"message":"Mine"}`},
			{Name: "no commit", Do: at + "nope/cherry_pick", As: alice, JSON: `{"branch":"main"}`, Status: 404, Want: `{"message":"404 Commit Not Found"}`},
			{Name: "no branch", Do: at + pick + "/cherry_pick", As: alice, JSON: `{"branch":"nope"}`, Status: 404, Want: `{"message":"404 Branch Not Found"}`},
			{Name: "revert dry", Do: at + pick + "/revert", As: alice, JSON: `{"branch":"side","dry_run":true}`, Status: 200, Want: `{"dry_run":"success"}`},
			{Name: "revert", Do: at + pick + "/revert", As: alice, JSON: `{"branch":"side"}`, Status: 201,
				Want: `{"title":"Revert \"Add b\"","message":"Revert \"Add b\"\n\nThis reverts commit ` + pick + `","author_name":"alice"}`},
			{Name: "revert again", Do: at + pick + "/revert", As: alice, JSON: `{"branch":"side"}`, Status: 400, Want: `{"error_code":"empty","message":"Sorry, we cannot revert this commit automatically. This commit may already have been reverted, or a more recent commit may have updated some of its content."}`},
		})
		if got := r.Git("show", "main:b"); got != "b" {
			t.Errorf("b is %q", got)
		}
	})
}

func TestCommitComments(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id, r := codeProject(t, s, alice, "code", gittest.Commit{Changes: file("a", "1\n2\n")})
		r.Commit(gittest.Commit{Changes: file("a", "1\n3\n")})
		at := fmt.Sprintf("/projects/%d/repository/commits/main/comments", id)
		whole := `"path":null,"line":null,"line_type":null`
		s.Table(t, []apptest.Call{
			{Do: "POST " + at, As: alice, JSON: `{"note":"Fine"}`, Status: 201, Want: `{"note":"Fine",` + whole + `,"author":{"username":"alice"},"created_at":"<any>"}`},
			{Do: "POST " + at, As: alice, JSON: `{"note":"New","path":"a","line":2}`, Status: 201, Want: `{"path":"a","line":2,"line_type":"new"}`},
			{Do: "POST " + at, As: alice, JSON: `{"note":"Old","path":"a","line":2,"line_type":"old"}`, Status: 201, Want: `{"path":"a","line":2,"line_type":"old"}`},
			{Do: "POST " + at, As: alice, JSON: `{"note":"Elsewhere","path":"a","line":7}`, Status: 201, Want: `{` + whole + `}`},
			{Do: "POST " + at, As: alice, JSON: `{"note":"Unchanged","path":"a","line":1}`, Status: 201, Want: `{` + whole + `}`},
			{Do: "POST " + at, As: alice, JSON: `{"note":"x","path":"a"}`, Status: 400, Want: `{"error":"line is missing"}`},
			{Do: "POST " + at, As: alice, JSON: `{"note":" "}`, Status: 400},
			{Do: "POST " + at, As: alice, JSON: `{"note":"x","path":"a","line":1,"line_type":"z"}`, Status: 400},
			{Do: "GET " + at, As: alice, Status: 200, Want: `[{"note":"Fine"},{"note":"New"},{"note":"Old"},{"note":"Elsewhere"},{"note":"Unchanged"}]`},
			{Do: "GET " + at + "?per_page=1&page=2", As: alice, Status: 200, Want: `[{"note":"New"}]`, WantHeader: map[string]string{"X-Total": "5"}},
			{Do: fmt.Sprintf("GET /projects/%d/repository/commits/main~1/comments", id), As: alice, Status: 200, Want: `[]`},
			{Do: fmt.Sprintf("POST /projects/%d/archive", id), As: alice, Status: 201},
			{Do: "POST " + at, As: alice, JSON: `{"note":"Late"}`, Status: 403},
		})
	})
}

// TestCommentsOfGhost checks that the comments of a deleted user remain.
func TestCommentsOfGhost(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		id, _ := codeProject(t, s, alice, "code", gittest.Commit{Changes: file("a", "1\n2\n")})
		member(t, s, alice, id, bobID, 30)
		at := fmt.Sprintf("/projects/%d/repository/commits/main/comments", id)
		s.Check(t, apptest.Call{Do: "POST " + at, As: bob, JSON: `{"note":"Mine"}`, Status: 201})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /users/%d", bobID), As: root, Status: 204})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: "GET " + at, As: alice, Status: 200, Want: `[{"note":"Mine","author":{"username":"ghost"}}]`})
	})
}

func TestCommitStatuses(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id, r := codeProject(t, s, alice, "code", gittest.Commit{Changes: file("a", "1\n")})
		sha := r.Tip("refs/heads/main")
		loose := r.Commit(gittest.Commit{Branch: "gone", Changes: file("b", "1\n")})
		r.Git("tag", "kept", loose)
		r.Git("update-ref", "-d", "refs/heads/gone")
		set := fmt.Sprintf("POST /projects/%d/statuses/%s", id, sha)
		list := fmt.Sprintf("GET /projects/%d/repository/commits/%s/statuses", id, sha)
		single := fmt.Sprintf("GET /projects/%d/repository/commits/%s", id, sha)
		s.Table(t, []apptest.Call{
			{Do: set, As: alice, JSON: `{"state":"pending"}`, Status: 201, Want: `{"status":"pending","name":"default","ref":"main","sha":"` + sha + `","started_at":null,"finished_at":null,
				"target_url":null,"coverage":null,"pipeline_id":"<any>","allow_failure":false,"author":{"username":"alice"}}`},
			{Do: set, As: alice, JSON: `{"state":"running","name":"default"}`, Status: 201, Want: `{"status":"running","started_at":"<any>","finished_at":null}`},
			{Do: single, As: alice, Status: 200, Want: `{"status":"running"}`},
			{Do: set, As: alice, JSON: `{"state":"success","coverage":90.5,"description":"d"}`, Status: 201, Want: `{"status":"success","finished_at":"<any>","coverage":90.5,"description":"d"}`},
			{Name: "repeated", Do: set, As: alice, JSON: `{"state":"success"}`, Status: 201, Want: `{"status":"success","coverage":90.5}`},
			{Do: single, As: alice, Status: 200, Want: `{"status":"success"}`},
			{Do: set, As: alice, JSON: `{"state":"failed","context":"lint","target_url":"https://ci.example/1","ref":"refs/heads/main"}`, Status: 201,
				Want: `{"status":"failed","name":"lint","ref":"main","target_url":"https://ci.example/1"}`},
			{Do: single, As: alice, Status: 200, Want: `{"status":"failed"}`},
			{Name: "anew", Do: set, As: alice, JSON: `{"state":"pending","name":"lint"}`, Status: 201, Want: `{"target_url":null}`},
			{Do: list, As: alice, Status: 200, Want: `[{"name":"default","status":"success"},{"name":"lint","status":"pending"}]`},
			{Do: list + "?sort=desc", As: alice, Status: 200, Want: `[{"name":"lint"},{"name":"default"}]`},
			{Do: list + "?all=true&name=lint", As: alice, Status: 200, Want: `[{"status":"failed"},{"status":"pending"}]`},
			{Do: list + "?ref=other", As: alice, Status: 200, Want: `[]`},
			{Do: set, As: alice, JSON: `{"state":"odd"}`, Status: 400, Want: `{"error":"state does not have a valid value"}`},
			{Do: fmt.Sprintf("POST /projects/%d/statuses/%s", id, strings.Repeat("a", 40)), As: alice, JSON: `{"state":"success"}`, Status: 404, Want: `{"message":"404 Commit Not Found"}`},
			{Do: fmt.Sprintf("POST /projects/%d/statuses/%s", id, loose), As: alice, JSON: `{"state":"success"}`, Status: 404, Want: `{"message":"404 References for commit Not Found"}`},
		})
	})
}

// TestTwoWriters changes one branch with concurrent requests: each commit that was
// reported as successful is in the history, and the others were refused.
func TestTwoWriters(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id, r := codeProject(t, s, alice, "code", gittest.Commit{Changes: file("a", "1\n")})
		const writers = 12
		answers := make([]apptest.Answer, writers)
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				body := fmt.Sprintf(`{"branch":"main","commit_message":"m","content":"x","author_name":"w%d"}`, i)
				answers[i] = s.Send(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/repository/files/f%d", id, i), As: alice, JSON: body})
			})
		}
		all.Wait()
		done := 0
		for i, a := range answers {
			var refusal struct{ Message string }
			_ = json.Unmarshal(a.Body, &refusal)
			_, there := fileThere(t, s, alice, id, fmt.Sprintf("f%d", i))
			switch {
			case a.Status == 201 && there:
				done++
			case a.Status == 409 && !there && strings.Contains(refusal.Message, "main could not be moved"):
			default:
				t.Errorf("writer %d: status %d, file there: %t: %s", i, a.Status, there, a.Body)
			}
		}
		if n := r.Git("rev-list", "--count", "main"); done == 0 || n != fmt.Sprint(done+1) {
			t.Errorf("%d writers were told of success, and the history has %s commits", done, n)
		}
	})
}

func fileThere(t *testing.T, s *apptest.Server, as string, id int64, path string) (apptest.Answer, bool) {
	t.Helper()
	a := s.Send(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/repository/files/%s?ref=main", id, path), As: as})
	return a, a.Status == 200
}
