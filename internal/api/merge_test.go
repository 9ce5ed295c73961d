package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
	"svc/internal/project"
)

// commitTo commits a file to a branch by the API, which records a push; a new branch
// starts at main.
func commitTo(t testing.TB, s *apptest.Server, as string, id int64, branch, path, content, message string) string {
	t.Helper()
	start, from, action := `"start_branch":"main",`, "main", "create"
	if s.Send(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/repository/branches/%s", id, branch), As: as}).Status == 200 {
		start, from = "", branch
	}
	if s.Send(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/repository/files/%s?ref=%s", id, path, from), As: as}).Status == 200 {
		action = "update"
	}
	var made struct{ ID string }
	s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/repository/commits", id), As: as, Status: 201,
		JSON: fmt.Sprintf(`{"branch":%q,%s"commit_message":%q,"actions":[{"action":%q,"file_path":%q,"content":%q}]}`, branch, start, message, action, path, content)}).JSON(t, &made)
	return made.ID
}

// code creates a project with a first commit on main.
func code(t testing.TB, s *apptest.Server, as, name, more string) int64 {
	t.Helper()
	id := newProject(t, s, as, name, more)
	s.Repository(t, id, gittest.Commit{Message: "first", Changes: []gittest.Change{{Path: "a.txt", Content: "one\n"}}})
	return id
}

func TestMergeRequests(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		danID, dan := s.User(t, "dan")
		top := group(t, s, alice, "top", `,"visibility":"public"`)
		id := code(t, s, alice, "code", fmt.Sprintf(`,"namespace_id":%d,"visibility":"public"`, top))
		enlist(t, s, id, bobID, project.Developer)
		at := fmt.Sprintf("/projects/%d/merge_requests", id)
		goal := made(t, s, alice, fmt.Sprintf("POST /projects/%d/milestones", id), `{"title":"v1"}`)
		first := commitTo(t, s, bob, id, "work", "b.txt", "two\n", "Add b")
		commitTo(t, s, bob, id, "other", "c.txt", "three\n", "Add c")
		s.Table(t, []apptest.Call{
			{Name: "made", Do: "POST " + at, As: bob, Status: 201,
				JSON: fmt.Sprintf(`{"source_branch":"work","target_branch":"main","title":" Work ","description":"- [x] a","labels":"bug","assignee_ids":[%d],"reviewer_ids":[%d,999999],"milestone_id":%d,"squash":true,"remove_source_branch":true}`, bobID, aliceID, goal),
				Want: fmt.Sprintf(`{"iid":1,"project_id":%d,"title":"Work","state":"opened","source_branch":"work","target_branch":"main","source_project_id":%[1]d,"target_project_id":%[1]d,
					"author":{"username":"bob"},"assignee":{"username":"bob"},"assignees":[{"username":"bob"}],"reviewers":[{"username":"alice"}],"labels":["bug"],"milestone":{"title":"v1"},
					"draft":false,"work_in_progress":false,"merge_status":"can_be_merged","detailed_merge_status":"mergeable","sha":%q,"merge_commit_sha":null,"squash":true,"squash_on_merge":true,
					"force_remove_source_branch":true,"references":{"short":"!1","relative":"!1","full":"top/code!1"},"web_url":"%s/top/code/-/merge_requests/1","changes_count":"1",
					"diff_refs":{"head_sha":%[2]q,"base_sha":"<any>","start_sha":"<any>"},"has_conflicts":false,"blocking_discussions_resolved":true,"user":{"can_merge":true},"subscribed":true,
					"task_completion_status":{"count":1,"completed_count":1},"head_pipeline":null,"pipeline":null,"merge_error":null,"prepared_at":"<any>","user_notes_count":0}`, id, first, s.URL)},
			{Name: "as HTML", Do: "GET " + at + "/1?render_html=true", As: bob, Status: 200, Want: `{"title_html":"Work","description_html":"<any>"}`},
			{Name: "not as HTML", Do: "GET " + at + "/1", As: bob, Status: 200, Not: []string{"title_html", "description_html"}},
			{Name: "a second one", Do: "POST " + at, As: bob, JSON: `{"source_branch":"work","target_branch":"main","title":"x"}`, Status: 409,
				Want: `{"message":["Another open merge request already exists for this source branch: !1"]}`},
			{Name: "a branch into itself", Do: "POST " + at, As: bob, JSON: `{"source_branch":"main","target_branch":"main","title":"x"}`, Status: 422,
				Want: `{"message":["You can't use same project/branch for source and target"]}`},
			{Name: "no such branches", Do: "POST " + at, As: bob, JSON: `{"source_branch":"none","target_branch":"nix","title":"x"}`, Status: 400,
				Want: `{"message":{"source_branch":["does not exist"],"target_branch":["does not exist"]}}`},
			{Name: "no title", Do: "POST " + at, As: bob, JSON: `{"source_branch":"other","target_branch":"main","title":"Draft: "}`, Status: 400, Want: `{"message":{"title":["can't be blank"]}}`},
			{Name: "no name", Do: "POST " + at, As: bob, JSON: `{"source_branch":"other","target_branch":"a..b","title":"x"}`, Status: 400},
			{Name: "by a stranger", Do: "POST " + at, As: dan, JSON: `{"source_branch":"other","target_branch":"main","title":"x"}`, Status: 403},
			{Name: "anonymous", Do: "POST " + at, JSON: `{"source_branch":"other","target_branch":"main","title":"x"}`, Status: 401},
			{Name: "a draft", Do: "POST " + at, As: alice, JSON: fmt.Sprintf(`{"source_branch":"other","target_branch":"main","title":"Draft: other","assignee_id":%d}`, danID), Status: 201,
				Want: `{"iid":2,"draft":true,"detailed_merge_status":"draft_status","merge_status":"can_be_merged","user":{"can_merge":true},"squash":false}`},
			{Name: "alone", Do: "GET " + at + "/1", Status: 200, Want: `{"title":"Work","subscribed":false,"user":{"can_merge":false}}`},
			{Name: "of no number", Do: "GET " + at + "/9", Status: 404, Want: `{"message":"404 Merge Request Not Found"}`},
			{Name: "more of it", Do: "GET " + at + "/1?include_diverged_commits_count=true&include_rebase_in_progress=true", Status: 200, Want: `{"diverged_commits_count":0,"rebase_in_progress":false}`},
			{Name: "its commits", Do: "GET " + at + "/1/commits", Status: 200, Want: fmt.Sprintf(`[{"id":%q,"title":"Add b"}]`, first)},
			{Name: "its diffs", Do: "GET " + at + "/1/diffs", Status: 200, Want: `[{"new_path":"b.txt","new_file":true,"diff":"@@ -0,0 +1 @@\n+two\n","collapsed":false,"too_large":false,"generated_file":false}]`},
			{Name: "its changes", Do: "GET " + at + "/1/changes", Status: 200, Want: `{"iid":1,"changes":[{"new_path":"b.txt"}],"overflow":false}`},
			{Name: "as text", Do: "GET " + at + "/1/raw_diffs", Status: 200, WantHeader: map[string]string{"Content-Type": "text/plain; charset=utf-8"}},
			{Name: "its versions", Do: "GET " + at + "/1/versions", Status: 200, Want: fmt.Sprintf(`[{"head_commit_sha":%q,"state":"collected","real_size":"1"}]`, first)},
			{Name: "no such version", Do: "GET " + at + "/1/versions/999999", Status: 404},
			{Name: "who looks at it", Do: "GET " + at + "/1/reviewers", Status: 200, Want: `[{"user":{"username":"alice"},"state":"unreviewed","created_at":"<any>"}]`},
			{Name: "who took part", Do: "GET " + at + "/1/participants", Status: 200, Want: `[{"username":"bob"},{"username":"alice"}]`},
			{Name: "of a commit", Do: fmt.Sprintf("GET /projects/%d/repository/commits/%s/merge_requests", id, first), Status: 200, Want: `[{"iid":1}]`},
			{Name: "referred to", Do: "POST /markdown", As: dan, JSON: `{"text":"see !1 and !7","gfm":true,"project":"top/code"}`, Status: 201},
		})
		s.Table(t, []apptest.Call{
			{Name: "all", Do: "GET " + at, Status: 200, Want: `[{"iid":2},{"iid":1,"detailed_merge_status":"mergeable"}]`, WantHeader: map[string]string{"X-Total": "2"}},
			{Name: "labels", Do: "GET " + at + "?labels=bug&with_labels_details=true", Status: 200, Want: `[{"iid":1,"labels":[{"name":"bug"}]}]`},
			{Name: "no labels", Do: "GET " + at + "?labels=None", Status: 200, Want: `[{"iid":2}]`},
			{Name: "any label", Do: "GET " + at + "?labels=Any", Status: 200, Want: `[{"iid":1}]`},
			{Name: "not a label", Do: "GET " + at + "?not[labels]=bug", Status: 200, Want: `[{"iid":2}]`},
			{Name: "milestone", Do: "GET " + at + "?milestone=v1", Status: 200, Want: `[{"iid":1}]`},
			{Name: "of the milestone", Do: fmt.Sprintf("GET /projects/%d/milestones/%d/merge_requests", id, goal), Status: 200, Want: `[{"iid":1,"detailed_merge_status":"mergeable"}]`},
			{Name: "of a milestone of the group", Do: fmt.Sprintf("GET /groups/%d/milestones/%d/merge_requests", top, goal), Status: 404},
			{Name: "author", Do: "GET " + at + "?author_username=alice", Status: 200, Want: `[{"iid":2}]`},
			{Name: "assignee", Do: fmt.Sprintf("GET %s?assignee_id=%d", at, danID), Status: 200, Want: `[{"iid":2}]`},
			{Name: "reviewer", Do: "GET " + at + "?reviewer_username=alice", Status: 200, Want: `[{"iid":1}]`},
			{Name: "no reviewer", Do: "GET " + at + "?reviewer_id=None", Status: 200, Want: `[{"iid":2}]`},
			{Name: "not a reviewer", Do: fmt.Sprintf("GET %s?not[reviewer_id]=%d", at, aliceID), Status: 200, Want: `[{"iid":2}]`},
			{Name: "branch", Do: "GET " + at + "?source_branch=work&target_branch=main&state=opened", Status: 200, Want: `[{"iid":1}]`},
			{Name: "drafts", Do: "GET " + at + "?wip=yes", Status: 200, Want: `[{"iid":2}]`},
			{Name: "text", Do: "GET " + at + "?search=WORK&in=title", Status: 200, Want: `[{"iid":1}]`},
			{Name: "numbers", Do: "GET " + at + "?iids[]=2", Status: 200, Want: `[{"iid":2}]`},
			{Name: "none of a state", Do: "GET " + at + "?state=merged", Status: 200, Want: `[]`},
			{Name: "by title", Do: "GET " + at + "?order_by=title&sort=desc&view=simple", Status: 200, Want: `[{"iid":1,"title":"Work"},{"iid":2}]`, Not: []string{"detailed_merge_status"}},
			{Name: "time", Do: "GET " + at + "?created_before=2000-01-01T00:00:00Z", Status: 200, Want: `[]`},
			{Name: "of a group", Do: fmt.Sprintf("GET /groups/%d/merge_requests?author_username=bob", top), Status: 200, Want: `[{"iid":1}]`},
			{Name: "one's own", Do: "GET /merge_requests", As: bob, Status: 200, Want: `[{"iid":1}]`},
			{Name: "for oneself", Do: "GET /merge_requests?scope=assigned_to_me", As: dan, Status: 200, Want: `[{"iid":2}]`},
			{Name: "to look at", Do: "GET /merge_requests?scope=reviews_for_me", As: alice, Status: 200, Want: `[{"iid":1}]`},
			{Name: "everything", Do: "GET /merge_requests?scope=all&with_merge_status_recheck=true", As: dan, Status: 200, Want: `[{"iid":2},{"iid":1}]`},
		})
		s.Table(t, []apptest.Call{
			{Name: "nothing said", Do: "PUT " + at + "/1", As: bob, JSON: `{}`, Status: 400},
			{Name: "a stranger", Do: "PUT " + at + "/1", As: dan, JSON: `{"title":"x"}`, Status: 403},
			{Name: "an assignee", Do: "PUT " + at + "/2", As: dan, JSON: `{"title":"Other","labels":"bug"}`, Status: 200, Want: `{"title":"Other","draft":false,"labels":[],"detailed_merge_status":"mergeable"}`},
			{Name: "more", Do: "PUT " + at + "/1", As: bob, JSON: `{"title":"Draft: Work","add_labels":"late","remove_labels":"bug","assignee_ids":[],"milestone_id":0,"discussion_locked":true,"squash":false}`, Status: 200,
				Want: `{"draft":true,"labels":["late"],"assignees":[],"milestone":null,"discussion_locked":true,"squash":false,"detailed_merge_status":"draft_status"}`},
			{Name: "another target", Do: "PUT " + at + "/1", As: bob, JSON: `{"target_branch":"other"}`, Status: 200, Want: `{"target_branch":"other","changes_count":"1"}`},
			{Name: "none such", Do: "PUT " + at + "/1", As: bob, JSON: `{"target_branch":"nix"}`, Status: 400},
			{Name: "its source", Do: "PUT " + at + "/1", As: bob, JSON: `{"target_branch":"work"}`, Status: 422},
			{Name: "and back", Do: "PUT " + at + "/1", As: bob, JSON: `{"target_branch":"main","title":"Work"}`, Status: 200},
			{Name: "close", Do: "PUT " + at + "/1", As: bob, JSON: `{"state_event":"close"}`, Status: 200, Want: `{"state":"closed","closed_by":{"username":"bob"},"closed_at":"<any>","detailed_merge_status":"not_open"}`},
			{Name: "another for the same", Do: "POST " + at, As: bob, JSON: `{"source_branch":"work","target_branch":"main","title":"Again"}`, Status: 201, Want: `{"iid":3}`},
			{Name: "so this stays closed", Do: "PUT " + at + "/1", As: bob, JSON: `{"state_event":"reopen"}`, Status: 409},
			{Name: "delete as its author", Do: "DELETE " + at + "/3", As: bob, Status: 403},
			{Name: "changed since", Do: "DELETE " + at + "/3", As: alice, Header: map[string]string{"If-Unmodified-Since": "Mon, 01 Jan 2024 00:00:00 GMT"}, Status: 412},
			{Name: "delete", Do: "DELETE " + at + "/3", As: alice, Status: 204},
			{Name: "gone", Do: "GET " + at + "/3", As: alice, Status: 404},
			{Name: "recorded", Do: fmt.Sprintf("GET /projects/%d/audit_events?per_page=1", id), As: alice, Status: 200, Want: `[{"event_type":"delete_merge_request"}]`},
			{Name: "reopen", Do: "PUT " + at + "/1", As: bob, JSON: `{"state_event":"reopen"}`, Status: 200, Want: `{"state":"opened","closed_by":null,"closed_at":null}`},
			{Name: "subscribe", Do: "POST " + at + "/1/subscribe", As: dan, Status: 201, Want: `{"subscribed":true}`},
			{Name: "again", Do: "POST " + at + "/1/subscribe", As: dan, Status: 304},
			{Name: "unsubscribe", Do: "POST " + at + "/1/unsubscribe", As: dan, Status: 201, Want: `{"subscribed":false}`},
			{Name: "events", Do: fmt.Sprintf("GET /projects/%d/events?target_type=merge_request", id), Status: 200,
				Want: `[{"action_name":"reopened","target_iid":1},{"action_name":"closed"},{"action_name":"opened","target_iid":2,"target_title":"Other"},{"action_name":"opened","target_iid":1,"target_type":"MergeRequest","target_title":"Work"}]`},
		})
		second := commitTo(t, s, bob, id, "work", "b.txt", "two and more\n", "More b")
		// A job that collects the first version takes so long that another has
		// collected the second version in the meantime.
		becomes(t, s, apptest.Call{Do: "GET " + at + "/1", Status: 200})
		if _, err := s.DB.ExecContext(t.Context(), `UPDATE merge_request_versions SET collected = FALSE WHERE head_sha = ?`, first); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "/1", Status: 200})
		if got := s.Repository(t, id).Tip("refs/merge-requests/1/head"); got != second {
			t.Errorf("the head went back to %s, want %s", got, second)
		}
		s.Table(t, []apptest.Call{
			{Name: "by its commits", Do: fmt.Sprintf("GET /projects/%d/repository/commits/%s/merge_requests", id, second), Status: 200, Want: `[{"iid":1}]`},
			{Name: "after a push", Do: "GET " + at + "/1", Status: 200, Want: fmt.Sprintf(`{"sha":%q,"diff_refs":{"head_sha":%[1]q},"changes_count":"1","detailed_merge_status":"mergeable"}`, second)},
			{Name: "both commits", Do: "GET " + at + "/1/commits", Status: 200, Want: `[{"title":"More b"},{"title":"Add b"}]`},
			{Name: "without the branch", Do: fmt.Sprintf("DELETE /projects/%d/repository/branches/work", id), As: bob, Status: 204},
			{Name: "the commits stay", Do: "GET " + at + "/1/commits", Status: 200, Want: `[{"title":"More b"},{"title":"Add b"}]`},
			{Name: "but it can not be merged", Do: "GET " + at + "/1", Status: 200, Want: `{"detailed_merge_status":"commits_status","merge_status":"cannot_be_merged","has_conflicts":true}`},
			{Name: "turned off", Do: fmt.Sprintf("PUT /projects/%d", id), As: alice, JSON: `{"merge_requests_access_level":"disabled"}`, Status: 200},
			{Do: "GET " + at, As: alice, Status: 404},
			{Do: "GET " + at + "/1", As: alice, Status: 404},
			{Do: fmt.Sprintf("GET /groups/%d/merge_requests", top), As: alice, Status: 200, Want: `[]`},
		})
	})
}
