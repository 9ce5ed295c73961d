package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

func TestCommitDiscussions(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		_, carol := s.User(t, "carol")
		id, r := codeProject(t, s, alice, "code", gittest.Commit{Changes: file("a", "one\ntwo\n")})
		r.Commit(gittest.Commit{Changes: file("a", "one\nthree\n")})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", id), As: alice, JSON: `{"visibility":"public"}`, Status: 200})
		at := fmt.Sprintf("/projects/%d/repository/commits/main", id)
		position := `"position":{"base_sha":"x","start_sha":"x","head_sha":"x","position_type":"text",`
		type thread struct {
			ID    string `json:"id"`
			Notes []struct {
				ID int64 `json:"id"`
			} `json:"notes"`
		}
		begin := func(body, want string) string {
			var d thread
			s.Check(t, apptest.Call{Do: "POST " + at + "/discussions", As: bob, JSON: body, Status: 201, Want: want}).JSON(t, &d)
			return at + "/discussions/" + d.ID
		}
		one := begin(`{"body":"why?"}`, `{"individual_note":false,"notes":[{"type":"DiscussionNote","body":"why?","author":{"username":"bob"},"noteable_type":"Commit","noteable_id":null,
			"commit_id":"<any>","resolvable":false,"project_id":"<any>"}]}`)
		begin(`{"body":"here",`+position+`"new_path":"a","old_path":"a","new_line":2}}`,
			`{"notes":[{"type":"DiffNote","position":{"new_path":"a","old_path":"a","new_line":2,"old_line":null,"base_sha":"<any>","position_type":"text"}}]}`)
		begin(`{"body":"gone",`+position+`"new_path":"a","old_path":"a","old_line":2}}`, `{"notes":[{"type":"DiffNote","position":{"new_line":null,"old_line":2}}]}`)
		s.Table(t, []apptest.Call{
			{Name: "not a changed line", Do: "POST " + at + "/discussions", As: bob, JSON: `{"body":"x",` + position + `"new_path":"a","new_line":1}}`, Status: 400},
			{Name: "no line", Do: "POST " + at + "/discussions", As: bob, JSON: `{"body":"x",` + position + `"new_path":"a"}}`, Status: 400},
			{Name: "blank", Do: "POST " + at + "/discussions", As: bob, JSON: `{"body":" "}`, Status: 400},
			{Name: "anonymous", Do: "POST " + at + "/discussions", JSON: `{"body":"x"}`, Status: 401},
			{Name: "no commit", Do: "POST " + at + "x/discussions", As: bob, JSON: `{"body":"x"}`, Status: 404},
			{Do: "POST " + at + "/comments", As: bob, JSON: `{"note":"single"}`, Status: 201},
			{Name: "reply", Do: "POST " + one + "/notes", As: carol, JSON: `{"body":"because"}`, Status: 201, Want: `{"type":"DiscussionNote","body":"because","author":{"username":"carol"}}`},
			{Name: "list", Do: "GET " + at + "/discussions", Status: 200,
				Want: `[{"notes":[{"body":"why?"},{"body":"because"}]},{"notes":[{"body":"here"}]},{"notes":[{"body":"gone"}]},{"individual_note":true,"notes":[{"type":null,"body":"single"}]}]`},
			{Name: "a page", Do: "GET " + at + "/discussions?per_page=1&page=2", Status: 200, Want: `[{"notes":[{"body":"here"}]}]`, WantHeader: map[string]string{"X-Total": "4"}},
			{Name: "comments", Do: "GET " + at + "/comments", Status: 200, Want: `[{"note":"why?"},{"note":"here","line":2,"line_type":"new"},{"note":"gone","line_type":"old"},{"note":"single"},{"note":"because"}]`},
			{Name: "of another commit", Do: "GET " + at + "~1/discussions", Status: 200, Want: `[]`},
			{Name: "no discussion", Do: "POST " + at + "/discussions/none/notes", As: bob, JSON: `{"body":"x"}`, Status: 404},
		})
		var d thread
		s.Check(t, apptest.Call{Do: "GET " + one, As: carol, Status: 200}).JSON(t, &d)
		first, second := fmt.Sprintf("%s/notes/%d", one, d.Notes[0].ID), fmt.Sprintf("%s/notes/%d", one, d.Notes[1].ID)
		s.Table(t, []apptest.Call{
			{Name: "a note", Do: "GET " + second, Status: 200, Want: `{"body":"because"}`},
			{Name: "notes", Do: "GET " + one + "/notes", Status: 200, Want: `[{"body":"why?"},{"body":"because"}]`},
			{Name: "of another thread", Do: fmt.Sprintf("GET %s/discussions/none/notes/%d", at, d.Notes[0].ID), Status: 404},
			{Name: "edit", Do: "PUT " + second, As: carol, JSON: `{"body":"changed"}`, Status: 200, Want: `{"body":"changed"}`},
			{Name: "edit by another", Do: "PUT " + first, As: carol, JSON: `{"body":"changed"}`, Status: 403},
			{Name: "edit by a Maintainer", Do: "PUT " + first, As: alice, JSON: `{"body":"asked"}`, Status: 200, Want: `{"body":"asked","author":{"username":"bob"}}`},
			{Name: "delete by another", Do: "DELETE " + first, As: carol, Status: 403},
			{Name: "delete", Do: "DELETE " + first, As: bob, Status: 204},
			{Name: "the rest", Do: "GET " + one, Status: 200, Want: `{"individual_note":false,"notes":[{"body":"changed"}]}`},
			{Name: "delete by a Maintainer", Do: "DELETE " + second, As: alice, Status: 204},
			{Name: "empty", Do: "GET " + one, Status: 404},
			{Do: fmt.Sprintf("POST /projects/%d/archive", id), As: alice, Status: 201},
			{Name: "archived", Do: "POST " + at + "/discussions", As: alice, JSON: `{"body":"x"}`, Status: 403},
		})
	})
}
