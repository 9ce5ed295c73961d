package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
)

// TestExternalUserCreatesNothingOfTheirOwn checks that an external user can only
// create objects in groups where they have a role.
func TestExternalUserCreatesNothingOfTheirOwn(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id, eve := s.User(t, "eve")
		source := newProject(t, s, alice, "open", `,"visibility":"public"`)
		g := group(t, s, alice, "g", "")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/members", g), As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":40}`, id), Status: 201})
		moved := newProject(t, s, alice, "moved", fmt.Sprintf(`,"namespace_id":%d`, g))
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/members", moved), As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":50}`, id), Status: 201})
		refused := `{"message":"403 Forbidden - External users cannot have projects in their personal namespace."}`
		s.Table(t, []apptest.Call{
			{Name: "before", Do: "GET /user", As: eve, Status: 200, Want: `{"external":false,"can_create_project":true,"projects_limit":100000,"can_create_group":true}`},
			{Name: "made external", Do: fmt.Sprintf("PUT /users/%d", id), As: root, JSON: `{"external":true}`, Status: 200,
				Want: `{"external":true,"can_create_project":false,"projects_limit":100000,"can_create_group":true}`},
			{Name: "self", Do: "GET /user", As: eve, Status: 200, Want: `{"external":true,"can_create_project":false,"projects_limit":100000,"can_create_group":true}`},
			{Name: "project", Do: "POST /projects", As: eve, JSON: `{"path":"mine"}`, Status: 403, Want: refused},
			{Name: "fork", Do: fmt.Sprintf("POST /projects/%d/fork", source), As: eve, Status: 403, Want: refused},
			{Name: "transfer", Do: fmt.Sprintf("PUT /projects/%d/transfer", moved), As: eve, JSON: `{"namespace":"eve"}`, Status: 403, Want: refused},
			{Name: "group", Do: "POST /groups", As: eve, JSON: `{"name":"H","path":"h"}`, Status: 403},
			{Name: "project in a group", Do: "POST /projects", As: eve, JSON: fmt.Sprintf(`{"path":"ours","namespace_id":%d}`, g), Status: 201},
			{Name: "made internal again", Do: fmt.Sprintf("PUT /users/%d", id), As: root, JSON: `{"external":false}`, Status: 200,
				Want: `{"external":false,"can_create_project":true,"projects_limit":100000,"can_create_group":true}`},
			{Name: "project again", Do: "POST /projects", As: eve, JSON: `{"path":"mine"}`, Status: 201},
		})
	})
}
