package api_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/plan"
	"svc/internal/project"
)

func TestSnippetNotes(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		p, q := newProject(t, s, alice, "p", `,"visibility":"public"`), newProject(t, s, alice, "q", `,"visibility":"public"`)
		id := made(t, s, alice, fmt.Sprintf("POST /projects/%d/snippets", p), `{"title":"t","content":"x","visibility":"public"}`)
		own := made(t, s, alice, "POST /snippets", `{"title":"own","content":"x","visibility":"public"}`)
		at := fmt.Sprintf("/projects/%d/snippets/%d", p, id)
		first := made(t, s, bob, "POST "+at+"/notes", `{"body":"first"}`)
		s.Clock.Move(1e9)
		var thread struct {
			ID    string
			Notes []struct{ ID int64 }
		}
		s.Check(t, apptest.Call{Do: "POST " + at + "/discussions", As: alice, JSON: `{"body":"thread"}`, Status: 201}).JSON(t, &thread)
		note, discussion := fmt.Sprintf("%s/notes/%d", at, first), at+"/discussions/"+thread.ID
		s.Table(t, []apptest.Call{
			{Name: "a note", Do: "GET " + note, Status: 200, Want: fmt.Sprintf(`{"id":%d,"type":null,"body":"first","author":{"username":"bob"},"system":false,"noteable_id":%d,"noteable_type":"Snippet","project_id":%d,
				"resolvable":false,"internal":false,"noteable_iid":null}`, first, id, p), Not: []string{`"resolved"`}},
			{Name: "the newest first", Do: "GET " + at + "/notes", Status: 200, Want: `[{"body":"thread","type":"DiscussionNote","resolvable":false},{"body":"first"}]`},
			{Name: "the oldest first", Do: "GET " + at + "/notes?sort=asc", Status: 200, Want: `[{"body":"first"},{"body":"thread"}]`},
			{Name: "reply", Do: "POST " + discussion + "/notes", As: bob, JSON: `{"body":"reply"}`, Status: 201, Want: `{"type":"DiscussionNote","body":"reply"}`},
			{Name: "discussions", Do: "GET " + at + "/discussions", Status: 200, Want: `[{"individual_note":true,"notes":[{"body":"first"}]},{"individual_note":false,"notes":[{"body":"thread"},{"body":"reply"}]}]`},
			{Name: "a discussion", Do: "GET " + discussion, Status: 200, Want: `{"notes":[{"body":"thread"},{"body":"reply"}]}`},
			{Name: "no discussion", Do: "GET " + at + "/discussions/none", Status: 404},
			{Name: "nothing said", Do: "POST " + at + "/notes", As: bob, JSON: `{"body":" "}`, Status: 400},
			{Name: "nothing is internal here", Do: "POST " + at + "/notes", As: alice, JSON: `{"body":"x","internal":true}`, Status: 403},
			{Name: "nor at a place in a diff", Do: "POST " + at + "/discussions", As: alice, JSON: `{"body":"x","position":{"base_sha":"a","start_sha":"a","head_sha":"a","position_type":"text","new_path":"x","new_line":1}}`, Status: 400},
			{Name: "nor settled", Do: "PUT " + discussion, As: alice, JSON: `{"resolved":true}`, Status: 405},
			{Name: "not even one note", Do: fmt.Sprintf("PUT %s/notes/%d", discussion, thread.Notes[0].ID), As: alice, JSON: `{"resolved":true}`, Status: 403},
			{Name: "change", Do: "PUT " + note, As: bob, JSON: `{"body":"changed"}`, Status: 200, Want: `{"body":"changed"}`},
			{Name: "change in a thread", Do: fmt.Sprintf("PUT %s/notes/%d", discussion, thread.Notes[0].ID), As: alice, JSON: `{"body":"changed too"}`, Status: 200, Want: `{"body":"changed too"}`},
			{Name: "by another project", Do: fmt.Sprintf("GET /projects/%d/snippets/%d/notes", q, id), As: alice, Status: 404},
			{Name: "one of a user", Do: fmt.Sprintf("GET /projects/%d/snippets/%d/notes", p, own), As: alice, Status: 404},
			{Name: "events", Do: fmt.Sprintf("GET /projects/%d/events?action=commented", p), Status: 200, Want: `[{"action_name":"commented on","target_type":"DiscussionNote","target_title":"t","note":{"body":"reply","noteable_type":"Snippet"}},
				{"target_type":"DiscussionNote","note":{"body":"changed too"}},{"target_type":"Note","note":{"body":"changed"}}]`},
			{Name: "changed since", Do: "DELETE " + note, As: bob, Header: map[string]string{"If-Unmodified-Since": "Mon, 01 Jan 2001 00:00:00 GMT"}, Status: 412},
			{Name: "delete", Do: "DELETE " + note, As: bob, Status: 204},
			{Name: "gone", Do: "GET " + note, Status: 404},
			{Name: "with its event", Do: fmt.Sprintf("GET /projects/%d/events?action=commented", p), Status: 200, Want: `[{"note":{"body":"reply"}},{"note":{"body":"changed too"}}]`, Not: []string{`"changed"`}},
			{Name: "archive", Do: fmt.Sprintf("POST /projects/%d/archive", p), As: alice, Status: 201},
			{Name: "nothing more is said", Do: "POST " + at + "/notes", As: alice, JSON: `{"body":"x"}`, Status: 403},
			{Name: "nor changed", Do: fmt.Sprintf("PUT %s/notes/%d", at, thread.Notes[0].ID), As: alice, JSON: `{"body":"x"}`, Status: 403},
			{Name: "unarchive", Do: fmt.Sprintf("POST /projects/%d/unarchive", p), As: alice, Status: 201},
			{Name: "delete the snippet", Do: "DELETE " + at, As: alice, Status: 204},
			{Name: "with what was said", Do: fmt.Sprintf("GET /users/%d/events?action=commented", aliceID), As: alice, Status: 200, Want: `[]`},
		})
		var left int
		if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM notes`).Scan(&left); err != nil || left > 0 {
			t.Errorf("%d notes are left, %v", left, err)
		}
	})
}

// TestSnippetNoteRoles comments as every kind of caller on snippets of each
// visibility in a public project, and checks which comments are in the events that
// each caller can read.
func TestSnippetNoteRoles(t *testing.T) {
	t.Parallel()
	calls := []struct {
		do, json string // {note} is a note of the author, {discussion} a thread
		need     project.Level
		ok       int
	}{
		{"GET {at}/notes", "", 0, 200},
		{"GET {at}/notes/{note}", "", 0, 200},
		{"GET {at}/discussions", "", 0, 200},
		{"GET {at}/discussions/{talk}", "", 0, 200},
		{"POST {at}/notes", `{"body":"x"}`, 0, 201},
		{"POST {at}/discussions", `{"body":"x"}`, 0, 201},
		{"POST {at}/discussions/{talk}/notes", `{"body":"x"}`, 0, 201},
		{"PUT {at}/notes/{note}", `{"body":"SECRET-{visibility}"}`, project.Maintainer, 200},
		{"PUT {at}/discussions/{talk}/notes/{note}", `{"body":"SECRET-{visibility}"}`, project.Maintainer, 200},
		{"DELETE {at}/notes/{note}", "", project.Maintainer, 204},
		{"DELETE {at}/discussions/{talk}/notes/{note}", "", project.Maintainer, 204},
	}
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		authorID, author := s.User(t, "author")
		p := newProject(t, s, root, "p", `,"visibility":"public"`)
		enlist(t, s, p, authorID, project.Reporter)
		levels := map[string]project.Level{"nobody": 0, "outsider": 0, "external": 0, "guest": project.Guest, "developer": project.Developer, "maintainer": project.Maintainer}
		tokens := map[string]string{}
		for name, level := range levels {
			if name == "nobody" {
				continue
			}
			id, token := s.User(t, name)
			tokens[name] = token
			if level > 0 {
				enlist(t, s, p, id, level)
			}
			if name == "external" {
				s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /users/%d", id), As: root, JSON: `{"external":true}`, Status: 200})
			}
		}
		sees := func(name, visibility string) bool {
			return visibility == "public" || levels[name] > 0 || visibility == "internal" && name == "outsider"
		}
		heard := func(visibilities map[string]string) {
			t.Helper()
			for name := range levels {
				for _, list := range []string{fmt.Sprintf("/projects/%d/events", p), fmt.Sprintf("/users/%d/events", authorID), "/events?scope=all"} {
					member := list == "/events?scope=all"
					if name == "nobody" && !strings.HasPrefix(list, "/projects") {
						continue
					}
					got := s.Send(t, apptest.Call{Do: "GET " + list + map[bool]string{true: "&", false: "?"}[member] + "per_page=100", As: tokens[name]})
					for was, now := range visibilities {
						want := sees(name, now) && (!member || levels[name] > 0)
						if got.Status != 200 || strings.Contains(string(got.Body), "SECRET-"+was) != want {
							t.Errorf("%s as %s: status %d, tells of a snippet that was %s and is %s: %t", list, name, got.Status, was, now, !want)
						}
					}
				}
			}
		}
		at, secret, ids := map[string]string{}, map[string]string{}, map[string]int64{}
		for _, visibility := range []string{"public", "internal", "private"} {
			id := made(t, s, author, fmt.Sprintf("POST /projects/%d/snippets", p), fmt.Sprintf(`{"title":"t","content":"x","visibility":%q}`, visibility))
			ids[visibility], at[visibility] = id, fmt.Sprintf("/projects/%d/snippets/%d", p, id)
			var discussion struct {
				ID    string
				Notes []struct{ ID int64 }
			}
			s.Check(t, apptest.Call{Do: "POST " + at[visibility] + "/discussions", As: author, JSON: fmt.Sprintf(`{"body":"SECRET-%s"}`, visibility), Status: 201}).JSON(t, &discussion)
			names := strings.NewReplacer("{at}", at[visibility], "{note}", fmt.Sprint(discussion.Notes[0].ID), "{talk}", discussion.ID, "{visibility}", visibility)
			secret[visibility] = names.Replace("{at}/notes/{note}")
			for name, level := range levels {
				for _, c := range calls {
					if c.ok == 204 && level >= c.need {
						continue // last, because it can only be done once
					}
					want := c.ok
					switch {
					case name == "nobody" && !strings.HasPrefix(c.do, "GET"):
						want = 401
					case !sees(name, visibility):
						want = 404
					case level < c.need:
						want = 403
					}
					if got := s.Send(t, apptest.Call{Do: names.Replace(c.do), JSON: names.Replace(c.json), As: tokens[name]}); got.Status != want {
						t.Errorf("%s as %s, %s: status %d, want %d: %s", c.do, name, visibility, got.Status, want, got.Body)
					}
				}
			}
		}
		heard(map[string]string{"public": "public", "internal": "internal", "private": "private"})
		by := actor.Actor{ID: authorID}
		on, err := s.Snippets.OnSnippet(t.Context(), by, project.RefTo(p), ids["public"])
		if err != nil {
			t.Fatal(err)
		}
		s.Table(t, []apptest.Call{
			{Name: "hide one", Do: "PUT " + at["public"], As: author, JSON: `{"visibility":"private"}`, Status: 200},
			{Name: "show one", Do: "PUT " + at["private"], As: author, JSON: `{"visibility":"public"}`, Status: 200},
		})
		// Earlier notes are hidden too.
		if _, err := s.Plan.CreateNote(t.Context(), by, on, plan.NewNote{Body: "SECRET-public, late"}); err != nil {
			t.Fatal(err)
		}
		heard(map[string]string{"public": "private", "internal": "internal", "private": "public"})
		s.Table(t, []apptest.Call{
			{Name: "delete another's", Do: "DELETE " + secret["internal"], As: tokens["maintainer"], Status: 204},
			{Name: "with the event", Do: fmt.Sprintf("GET /projects/%d/events?per_page=100", p), As: tokens["maintainer"], Status: 200, Not: []string{"SECRET-internal"}},
		})
	})
}
