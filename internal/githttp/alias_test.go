package githttp_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

// TestProjectAliases clones a project by an alias over HTTP, with and without access
// to it.
func TestProjectAliases(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		var p struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"path":"p"}`, Status: 201}).JSON(t, &p)
		s.Repository(t, p.ID, gittest.Commit{Message: "first", Changes: []gittest.Change{{Path: "a.txt", Content: "one\n"}}})
		const root = apptest.RootToken
		s.Table(t, []apptest.Call{
			{Name: "none", Do: "GET /project_aliases", As: root, Status: 200, Want: `[]`},
			{Name: "not for others", Do: "POST /project_aliases", As: alice, JSON: `{"project_id":"alice/p","name":"tool"}`, Status: 403},
			{Name: "no project", Do: "POST /project_aliases", As: root, JSON: `{"project_id":"alice/none","name":"tool"}`, Status: 404},
			{Name: "a path", Do: "POST /project_aliases", As: root, JSON: `{"project_id":"alice/p","name":"a/b"}`, Status: 400},
			{Name: "a number", Do: "POST /project_aliases", As: root, JSON: `{"project_id":"alice/p","name":"7"}`, Status: 400},
			{Name: "no name", Do: "POST /project_aliases", As: root, JSON: `{"project_id":"alice/p"}`, Status: 400, Want: `{"error":"name is missing"}`},
			{Name: "made", Do: "POST /project_aliases", As: root, JSON: `{"project_id":"alice/p","name":"tool"}`, Status: 201, Want: fmt.Sprintf(`{"id":1,"project_id":%d,"name":"tool"}`, p.ID)},
			{Name: "taken", Do: "POST /project_aliases", As: root, JSON: fmt.Sprintf(`{"project_id":%d,"name":"tool"}`, p.ID), Status: 400, Want: `{"message":{"name":["has already been taken"]}}`},
			{Name: "list", Do: "GET /project_aliases", As: root, Status: 200, Want: `[{"name":"tool"}]`},
			{Name: "one", Do: "GET /project_aliases/tool", As: root, Status: 200, Want: `{"name":"tool"}`},
			{Name: "not one", Do: "GET /project_aliases/none", As: root, Status: 404},
			{Name: "audit event", Do: fmt.Sprintf("GET /projects/%d/audit_events?per_page=1", p.ID), As: alice, Status: 200, Want: `[{"event_name":"project_alias_created","details":{"target_details":"tool"}}]`},
		})
		for _, c := range []struct {
			name, path, token string
			ok                bool
		}{
			{"owner", "tool", alice, true},
			{"outsider", "tool", bob, false},
			{"anonymous", "tool", "", false},
			{"another name", "none", alice, false},
			{"its number", fmt.Sprint(p.ID), alice, false},
		} {
			if err := clone(t, s, c.path, c.token, 2); (err == nil) != c.ok {
				t.Errorf("%s clones %s: %v", c.name, c.path, err)
			}
		}
		s.Table(t, []apptest.Call{
			{Name: "deleted", Do: "DELETE /project_aliases/tool", As: root, Status: 204},
			{Name: "gone", Do: "DELETE /project_aliases/tool", As: root, Status: 404},
		})
		if clone(t, s, "tool", alice, 2) == nil {
			t.Error("the project can be cloned by a deleted alias")
		}
	})
}
