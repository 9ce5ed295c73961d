package api_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/project"
)

// todoActions returns the actions and targets of a caller's items, newest first:
// "assigned Issue 1".
func todoActions(t *testing.T, s *apptest.Server, token, query string) []string {
	t.Helper()
	s.Settled(t) // mentions are processed in the background
	var items []struct {
		ActionName string `json:"action_name"`
		TargetType string `json:"target_type"`
		Target     struct{ IID int64 }
	}
	s.Check(t, apptest.Call{Do: "GET /todos" + query, As: token, Status: 200}).JSON(t, &items)
	list := []string{}
	for _, i := range items {
		list = append(list, fmt.Sprintf("%s %s %d", i.ActionName, i.TargetType, i.Target.IID))
	}
	return list
}

func wantTodos(t *testing.T, s *apptest.Server, token, query string, want ...string) {
	t.Helper()
	if got := todoActions(t, s, token, query); strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("GET /todos%s: %q, want %q", query, got, want)
	}
}

// TestTodos creates to-do items in every way and resolves them.
func TestTodos(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		carolID, carol := s.User(t, "carol")
		p := newProject(t, s, alice, "p", `,"visibility":"private","initialize_with_readme":true`)
		enlist(t, s, p, bobID, project.Developer)
		at := fmt.Sprintf("/projects/%d", p)
		issues := at + "/issues"
		made(t, s, alice, "POST "+issues, fmt.Sprintf(`{"title":"first","description":"@carol cannot see this","assignee_ids":[%d]}`, bobID))
		wantTodos(t, s, bob, "", "assigned Issue 1")
		wantTodos(t, s, carol, "") // not a member
		var items []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET /todos", As: bob, Status: 200, Want: fmt.Sprintf(`[{
			"project":{"id":%d,"name":"p","path":"p","name_with_namespace":"alice / p","path_with_namespace":"alice/p"},
			"author":{"id":%d,"username":"alice"},"action_name":"assigned","target_type":"Issue",
			"target":{"iid":1,"title":"first","upvotes":0},"target_url":"%s/alice/p/-/issues/1","body":"first","state":"pending",
			"created_at":"<any>","updated_at":"<any>"}]`, p, aliceID, s.URL), WantHeader: map[string]string{"X-Total": "1"}}).JSON(t, &items)
		one := fmt.Sprintf("/todos/%d/mark_as_done", items[0].ID)
		s.Table(t, []apptest.Call{
			{Name: "of another user", Do: "POST " + one, As: alice, Status: 404},
			{Name: "done", Do: "POST " + one, As: bob, Status: 201, Want: `{"state":"done","action_name":"assigned"}`},
			{Name: "done again", Do: "POST " + one, As: bob, Status: 201, Want: `{"state":"done"}`},
			{Name: "anonymous", Do: "GET /todos", Status: 401},
			{Name: "state", Do: "GET /todos?state=nonsense", As: bob, Status: 400},
			{Name: "action", Do: "GET /todos?action=nonsense", As: bob, Status: 400},
			{Name: "type", Do: "GET /todos?type=nonsense", As: bob, Status: 400},
		})
		wantTodos(t, s, bob, "")
		wantTodos(t, s, bob, "?state=done", "assigned Issue 1")

		// Mentions; one at the start of a line is a direct address.
		made(t, s, alice, "POST "+issues+"/1/notes", `{"body":"Look, @bob, at this"}`)
		wantTodos(t, s, bob, "", "mentioned Issue 1")
		made(t, s, alice, "POST "+issues, `{"title":"second","description":"@bob please"}`)
		wantTodos(t, s, bob, "", "directly_addressed Issue 2", "mentioned Issue 1")
		made(t, s, alice, "POST "+issues+"/1/notes", `{"body":"@bob again"}`) // the issue already has an item
		wantTodos(t, s, bob, "", "directly_addressed Issue 2", "mentioned Issue 1")
		s.Check(t, apptest.Call{Do: "GET /todos?action=mentioned", As: bob, Status: 200, Want: `[{"body":"Look, @bob, at this"}]`})
		// Actions of the user resolve the item, those of others do not.
		made(t, s, alice, "POST "+issues+"/1/notes", `{"body":"x"}`)
		s.Check(t, apptest.Call{Do: "PUT " + issues + "/2", As: alice, JSON: `{"state_event":"close"}`, Status: 200})
		wantTodos(t, s, bob, "", "directly_addressed Issue 2", "mentioned Issue 1")
		made(t, s, bob, "POST "+issues+"/1/notes", `{"body":"done"}`)
		s.Check(t, apptest.Call{Do: "PUT " + issues + "/2", As: bob, JSON: `{"labels":"x"}`, Status: 200})
		wantTodos(t, s, bob, "")
		s.Check(t, apptest.Call{Do: "PUT " + issues + "/2", As: alice, JSON: fmt.Sprintf(`{"assignee_ids":[%d]}`, bobID), Status: 200})
		wantTodos(t, s, bob, "", "assigned Issue 2")
		s.Check(t, apptest.Call{Do: "PUT " + issues + "/2", As: alice, JSON: `{"assignee_ids":[]}`, Status: 200})
		wantTodos(t, s, bob, "")
		// A mention that is added to a description.
		s.Check(t, apptest.Call{Do: "PUT " + issues + "/1", As: alice, JSON: `{"description":"for @bob and @bob"}`, Status: 200})
		wantTodos(t, s, bob, "", "mentioned Issue 1")
		s.Check(t, apptest.Call{Do: "POST /todos/mark_as_done", As: bob, Status: 204})
		wantTodos(t, s, bob, "")

		// Items that users add themselves.
		s.Table(t, []apptest.Call{
			{Do: "POST " + issues + "/1/todo", As: bob, Status: 201, Want: `{"action_name":"marked","author":{"username":"bob"},"state":"pending"}`},
			{Do: "POST " + issues + "/1/todo", As: bob, Status: 304},
			{Do: "POST " + issues + "/1/todo", As: carol, Status: 404},
			{Do: "POST " + issues + "/1/todo", Status: 401},
			{Do: "POST " + issues + "/99/todo", As: bob, Status: 404},
		})
		// Filters.
		other := newProject(t, s, bob, "other", "")
		made(t, s, bob, fmt.Sprintf("POST /projects/%d/issues", other), fmt.Sprintf(`{"title":"x","assignee_ids":[%d]}`, bobID))
		wantTodos(t, s, bob, "", "assigned Issue 1", "marked Issue 1")
		wantTodos(t, s, bob, fmt.Sprintf("?project_id=%d", p), "marked Issue 1")
		wantTodos(t, s, bob, fmt.Sprintf("?author_id=%d", bobID), "assigned Issue 1", "marked Issue 1")
		wantTodos(t, s, bob, fmt.Sprintf("?author_id=%d", aliceID))
		wantTodos(t, s, bob, "?type=MergeRequest")
		wantTodos(t, s, bob, "?type=Issue&action=assigned", "assigned Issue 1")
		wantTodos(t, s, bob, "?type=Epic")
		wantTodos(t, s, bob, "?group_id=99999")
		wantTodos(t, s, bob, "?per_page=1&page=2", "marked Issue 1")

		// Confidential issues and internal notes.
		enlist(t, s, p, carolID, project.Guest)
		made(t, s, alice, "POST "+issues, `{"title":"secret","description":"@carol","confidential":true}`)
		made(t, s, alice, "POST "+issues+"/1/notes", `{"body":"@carol","internal":true}`)
		wantTodos(t, s, carol, "")
		made(t, s, alice, "POST "+issues, `{"title":"open","description":"@carol"}`)
		wantTodos(t, s, carol, "", "directly_addressed Issue 4")
		s.Check(t, apptest.Call{Do: "PUT " + issues + "/4", As: alice, JSON: `{"confidential":true}`, Status: 200})
		wantTodos(t, s, carol, "")
		s.Check(t, apptest.Call{Do: "PUT " + issues + "/4", As: alice, JSON: `{"confidential":false}`, Status: 200})
		wantTodos(t, s, carol, "", "directly_addressed Issue 4")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE %s/members/%d", at, carolID), As: alice, Status: 204})
		s.Check(t, apptest.Call{Do: "GET /todos", As: carol, Status: 200, Want: `[]`, WantHeader: map[string]string{"X-Total": "0"}})
		var hidden []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET /todos?state=done", As: carol, Status: 200}).JSON(t, &hidden)
		if len(hidden) > 0 {
			t.Error("items of a project that the user cannot see")
		}
		// An item is deleted with its target, and with its comment.
		s.Check(t, apptest.Call{Do: "DELETE " + issues + "/1", As: alice, Status: 204})
		wantTodos(t, s, bob, fmt.Sprintf("?project_id=%d", p))
	})
}

// TestMergeRequestTodos creates and resolves the items of merge requests.
func TestMergeRequestTodos(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		carolID, carol := s.User(t, "carol")
		p := newProject(t, s, alice, "p", `,"visibility":"private","initialize_with_readme":true`)
		enlist(t, s, p, bobID, project.Maintainer)
		enlist(t, s, p, carolID, project.Developer)
		danID, dan := s.User(t, "dan")
		enlist(t, s, p, danID, project.Developer)
		at := fmt.Sprintf("/projects/%d", p)
		commit := func(branch, text string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "PUT " + at + "/repository/files/README.md", As: alice, Status: 200, JSON: fmt.Sprintf(
				`{"branch":%q,"content":%q,"commit_message":"change"}`, branch, text)})
		}
		s.Check(t, apptest.Call{Do: "POST " + at + "/repository/branches", As: alice, JSON: `{"branch":"b","ref":"main"}`, Status: 201})
		commit("b", "one")
		requests := at + "/merge_requests"
		made(t, s, alice, "POST "+requests, fmt.Sprintf(`{"title":"t","source_branch":"b","target_branch":"main","assignee_id":%d,"reviewer_ids":[%d]}`, bobID, carolID))
		wantTodos(t, s, bob, "", "assigned MergeRequest 1")
		wantTodos(t, s, carol, "", "review_requested MergeRequest 1")
		s.Check(t, apptest.Call{Do: "GET /todos?type=MergeRequest", As: carol, Status: 200, Want: fmt.Sprintf(
			`[{"target":{"iid":1,"source_branch":"b"},"target_url":"%s/alice/p/-/merge_requests/1"}]`, s.URL)})
		s.Check(t, apptest.Call{Do: "PUT " + requests + "/1", As: alice, JSON: `{"reviewer_ids":[]}`, Status: 200})
		wantTodos(t, s, carol, "")
		s.Table(t, []apptest.Call{
			{Do: "POST " + requests + "/1/todo", As: carol, Status: 201, Want: `{"action_name":"marked","target_type":"MergeRequest"}`},
			{Do: "POST " + requests + "/1/todo", As: carol, Status: 304},
		})
		// A review resolves the item of the reviewer; its comments mention users.
		s.Check(t, apptest.Call{Do: "POST " + requests + "/1/draft_notes", As: carol, JSON: `{"note":"one"}`, Status: 201})
		s.Check(t, apptest.Call{Do: "POST " + requests + "/1/draft_notes", As: carol, JSON: `{"note":"@dan two"}`, Status: 201})
		s.Check(t, apptest.Call{Do: "POST " + requests + "/1/draft_notes/bulk_publish", As: carol, Status: 204})
		wantTodos(t, s, carol, "")
		wantTodos(t, s, alice, "", "review_submitted MergeRequest 1")
		wantTodos(t, s, bob, "", "assigned MergeRequest 1")
		wantTodos(t, s, dan, "", "directly_addressed MergeRequest 1")
		s.Check(t, apptest.Call{Do: "POST /todos/mark_as_done", As: alice, Status: 204})
		s.Check(t, apptest.Call{Do: "POST " + requests + "/1/todo", As: carol, Status: 201})
		// A conflict, which creates only one item.
		commit("main", "two")
		s.Check(t, apptest.Call{Do: "GET " + requests + "/1", As: bob, Status: 200, Want: `{"has_conflicts":true}`})
		wantTodos(t, s, alice, "", "unmergeable MergeRequest 1")
		s.Check(t, apptest.Call{Do: "POST /todos/mark_as_done", As: alice, Status: 204})
		commit("main", "three")
		s.Check(t, apptest.Call{Do: "GET " + requests + "/1", As: bob, Status: 200, Want: `{"has_conflicts":true}`})
		wantTodos(t, s, alice, "")
		// A failed pipeline, and one that passes.
		commit("b", "three")
		var m struct{ SHA string }
		s.Check(t, apptest.Call{Do: "GET " + requests + "/1", As: bob, Status: 200}).JSON(t, &m)
		status := func(state string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "POST " + at + "/statuses/" + m.SHA, As: bob, JSON: fmt.Sprintf(`{"state":%q,"ref":"b","name":"check"}`, state), Status: 201})
		}
		status("failed")
		wantTodos(t, s, alice, "", "build_failed MergeRequest 1")
		status("success")
		wantTodos(t, s, alice, "")
		// Merging resolves the items of the user who merges, and of no other.
		s.Check(t, apptest.Call{Do: "PUT " + requests + "/1/merge", As: bob, Status: 200})
		wantTodos(t, s, bob, "")
		wantTodos(t, s, carol, "", "marked MergeRequest 1")
	})
}

// TestOtherTodos creates and resolves the items of commits, alerts and access
// requests, which are removed when users lose access.
func TestOtherTodos(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		root := s.Token(t, 1, "api")
		aliceID, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		_, carol := s.User(t, "carol")
		p := newProject(t, s, alice, "p", `,"visibility":"public","initialize_with_readme":true`)
		enlist(t, s, p, bobID, project.Developer)
		at := fmt.Sprintf("/projects/%d", p)

		// A comment on a commit.
		var commit struct{ ID string }
		s.Check(t, apptest.Call{Do: "GET " + at + "/repository/commits/main", As: alice, Status: 200}).JSON(t, &commit)
		comments := "POST " + at + "/repository/commits/" + commit.ID + "/comments"
		made(t, s, alice, comments, `{"note":"@bob, is this right? @carol"}`)
		s.Settled(t)
		s.Check(t, apptest.Call{Do: "GET /todos?type=Commit", As: bob, Status: 200, Want: fmt.Sprintf(`[{
			"project":{"id":%d},"author":{"username":"alice"},"action_name":"directly_addressed","target_type":"Commit","body":"@bob, is this right? @carol",
			"target":{"id":%q,"short_id":%q,"title":"Initial commit"},"target_url":"<any>","state":"pending"}]`, p, commit.ID, commit.ID[:8])})
		wantTodos(t, s, carol, "", "mentioned Commit 0")
		made(t, s, alice, comments, `{"note":"@bob again"}`) // the commit already has an item
		wantTodos(t, s, bob, "", "directly_addressed Commit 0")
		made(t, s, bob, comments, `{"note":"yes"}`)
		wantTodos(t, s, bob, "")
		s.Check(t, apptest.Call{Do: comments, As: bob, JSON: `{"note":" "}`, Status: 400})
		// The code is not visible to everyone any more.
		s.Check(t, apptest.Call{Do: "PUT " + at, As: alice, JSON: `{"repository_access_level":"private","merge_requests_access_level":"private","builds_access_level":"private"}`, Status: 200})
		wantTodos(t, s, carol, "")
		s.Check(t, apptest.Call{Do: "PUT " + at, As: alice, JSON: `{"repository_access_level":"enabled"}`, Status: 200})
		wantTodos(t, s, carol, "", "mentioned Commit 0")
		s.Check(t, apptest.Call{Do: "POST /todos/mark_as_done", As: carol, Status: 204})

		// Access requests, which only managers see.
		s.Check(t, apptest.Call{Do: "POST " + at + "/access_requests", As: carol, Status: 201})
		wantTodos(t, s, alice, "?action=member_access_requested", "member_access_requested Project 0")
		wantTodos(t, s, bob, "")
		s.Check(t, apptest.Call{Do: "GET /todos", As: alice, Status: 200, Want: fmt.Sprintf(`[{
			"project":{"id":%d},"author":{"username":"carol"},"target":{"id":%d,"path_with_namespace":"alice/p"},"target_url":"%s/alice/p/-/settings/members","body":"alice / p"}]`, p, p, s.URL)})
		var me struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET /user", As: carol, Status: 200}).JSON(t, &me)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE %s/access_requests/%d", at, me.ID), As: carol, Status: 204})
		wantTodos(t, s, alice, "")
		s.Check(t, apptest.Call{Do: "POST " + at + "/access_requests", As: carol, Status: 201})
		wantTodos(t, s, alice, "", "member_access_requested Project 0")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT %s/access_requests/%d/approve", at, me.ID), As: alice, Status: 201})
		wantTodos(t, s, alice, "")
		wantTodos(t, s, alice, "?state=done", "member_access_requested Project 0", "member_access_requested Project 0")
		group := made(t, s, alice, "POST /groups", `{"name":"g","path":"g","visibility":"public"}`)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/access_requests", group), As: bob, Status: 201})
		wantTodos(t, s, alice, fmt.Sprintf("?group_id=%d&type=Namespace&author_id=%d", group, bobID), "member_access_requested Namespace 0")
		s.Check(t, apptest.Call{Do: "GET /todos", As: alice, Status: 200, Want: fmt.Sprintf(`[{"project":null,"group":{"id":%d,"full_path":"g"},"body":"g"}]`, group)})
		wantTodos(t, s, alice, "?group_id="+fmt.Sprint(group+1000))
		enlistInGroup := fmt.Sprintf("POST /groups/%d/members", group)
		made(t, s, alice, enlistInGroup, `{"user_id":1,"access_level":50}`) // a group must have an owner
		// A user who is not an owner any more, and one who is again.
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /groups/%d/members/%d", group, aliceID), As: root, JSON: `{"access_level":40}`, Status: 200})
		wantTodos(t, s, alice, "")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /groups/%d/members/%d", group, aliceID), As: root, JSON: `{"access_level":50}`, Status: 200})
		wantTodos(t, s, alice, "", "member_access_requested Namespace 0")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /groups/%d/access_requests/%d", group, bobID), As: alice, Status: 204})
		wantTodos(t, s, alice, "")

		// Alerts.
		_, hook, token := integration(t, s, alice, p, `{"name":"w"}`)
		s.Check(t, apptest.Call{Do: below(s, hook), Header: bearer(token), JSON: `{"title":"Disk full"}`, Status: 200})
		one := "PUT " + at + "/alert_management_alerts/1"
		assign := func(who string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: one, As: alice, JSON: `{"assignee_id":` + who + `}`, Status: 200})
		}
		assign(fmt.Sprint(bobID))
		wantTodos(t, s, bob, "?type=AlertManagement::Alert&action=assigned", "assigned AlertManagement::Alert 1")
		s.Check(t, apptest.Call{Do: "GET /todos", As: bob, Status: 200, Want: fmt.Sprintf(`[{
			"author":{"username":"alice"},"target":{"iid":1,"title":"Disk full"},"target_url":"%s/alice/p/-/alert_management/1/details","body":"Disk full"}]`, s.URL)})
		assign("null")
		wantTodos(t, s, bob, "")
		assign(fmt.Sprint(bobID))
		wantTodos(t, s, bob, "", "assigned AlertManagement::Alert 1")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT %s/members/%d", at, bobID), As: alice, JSON: `{"access_level":20}`, Status: 200}) // Reporters see no alerts
		wantTodos(t, s, bob, "")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT %s/members/%d", at, bobID), As: alice, JSON: `{"access_level":30}`, Status: 200})
		wantTodos(t, s, bob, "", "assigned AlertManagement::Alert 1")
		for _, monitor := range []struct {
			level  string
			status int
			todos  []string
		}{{"disabled", 404, nil}, {"enabled", 200, []string{"assigned AlertManagement::Alert 1"}}} {
			s.Check(t, apptest.Call{Do: "PUT " + at, As: alice, JSON: `{"monitor_access_level":"` + monitor.level + `"}`, Status: 200})
			wantTodos(t, s, bob, "", monitor.todos...)
			for _, do := range []string{"GET " + at + "/alert_management_alerts", "GET " + at + "/alert_management_alerts/1", one} {
				for _, as := range []string{alice, bob} {
					call := apptest.Call{Name: do + " " + monitor.level, Do: do, As: as, Status: monitor.status}
					if do == one {
						call.JSON = `{"status":"acknowledged"}`
					}
					s.Check(t, call)
				}
			}
		}
		s.Check(t, apptest.Call{Do: one, As: alice, JSON: `{"status":"resolved"}`, Status: 200})
		wantTodos(t, s, bob, "")
		wantTodos(t, s, bob, "?state=done&type=AlertManagement::Alert", "assigned AlertManagement::Alert 1", "assigned AlertManagement::Alert 1")

		// An approval rule that lists a user.
		made(t, s, alice, "POST "+at+"/approval_rules", fmt.Sprintf(`{"name":"Bob","approvals_required":1,"user_ids":[%d]}`, bobID))
		s.Check(t, apptest.Call{Do: "POST " + at + "/repository/branches", As: alice, JSON: `{"branch":"b","ref":"main"}`, Status: 201})
		s.Check(t, apptest.Call{Do: "POST " + at + "/repository/files/x", As: alice, JSON: `{"branch":"b","content":"x","commit_message":"x"}`, Status: 201})
		made(t, s, alice, "POST "+at+"/merge_requests", `{"title":"t","source_branch":"b","target_branch":"main"}`)
		wantTodos(t, s, bob, "", "approval_required MergeRequest 1")
		s.Check(t, apptest.Call{Do: "POST " + at + "/merge_requests/1/approve", As: bob, Status: 201})
		wantTodos(t, s, bob, "")

		// Items about a deleted user: those of access requests are resolved.
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/access_requests", group), As: bob, Status: 201})
		wantTodos(t, s, alice, "", "member_access_requested Namespace 0")
		made(t, s, bob, comments, `{"note":"@alice bye"}`)
		wantTodos(t, s, alice, "", "directly_addressed Commit 0", "member_access_requested Namespace 0")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /users/%d", bobID), As: root, Status: 204})
		wantTodos(t, s, alice, "", "directly_addressed Commit 0")
		s.Check(t, apptest.Call{Do: "GET /todos", As: alice, Status: 200, Want: `[{"author":{"username":"ghost"}}]`})
	})
}
