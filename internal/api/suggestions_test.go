package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/project"
)

// suggestion is a suggestion in a note.
type suggestion struct{ ID int64 }

// suggested creates a note with a suggestion on a line of a merge request, and
// returns the suggestions and the discussion.
func suggested(t testing.TB, s *apptest.Server, as, at, place, body string) (list []suggestion, discussion string) {
	t.Helper()
	var made struct {
		ID    string
		Notes []struct{ Suggestions []suggestion }
	}
	s.Check(t, apptest.Call{Do: "POST " + at + "/discussions", As: as, JSON: fmt.Sprintf(`{"body":%q,"position":%s}`, body, place), Status: 201}).JSON(t, &made)
	return made.Notes[0].Suggestions, made.ID
}

func TestSuggestions(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		_, dan := s.User(t, "dan")
		id := code(t, s, alice, "code", `,"visibility":"public"`)
		enlist(t, s, id, bobID, project.Developer)
		commitTo(t, s, alice, id, "main", "win.txt", "a\r\n", "Add a file")
		commitTo(t, s, bob, id, "work", "new.txt", "one\ntwo\nthree\nfour\nfive\nsix", "Add a file")
		commitTo(t, s, bob, id, "work", "win.txt", "a\r\nb\r\n", "Change a file")
		at := requested(t, s, bob, id, "work", "")
		line := func(n int) string {
			return position(t, s, bob, at, fmt.Sprintf(`"new_path":"new.txt","new_line":%d`, n))
		}
		first, thread := suggested(t, s, dan, at, line(2), "Better:\n\n```suggestion:-1+0\nONE\nTWO\n```\n")
		last, _ := suggested(t, s, alice, at, line(6), "```suggestion\nSIX\n```")
		win, _ := suggested(t, s, alice, at, position(t, s, bob, at, `"new_path":"win.txt","new_line":2`), "```suggestion:-0+0\nB\nC\n```")
		many, _ := suggested(t, s, alice, at, line(4), "```suggestion:-100+100\nx\n```\n\n````suggestion\n```\n````\n\n```suggestion\n```\n\n```go\nno\n```")
		none, _ := suggested(t, s, alice, at, line(4), "No `suggestion` at all")
		if len(first) != 1 || len(last) != 1 || len(win) != 1 || len(many) != 3 || len(none) != 0 {
			t.Fatalf("suggestions %v, %v, %v, %v, %v", first, last, win, many, none)
		}
		discussion := at + "/discussions/" + thread
		apply := func(list ...suggestion) string { return fmt.Sprintf("PUT /suggestions/%d/apply", list[0].ID) }
		s.Table(t, []apptest.Call{
			{Name: "of a note", Do: "GET " + discussion, Status: 200, Want: `{"notes":[{"suggestions":[{"from_line":1,"to_line":2,"appliable":true,"applicable":true,"applied":false,"from_content":"one\ntwo\n","to_content":"ONE\nTWO\n"}]}]}`},
			{Name: "in the list", Do: "GET " + at + "/discussions?per_page=1&page=4", Status: 200, Want: `[{"notes":[{"suggestions":[
				{"from_line":1,"to_line":6,"to_content":"x\n"},{"from_line":4,"to_line":4,"from_content":"four\n","to_content":"` + "```" + `\n"},{"to_content":""}]}]}]`},
			{Name: "in a reply", Do: "POST " + discussion + "/notes", As: alice, JSON: `{"body":"` + "```suggestion\\n2\\n```" + `"}`, Status: 201, Want: `{"suggestions":[{"from_line":2,"to_line":2}]}`},
			{Name: "not on a comment", Do: "POST " + at + "/notes", As: alice, JSON: `{"body":"` + "```suggestion\\n2\\n```" + `"}`, Status: 201, Not: []string{"suggestions"}},
			{Name: "anonymous", Do: apply(first...), Status: 401},
			{Name: "without the right to push", Do: apply(first...), As: dan, Status: 403},
			{Name: "of nothing", Do: "PUT /suggestions/999999/apply", As: bob, Status: 404, Want: `{"message":"404 Suggestion Not Found"}`},
			{Name: "none", Do: "PUT /suggestions/batch_apply", As: bob, JSON: `{"ids":[]}`, Status: 400},
			{Name: "overlapping", Do: "PUT /suggestions/batch_apply", As: bob, JSON: fmt.Sprintf(`{"ids":[%d,%d]}`, first[0].ID, many[0].ID), Status: 400,
				Want: `{"message":"Suggestions are not applicable as their lines cannot overlap."}`},
			{Name: "apply", Do: apply(first...), As: bob, Status: 200, Want: `{"applied":true,"appliable":false}`},
			{Name: "the commit", Do: fmt.Sprintf("GET /projects/%d/repository/commits/work", id), Status: 200,
				Want: `{"author_name":"bob","committer_name":"bob","message":"Apply 1 suggestion(s) to 1 file(s)\n\nCo-authored-by: dan <dan@example.org>"}`},
			{Name: "the file", Do: fmt.Sprintf("GET /projects/%d/repository/files/new.txt/raw?ref=work", id), Status: 200, Text: "ONE\nTWO\nthree\nfour\nfive\nsix"},
			{Name: "resolved", Do: "GET " + discussion, Status: 200, Want: `{"notes":[{"resolved":true,"resolved_by":{"username":"bob"},"suggestions":[{"applied":true,"appliable":false}]},{"suggestions":[{"applied":false,"appliable":false}]}]}`},
			{Name: "once", Do: apply(first...), As: bob, Status: 400, Want: `{"message":"A suggestion has already been applied."}`},
			{Name: "outdated", Do: apply(many...), As: bob, Status: 400, Want: `{"message":"A suggestion is not applicable. The lines were changed after this suggestion was made."}`},
			{Name: "settings", Do: fmt.Sprintf("PUT /projects/%d", id), As: alice, Status: 200,
				JSON: `{"suggestion_commit_message":"%{suggestions_count} in %{file_paths} of %{project_path} (%{project_name}) on %{branch_name} by %{username} %{user_full_name}"}`},
			{Name: "several", Do: "PUT /suggestions/batch_apply", As: bob, JSON: fmt.Sprintf(`{"ids":[%d,%d,%d]}`, last[0].ID, win[0].ID, many[2].ID), Status: 200, Want: `[{"applied":true},{"applied":true},{"applied":true}]`},
			{Name: "by the template", Do: fmt.Sprintf("GET /projects/%d/repository/commits/work", id), Status: 200, Want: `{"message":"3 in new.txt, win.txt of alice/code (code) on work by bob bob"}`},
			{Name: "the last line", Do: fmt.Sprintf("GET /projects/%d/repository/files/new.txt/raw?ref=work", id), Status: 200, Text: "ONE\nTWO\nthree\nfive\nSIX"},
			{Name: "line ends", Do: fmt.Sprintf("GET /projects/%d/repository/files/win.txt/raw?ref=work", id), Status: 200, Text: "a\r\nB\r\nC\r\n"},
		})
		// Lines that only moved can still be changed.
		moved, _ := suggested(t, s, alice, at, line(3), "```suggestion\nTHREE\n```")
		commitTo(t, s, bob, id, "work", "new.txt", "zero\nONE\nTWO\nthree\nfive\nSIX", "Add a line")
		s.Table(t, []apptest.Call{
			{Name: "moved", Do: apply(moved...), As: bob, JSON: `{"commit_message":"Custom %{co_authored_by}"}`, Status: 200},
			{Do: fmt.Sprintf("GET /projects/%d/repository/commits/work", id), Status: 200, Want: `{"message":"Custom Co-authored-by: alice <alice@example.org>"}`},
			{Do: fmt.Sprintf("GET /projects/%d/repository/files/new.txt/raw?ref=work", id), Status: 200, Text: "zero\nONE\nTWO\nTHREE\nfive\nSIX"},
		})
		// Editing a note replaces its suggestions, except applied ones.
		var note struct {
			ID    int64
			Notes []struct{ ID int64 }
		}
		edited, thread := suggested(t, s, alice, at, line(1), "```suggestion\n0\n```")
		s.Check(t, apptest.Call{Do: "GET " + at + "/discussions/" + thread, As: alice, Status: 200}).JSON(t, &struct{ Notes any }{&note.Notes})
		change := fmt.Sprintf("PUT %s/notes/%d", at, note.Notes[0].ID)
		s.Table(t, []apptest.Call{
			{Name: "edit", Do: change, As: alice, JSON: `{"body":"` + "```suggestion\\n00\\n```" + `"}`, Status: 200, Want: `{"suggestions":[{"to_content":"00\n"}]}`},
			{Name: "the one before is gone", Do: apply(edited...), As: bob, Status: 404},
			{Name: "protected", Do: fmt.Sprintf("POST /projects/%d/protected_branches", id), As: alice, JSON: `{"name":"work","push_access_level":40}`, Status: 201},
		})
		var now struct{ Suggestions []suggestion }
		s.Check(t, apptest.Call{Do: "GET " + change[4:], As: alice, Status: 200}).JSON(t, &now)
		s.Table(t, []apptest.Call{
			{Name: "on a protected branch", Do: apply(now.Suggestions...), As: bob, Status: 403},
			{Name: "closed", Do: "PUT " + at, As: alice, JSON: `{"state_event":"close"}`, Status: 200},
			{Name: "of a closed merge request", Do: apply(now.Suggestions...), As: alice, Status: 400, Want: `{"message":"A suggestion is not applicable. The merge request is not open."}`},
			{Name: "reopened", Do: "PUT " + at, As: alice, JSON: `{"state_event":"reopen"}`, Status: 200},
			{Name: "hidden", Do: fmt.Sprintf("PUT /projects/%d", id), As: alice, JSON: `{"visibility":"private"}`, Status: 200},
			{Name: "unseen", Do: apply(now.Suggestions...), As: dan, Status: 404},
		})
	})
}
