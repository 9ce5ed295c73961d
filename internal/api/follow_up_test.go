package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/project"
)

// TestFollowUp creates issues that continue threads of a merge request and resolve
// them.
func TestFollowUp(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		danID, dan := s.User(t, "dan")
		_, eve := s.User(t, "eve")
		id := code(t, s, alice, "code", `,"visibility":"public"`)
		enlist(t, s, id, bobID, project.Developer)
		enlist(t, s, id, danID, project.Guest)
		at := fmt.Sprintf("/projects/%d", id)
		sha := commitTo(t, s, bob, id, "topic", "a.txt", "two\n", "Change")
		m := requested(t, s, bob, id, "topic", "")
		thread := func(body string) string {
			var d struct{ ID string }
			s.Check(t, apptest.Call{Do: "POST " + m + "/discussions", As: alice, JSON: fmt.Sprintf(`{"body":%q}`, body), Status: 201}).JSON(t, &d)
			return d.ID
		}
		first, second := thread("Why **two**?\n\n/etc/passwd is no command"), thread("Second")
		third := thread("Third")
		s.Table(t, []apptest.Call{
			{Do: "POST " + m + "/discussions/" + third + "/notes", As: bob, JSON: `{"body":"A reply"}`, Status: 201},
			{Do: "PUT " + m + "/discussions/" + second, As: bob, JSON: `{"resolved":true}`, Status: 200},
			{Name: "a thread alone", Do: "POST " + at + "/issues", As: bob, JSON: fmt.Sprintf(`{"title":"x","discussion_to_resolve":%q}`, first), Status: 400},
			{Name: "no merge request", Do: "POST " + at + "/issues", As: bob, JSON: `{"title":"x","merge_request_to_resolve_discussions_of":99}`, Status: 404},
			{Name: "no thread", Do: "POST " + at + "/issues", As: bob, JSON: `{"title":"x","merge_request_to_resolve_discussions_of":1,"discussion_to_resolve":"0"}`, Status: 404},
			{Name: "a resolved thread", Do: "POST " + at + "/issues", As: bob, JSON: fmt.Sprintf(`{"title":"x","merge_request_to_resolve_discussions_of":1,"discussion_to_resolve":%q}`, second), Status: 404},
			{Name: "not allowed to resolve", Do: "POST " + at + "/issues", As: dan, JSON: `{"title":"x","merge_request_to_resolve_discussions_of":1}`, Status: 403},
			{Name: "a stranger", Do: "POST " + at + "/issues", As: eve, JSON: `{"title":"x","merge_request_to_resolve_discussions_of":1}`, Status: 403},
			{Name: "none was created", Do: "GET " + at + "/issues", As: bob, Status: 200, Want: `[]`},
			{Name: "one", Do: "POST " + at + "/issues", As: bob, JSON: fmt.Sprintf(`{"title":"One","description":"My words","merge_request_to_resolve_discussions_of":1,"discussion_to_resolve":%q}`, first), Status: 201,
				Want: `{"iid":1,"description":"My words"}`},
			{Name: "it is resolved", Do: "GET " + m + "/discussions/" + first, As: bob, Status: 200, Want: `{"notes":[{"resolved":true,"resolved_by":{"username":"bob"}}]}`},
			{Name: "the other one is not", Do: "GET " + m + "/discussions/" + third, As: bob, Status: 200, Want: `{"notes":[{"resolved":false},{"resolved":false}]}`},
			{Name: "noted", Do: "GET " + m + "/notes?per_page=1", As: bob, Status: 200, Want: `[{"system":true,"body":"created #1 to continue this discussion"}]`},
		})
		var i struct{ Description string }
		s.Check(t, apptest.Call{Name: "all", Do: "POST " + at + "/issues", As: bob, JSON: `{"title":"Rest","merge_request_to_resolve_discussions_of":1}`, Status: 201}).JSON(t, &i)
		var notes []struct {
			ID   int64
			Body string
		}
		s.Check(t, apptest.Call{Do: "GET " + m + "/notes?sort=asc", As: bob, Status: 200}).JSON(t, &notes)
		var thirdID int64
		for _, n := range notes {
			if n.Body == "Third" {
				thirdID = n.ID
			}
		}
		want := fmt.Sprintf("These threads of !1 should be addressed:\n\n- [ ] @alice started a [thread](%s/alice/code/-/merge_requests/1#note_%d) (1 reply):\n\n  > Third\n", s.URL, thirdID)
		if i.Description != want {
			t.Errorf("description: %q, want %q", i.Description, want)
		}
		s.Table(t, []apptest.Call{
			{Name: "all are resolved", Do: "GET " + m, As: bob, Status: 200, Want: `{"blocking_discussions_resolved":true}`},
			{Name: "cross reference", Do: "GET " + m + "/notes?per_page=2", As: bob, Status: 200, Want: `[{"system":true},{"system":true}]`},
			{Name: "a thread about a commit", Do: "POST " + m + "/discussions", As: bob, JSON: fmt.Sprintf(`{"body":"x","commit_id":%q}`, sha), Status: 201, Want: fmt.Sprintf(`{"notes":[{"commit_id":%q}]}`, sha)},
			{Name: "no commit", Do: "POST " + m + "/discussions", As: bob, JSON: `{"body":"x","commit_id":"../x"}`, Status: 400},
			{Name: "of an issue", Do: "POST " + at + "/issues/1/discussions", As: bob, JSON: fmt.Sprintf(`{"body":"x","commit_id":%q}`, sha), Status: 400},
			{Name: "null", Do: "POST " + m + "/notes", As: bob, JSON: `{"body":"plain"}`, Status: 201, Want: `{"commit_id":null}`},
		})
	})
}

// TestReviewCommands publishes draft notes with quick actions and references, and
// creates a merge request from an issue.
func TestReviewCommands(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		danID, dan := s.User(t, "dan")
		id := code(t, s, alice, "code", `,"visibility":"public"`)
		enlist(t, s, id, bobID, project.Developer)
		enlist(t, s, id, danID, project.Guest)
		at := fmt.Sprintf("/projects/%d", id)
		commitTo(t, s, bob, id, "topic", "a.txt", "two\n", "Change")
		m := requested(t, s, bob, id, "topic", "")
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/labels", As: alice, JSON: `{"name":"bug","color":"#ff0000"}`, Status: 201},
			{Do: "POST " + at + "/issues", As: alice, JSON: `{"title":"An issue"}`, Status: 201},
			{Do: "POST " + m + "/draft_notes", As: alice, JSON: `{"note":"See #1\n/label ~bug"}`, Status: 201},
			{Do: "POST " + m + "/draft_notes", As: alice, JSON: `{"note":"/assign @bob"}`, Status: 201},
			{Name: "nothing happens before", Do: "GET " + m, As: bob, Status: 200, Want: `{"labels":[],"assignees":[]}`},
			{Name: "no reference", Do: "GET " + at + "/issues/1/notes", As: bob, Status: 200, Want: `[]`},
			{Do: "POST " + m + "/draft_notes/bulk_publish", As: alice, JSON: `{"note":"Done\n/spend 1h"}`, Status: 204},
			{Name: "applied", Do: "GET " + m, As: bob, Status: 200, Want: `{"labels":["bug"],"assignees":[{"username":"bob"}],"time_stats":{"total_time_spent":3600},"user_notes_count":2}`},
			{Name: "reference", Do: "GET " + at + "/issues/1/notes", As: bob, Status: 200, Want: `[{"system":true,"body":"mentioned in merge request !1"}]`},
			{Do: "POST " + m + "/notes", As: alice, JSON: `{"body":"/assign_reviewer @alice"}`, Status: 202},
			{Name: "replace the reviewers", Do: "POST " + m + "/notes", As: alice, JSON: `{"body":"/reassign_reviewer @dan"}`, Status: 202, Want: `{"summary":["Replaced the reviewers with @dan."]}`},
			{Name: "replaced", Do: "GET " + m, As: bob, Status: 200, Want: `{"reviewers":[{"username":"dan"}]}`},
			{Name: "with no one", Do: "POST " + m + "/notes", As: alice, JSON: `{"body":"/reassign_reviewer"}`, Status: 400},
			{Name: "once", Do: "POST " + m + "/draft_notes/bulk_publish", As: alice, JSON: `{}`, Status: 204},
			{Name: "applied", Do: "GET " + m, As: bob, Status: 200, Want: `{"time_stats":{"total_time_spent":3600}}`},
		})
		var one struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST " + m + "/draft_notes", As: dan, JSON: `{"note":"Mine\n/label ~bug\n/close"}`, Status: 201}).JSON(t, &one)
		s.Table(t, []apptest.Call{
			{Name: "what a Guest may not do", Do: fmt.Sprintf("PUT %s/draft_notes/%d/publish", m, one.ID), As: dan, Status: 204},
			{Name: "is not done", Do: "GET " + m, As: bob, Status: 200, Want: `{"state":"opened"}`},
			{Name: "the text is published", Do: "GET " + m + "/notes?per_page=1", As: bob, Status: 200, Want: `[{"body":"Mine"}]`},

			{Name: "from an issue", Do: "POST " + at + "/issues/1/notes", As: bob, JSON: `{"body":"/create_merge_request"}`, Status: 202,
				Want: `{"summary":["Created branch '1-an-issue' and merge request !2 to resolve this issue."]}`},
			{Do: "GET " + at + "/merge_requests/2", As: bob, Status: 200, Want: `{"title":"Draft: Resolve \"An issue\"","description":"Closes #1","source_branch":"1-an-issue","target_branch":"main","draft":true}`},
			{Name: "with a name", Do: "POST " + at + "/issues/1/notes", As: bob, JSON: `{"body":"/create_merge_request fix/it"}`, Status: 202},
			{Do: "GET " + at + "/merge_requests/3", As: bob, Status: 200, Want: `{"source_branch":"fix/it"}`},
			{Name: "a name that is taken", Do: "POST " + at + "/issues/1/notes", As: bob, JSON: `{"body":"/create_merge_request fix/it"}`, Status: 400},
			{Name: "no name of a branch", Do: "POST " + at + "/issues/1/notes", As: bob, JSON: `{"body":"/create_merge_request ../-x"}`, Status: 400},
			{Name: "a Guest", Do: "POST " + at + "/issues/1/notes", As: dan, JSON: `{"body":"/create_merge_request mine"}`, Status: 400},
			{Name: "no branch", Do: "GET " + at + "/repository/branches/mine", As: bob, Status: 404},
		})
	})
}

// TestMoveReactions moves an issue with reactions and time to another project.
func TestMoveReactions(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		from, to := newProject(t, s, alice, "from", ""), newProject(t, s, alice, "to", "")
		at := fmt.Sprintf("/projects/%d/issues", from)
		s.Table(t, []apptest.Call{
			{Do: "POST " + at, As: alice, JSON: `{"title":"One"}`, Status: 201},
			{Do: "POST " + at, As: alice, JSON: `{"title":"Two","description":"Mentions #1"}`, Status: 201},
			{Do: "POST " + at + "/1/award_emoji", As: alice, JSON: `{"name":"thumbsup"}`, Status: 201},
			{Do: "POST " + at + "/1/award_emoji", As: alice, JSON: `{"name":"tada"}`, Status: 201},
			{Do: "POST " + at + "/1/add_spent_time", As: alice, JSON: `{"duration":"2h"}`, Status: 201},
			{Do: "POST " + at + "/1/time_estimate", As: alice, JSON: `{"duration":"1d"}`, Status: 200},
		})
		made(t, s, alice, "POST "+at+"/1/notes", `{"body":"First"}`)
		note := made(t, s, alice, "POST "+at+"/1/notes", `{"body":"Second"}`)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST %s/1/notes/%d/award_emoji", at, note), As: alice, JSON: `{"name":"eyes"}`, Status: 201})
		s.Check(t, apptest.Call{Do: "POST " + at + "/1/move", As: alice, JSON: fmt.Sprintf(`{"to_project_id":%d}`, to), Status: 201,
			Want: `{"iid":1,"upvotes":1,"downvotes":0,"time_stats":{"time_estimate":28800,"total_time_spent":7200},"user_notes_count":2}`})
		at = fmt.Sprintf("/projects/%d/issues/1", to)
		s.Check(t, apptest.Call{Do: "GET " + at + "/award_emoji", As: alice, Status: 200, Want: `[{"name":"thumbsup"},{"name":"tada"}]`})
		var notes []struct {
			ID   int64
			Body string
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "/notes?sort=asc&activity_filter=only_comments", As: alice, Status: 200, Want: `[{"body":"First"},{"body":"Second"}]`}).JSON(t, &notes)
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("GET %s/notes/%d/award_emoji", at, notes[0].ID), As: alice, Status: 200, Want: `[]`},
			{Do: fmt.Sprintf("GET %s/notes/%d/award_emoji", at, notes[1].ID), As: alice, Status: 200, Want: `[{"name":"eyes"}]`},
		})
	})
}
