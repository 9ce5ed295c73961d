package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// TestEmptyStatistics requests statistics in lists without projects.
func TestEmptyStatistics(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		s.Check(t, apptest.Call{Do: "POST /groups", As: alice, JSON: `{"name":"g","path":"g"}`, Status: 201})
		for _, path := range []string{
			"/projects", fmt.Sprintf("/users/%d/projects", id), fmt.Sprintf("/users/%d/starred_projects", id), fmt.Sprintf("/users/%d/contributed_projects", id),
			"/groups/g/projects",
		} {
			s.Check(t, apptest.Call{Do: "GET " + path + "?statistics=true", As: alice, Status: 200, Want: `[]`})
		}
	})
}

// TestTrailingSlash checks that a slash at the end of a path is ignored, and is not
// in links to other pages.
func TestTrailingSlash(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		s.Check(t, apptest.Call{Do: "POST /projects/", As: alice, JSON: `{"name":"p"}`, Status: 201})
		for i := range 2 {
			s.Check(t, apptest.Call{Do: "POST /projects/alice%2Fp/issues", As: alice, JSON: fmt.Sprintf(`{"title":"%d"}`, i), Status: 201})
		}
		for _, path := range []string{"/projects/alice%2Fp/issues/", "/projects/alice%2Fp/issues.json"} {
			link := s.Check(t, apptest.Call{Do: "GET " + path + "?per_page=1", As: alice, Status: 200}).Header.Get("Link")
			if !strings.Contains(link, "/projects/alice%2Fp/issues?") {
				t.Errorf("%s: Link %s", path, link)
			}
		}
		s.Check(t, apptest.Call{Do: "GET /projects/alice%2Fp//", As: alice, Status: 404})
	})
}

// TestThreadNotes reads the notes of a thread individually.
func TestThreadNotes(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		const at = "/projects/alice%2Fp/issues/1/discussions"
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"name":"p"}`, Status: 201})
		s.Check(t, apptest.Call{Do: "POST /projects/alice%2Fp/issues", As: alice, JSON: `{"title":"i"}`, Status: 201})
		thread := func(body string) (id string, note int64) {
			var made struct {
				ID    string
				Notes []struct{ ID int64 }
			}
			answer := s.Check(t, apptest.Call{Do: "POST " + at, As: alice, JSON: fmt.Sprintf(`{"body":%q}`, body), Status: 201})
			if err := json.Unmarshal(answer.Body, &made); err != nil {
				t.Fatal(err)
			}
			return made.ID, made.Notes[0].ID
		}
		id, note := thread("one")
		_, other := thread("another")
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/" + id + "/notes", As: alice, JSON: `{"body":"two"}`, Status: 201},
			{Do: "GET " + at + "/" + id + "/notes", As: alice, Status: 200, Want: `[{"body":"one"},{"body":"two"}]`},
			{Do: fmt.Sprintf("GET %s/%s/notes/%d", at, id, note), As: alice, Status: 200, Want: `{"body":"one"}`},
			{Name: "of another thread", Do: fmt.Sprintf("GET %s/%s/notes/%d", at, id, other), As: alice, Status: 404},
			{Name: "no thread", Do: "GET " + at + "/" + strings.Repeat("0", 40) + "/notes", As: alice, Status: 404},
			{Name: "private", Do: "GET " + at + "/" + id + "/notes", As: bob, Status: 404},
		})
	})
}

// TestBlockTwice checks the response to blocking a user who is already blocked.
func TestBlockTwice(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "bob")
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("POST /users/%d/block", id), As: apptest.RootToken, Status: 201, Want: `true`},
			{Do: fmt.Sprintf("POST /users/%d/block", id), As: apptest.RootToken, Status: 201, Want: `null`},
		})
	})
}
