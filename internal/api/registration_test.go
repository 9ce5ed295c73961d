package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
)

// TestRunnersToken reads registration tokens of projects and groups, and registers
// runners with them.
func TestRunnersToken(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		id := newProject(t, s, alice, "code", "")
		var group struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /groups", As: alice, JSON: `{"name":"team","path":"team"}`, Status: 201}).JSON(t, &group)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/members", id), As: alice, JSON: `{"username":"bob","access_level":30}`, Status: 201})
		s.Check(t, apptest.Call{Do: "POST /groups/team/members", As: alice, JSON: `{"username":"bob","access_level":40}`, Status: 201})
		shown := func(path, as string) string {
			t.Helper()
			var got struct {
				Token string `json:"runners_token"`
			}
			s.Check(t, apptest.Call{Do: "GET " + path, As: as, Status: 200}).JSON(t, &got)
			return got.Token
		}
		for _, place := range []struct{ path, kind string }{
			{fmt.Sprintf("/projects/%d", id), "project_type"}, {"/groups/team", "group_type"}, {"/groups/team?with_projects=false", "group_type"},
		} {
			token := shown(place.path, alice)
			if token == "" || token != shown(place.path, alice) || token != shown(place.path, root) {
				t.Fatalf("%s: the token is %q, and another one the next time", place.path, token)
			}
			if got := shown(place.path, bob); got != "" {
				t.Errorf("%s: somebody who may not register runners is told %q", place.path, got)
			}
			var made struct{ ID int64 }
			s.Check(t, apptest.Call{Do: "POST /runners", JSON: fmt.Sprintf(`{"token":%q,"description":"r"}`, token), Status: 201}).JSON(t, &made)
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /runners/%d", made.ID), As: root, Status: 200, Want: fmt.Sprintf(`{"runner_type":%q}`, place.kind)})
			s.Check(t, apptest.Call{Name: "no machine yet", Do: fmt.Sprintf("GET /runners/%d/managers", made.ID), As: root, Status: 200, Want: `[]`})
		}
		at := fmt.Sprintf("/projects/%d", id)
		old := shown(at, alice)
		var reset struct{ Token string }
		s.Check(t, apptest.Call{Do: "POST " + at + "/runners/reset_registration_token", As: alice, Status: 201}).JSON(t, &reset)
		if got := shown(at, alice); got != reset.Token || got == old {
			t.Errorf("after the reset to %q it is %q", reset.Token, got)
		}
		s.Check(t, apptest.Call{Name: "the old one", Do: "POST /runners", JSON: fmt.Sprintf(`{"token":%q}`, old), Status: 403})
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: root, JSON: `{"allow_runner_registration_token":false}`, Status: 200})
		if got := shown(at, alice); got != "" {
			t.Errorf("though such tokens are not allowed, it shows %q", got)
		}
	})
}

// TestRunnersTokenOfJob checks that a job token does not reveal the registration
// token.
func TestRunnersTokenOfJob(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}")
		b.pipeline(b.project)
		j := b.run()
		var got map[string]any
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d", b.project), Header: map[string]string{"JOB-TOKEN": j.Token}, Status: 200}).JSON(t, &got)
		if _, shown := got["runners_token"]; shown {
			t.Error("a job is told the registration token")
		}
	})
}
