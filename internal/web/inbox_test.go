package web_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/project"
)

// TestTodoPages checks the to-do list, its counters and its buttons.
func TestTodoPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		bobID, _ := s.User(t, "bob")
		id := newProject(t, s, ada, "p", "private")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/members", id), As: ada, Status: 201, Form: url.Values{"user_id": {fmt.Sprint(bobID)}, "access_level": {fmt.Sprint(int(project.Developer))}}})
		api := fmt.Sprintf("POST /projects/%d/issues", id)
		s.Check(t, apptest.Call{Do: api, As: ada, Status: 201, Form: url.Values{"title": {"First <task>"}, "assignee_ids": {fmt.Sprint(bobID)}}})
		s.Check(t, apptest.Call{Do: api, As: ada, Status: 201, Form: url.Values{"title": {"Second task"}}})
		b := newBrowser(t, s).signIn("bob", password)
		const list = "/dashboard/todos"
		b.get(list).want(200, "First &lt;task&gt;", "<b>ada</b> assigned you", `data-count="todos">1<`, `data-count="issues">1<`, "ada/p#1", "Mark all as done").not("Second task")
		b.get(list+"?type=MergeRequest").want(200, "No to-do items match your filters.")
		b.get(list+"?action=mentioned&project_id=1&type=x").want(200, "No to-do items match your filters.")
		b.get(list+"?state=done").want(200, "No completed to-do items")
		var items []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET /todos", As: s.Token(t, bobID, "api"), Status: 200}).JSON(t, &items)
		one := fmt.Sprintf("%s/%d", list, items[0].ID)
		b.submit(list, one+"/done", "back", "type=Issue").leads(list + fmt.Sprintf("?type=Issue&undo=%d", items[0].ID))
		b.get(list+fmt.Sprintf("?undo=%d", items[0].ID)).want(200, "Marked as done.", "Undo", "Nothing is on your to-do list", `data-count="todos" hidden`)
		b.get(list+"?state=done").want(200, "First &lt;task&gt;", "Restore")
		b.submit(list+"?state=done", one+"/restore").leads(list)
		b.get(list).want(200, "The to-do item was restored.", "First &lt;task&gt;")
		b.submit(list, list+"/done").leads(list)
		b.get(list).want(200, "Nothing is on your to-do list")
		// The button of an issue.
		const issue = "/ada/p/-/issues/2"
		b.get(issue).want(200, "Add a to-do item")
		b.submit(issue, issue+"/todo", "want", "1").leads(issue)
		b.get(issue).want(200, "The to-do item was added.", "Mark as done")
		b.get(list).want(200, "<b>You</b> added a to-do item", "Second task")
		b.submit(issue, issue+"/todo").leads(issue)
		b.get(list).want(200, "Nothing is on your to-do list")
		// Items of other users, and of projects that the user can no longer see.
		a := newBrowser(t, s).signIn("ada", password)
		a.submit(list, one+"/done").want(404)
		b.submit(issue, issue+"/todo", "want", "1").leads(issue)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /projects/%d/members/%d", id, bobID), As: ada, Status: 204})
		b.get(list).want(200, "Nothing is on your to-do list").not("Second task")
		newBrowser(t, s).get(list).leads("/users/sign_in?return_to=" + url.QueryEscape(list))
		// Comments on commits, and access requests.
		open := newProject(t, s, ada, "open", "public")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/repository/files/a", open), As: ada, Status: 201, Form: url.Values{"branch": {"main"}, "content": {"x"}, "commit_message": {"Begin"}}})
		var commit struct{ ID string }
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/repository/commits/main", open), As: ada, Status: 200}).JSON(t, &commit)
		at := "/ada/open/-/commit/" + commit.ID
		newBrowser(t, s).get(at).want(200).not("Comments")
		a.submit(at, at+"/notes", "note", "Is this **right**, @bob? <script>").want(303)
		a.submit(at, at+"/notes", "note", " ").want(422)
		b.get(at).want(200, "Is this <strong>right</strong>", `id="note_1"`, "Comments").not("<script>Is", "? <script>")
		s.Settled(t)
		b.get(list+"?type=Commit").want(200, "ada/open@"+commit.ID[:8], "Begin", "<b>ada</b> mentioned you", at+"?comment=1#note_1")
		for range 50 {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/repository/commits/main/comments", open), As: ada, Status: 201, Form: url.Values{"note": {"More"}}})
		}
		a.submit(at, at+"/notes", "note", "The last one").leads(at + "?comments_page=2#note_52")
		a.get(at+"?comments_page=2").want(200, "The last one", `href="?comments_page=1"`)
		// A link to a comment redirects to the page that shows it.
		a.get(at + "?comment=52").leads(at + "?comments_page=2#note_52")
		a.get(at + "?comment=1").leads(at + "?comments_page=1#note_1")
		a.get(at + "?comment=0").leads(at + "?comments_page=1#note_0")
		a.get(at + "?comment=x").want(404)
		a.get(at+"?page=2").want(200, "Is this <strong>right</strong>", `href="?comments_page=2&amp;page=2"`).not("The last one") // a page of the diff
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/access_requests", open), As: s.Token(t, bobID, "api"), Status: 201})
		s.Settled(t)
		a.get(list+"?action=member_access_requested").want(200, "<b>bob</b> requested access", "/ada/open/-/settings/members", "ada / open")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/archive", open), As: ada, Status: 201})
		a.get(at).want(200, "Comments").not(at + "/notes")
		a.submit(list, at+"/notes", "note", "x").want(403)
	})
}

// TestMergeRequestInbox checks in which section a merge request is.
func TestMergeRequestInbox(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		bobID, bob := s.User(t, "bob")
		id := newProject(t, s, ada, "p", "private")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/members", id), As: ada, Status: 201, Form: url.Values{"user_id": {fmt.Sprint(bobID)}, "access_level": {fmt.Sprint(int(project.Maintainer))}}})
		at := fmt.Sprintf("/projects/%d", id)
		for _, c := range []apptest.Call{
			{Do: "POST " + at + "/repository/files/a", Form: url.Values{"branch": {"main"}, "content": {"x"}, "commit_message": {"x"}}},
			{Do: "POST " + at + "/repository/branches", Form: url.Values{"branch": {"b"}, "ref": {"main"}}},
			{Do: "POST " + at + "/repository/files/x", Form: url.Values{"branch": {"b"}, "content": {"x"}, "commit_message": {"x"}}},
			{Do: "POST " + at + "/merge_requests", Form: url.Values{"title": {"Change it"}, "source_branch": {"b"}, "target_branch": {"main"}}},
		} {
			c.As, c.Status = ada, 201
			s.Check(t, c)
		}
		a, b := newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("bob", password)
		const page = "/dashboard/merge_requests"
		in := func(who *browser, section string) {
			t.Helper()
			body := who.get(page).want(200).body
			before, _, found := strings.Cut(body, "Change it")
			if !found {
				t.Fatalf("the merge request is not on the page, want it in %s", section)
			}
			last := before[strings.LastIndex(before, "<h2>")+len("<h2>"):]
			if !strings.HasPrefix(last, section+" ") {
				t.Errorf("the merge request is in %.40q, want %s", last, section)
			}
			if strings.Count(body, "Change it") != 1 {
				t.Errorf("the merge request is in %d sections", strings.Count(body, "Change it"))
			}
		}
		in(a, "Your merge requests")
		b.get(page).want(200, "No merge requests yet")
		s.Check(t, apptest.Call{Do: "PUT " + at + "/merge_requests/1", As: ada, Status: 200, Form: url.Values{"reviewer_ids": {fmt.Sprint(bobID)}}})
		in(a, "Waiting for reviewers")
		in(b, "Review requested")
		b.get(page).want(200, `data-count="merges">1<`)
		// A reviewer who is also the assignee has to review it.
		s.Check(t, apptest.Call{Do: "PUT " + at + "/merge_requests/1", As: ada, Status: 200, Form: url.Values{"assignee_ids": {fmt.Sprint(bobID)}}})
		in(a, "Waiting for reviewers")
		in(b, "Review requested")
		s.Check(t, apptest.Call{Do: "POST " + at + "/merge_requests/1/draft_notes", As: bob, Status: 201, Form: url.Values{"note": {"Please"}}})
		s.Check(t, apptest.Call{Do: "POST " + at + "/merge_requests/1/draft_notes/bulk_publish", As: bob, Status: 204})
		in(a, "Returned to you")
		in(b, "Waiting for the author")
		b.get(page).want(200, `data-count="merges">1<`)
		s.Check(t, apptest.Call{Do: "PUT " + at + "/merge_requests/1", As: ada, Status: 200, Form: url.Values{"assignee_ids": {"0"}}})
		b.get(page).want(200, `data-count="merges" hidden`)
		s.Check(t, apptest.Call{Do: "POST " + at + "/merge_requests/1/approve", As: bob, Status: 201})
		in(a, "Approved by others")
		in(b, "Approved by you")
		s.Check(t, apptest.Call{Do: "PUT " + at + "/merge_requests/1/merge", As: bob, Status: 200})
		in(a, "Merged recently")
		in(b, "Merged recently")
		b.get(page+"?scope=reviews_for_me").want(200, "Review requests", "No open merge requests")
	})
}

// TestReactionPages adds and removes reactions by forms.
func TestReactionPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		_, bob := s.User(t, "bob")
		id := newProject(t, s, ada, "p", "public")
		at := fmt.Sprintf("/projects/%d/issues", id)
		s.Check(t, apptest.Call{Do: "POST " + at, As: ada, Status: 201, Form: url.Values{"title": {"T"}}})
		var note struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST " + at + "/1/notes", As: ada, Status: 201, Form: url.Values{"body": {"hello"}}}).JSON(t, &note)
		s.Check(t, apptest.Call{Do: "POST " + at + "/1/award_emoji", As: bob, Status: 201, Form: url.Values{"name": {"tada"}}})
		b := newBrowser(t, s).signIn("ada", password)
		const issue = "/ada/p/-/issues/1"
		b.get(issue).want(200, "React with :thumbsup:", "bob reacted with :tada:", "Add reaction")
		b.submit(issue, issue+"/react", "name", "tada").leads(issue)
		b.get(issue).want(200, "You and bob reacted with :tada:", `aria-pressed="true"`)
		b.submit(issue, issue+"/react", "name", "tada").leads(issue)
		b.get(issue).want(200, "bob reacted with :tada:").not("You and bob")
		on := fmt.Sprintf("%s/notes/%d", issue, note.ID)
		b.get(on+"/react").want(200, `value="rocket"`, "Smileys and emotion", `href="/ada/p/-/issues/new"`)
		b.submit(on+"/react", on+"/react", "name", "rocket").leads(fmt.Sprintf("%s#note_%d", issue, note.ID))
		b.get(issue).want(200, "You reacted with :rocket:")
		b.submit(issue, issue+"/react", "name", "nonsense").want(404)
		for _, missing := range []string{"issues/9", "merge_requests/9", "snippets/9"} {
			b.get("/ada/p/-/" + missing + "/react").want(404)
			b.submit(issue, "/ada/p/-/"+missing+"/react", "name", "tada").want(404)
		}
		newBrowser(t, s).get(issue).want(200, "bob reacted with :tada:", "ada reacted with :rocket:").not(issue + "/react")
		b.get("/-/emojis").want(200, `"Smileys and emotion"`)
	})
}

// TestPreferencePages saves preferences and a status, and checks their effects.
func TestPreferencePages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.User(t, "ada")
		b := newBrowser(t, s).signIn("ada", password)
		const page = "/-/user_settings/preferences"
		b.get("/-/profile/preferences").leads(page)
		b.get(page).want(200, "Time zone", `value="UTC"`, "Side by side", "Start page")
		save := func(pairs ...string) answer {
			for name, value := range map[string]string{"timezone": "Europe/Berlin", "tab_width": "8", "first_day": "1", "diff_view": "parallel"} {
				if !slices.Contains(pairs, name) {
					pairs = append(pairs, name, value)
				}
			}
			return b.submit(page, page, pairs...)
		}
		save("start_page", "todos", "theme", "dark", "whitespace", "1").leads(page)
		b.get(page).want(200, "Your preferences were saved.", `data-theme="dark"`, `data-tab="8"`, `data-zone="Europe/Berlin"`, `value="Europe/Berlin"`)
		b.get("/").leads("/dashboard/todos")
		save("start_page", "activity").leads(page)
		b.get("/").leads("/ada")
		save("start_page", "").leads(page)
		b.get("/").want(200, "Your projects")
		save("timezone", "Mars/Olympus").want(422, "is not a time zone")
		save("theme", "pink").want(422)
		save("tab_width", "7").want(422)
		save("tab_width", "x").want(422, "is not a number")

		const status = "/-/user_settings/status"
		b.get(status).want(200, "Set status").not(`name="clear"`)
		b.submit(status, status, "emoji", "palm_tree", "message", "On <leave>", "busy", "1", "clear_status_after", "1_day").leads(status)
		b.get(status).want(200, "🌴", "Edit status", `name="clear"`, "On &lt;leave&gt;")
		b.submit(status, status, "emoji", "nonsense").want(422, "is not a valid emoji name")
		b.submit(status, status, "clear", "1").leads(status)
		b.get(status).want(200).not("Edit status", `name="clear"`)

		b.get("/-/user_settings/active_sessions").want(200, "Sign-in history", "from 127.0.0.1")
	})
}
