package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
)

func TestProjectUsers(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		top := group(t, s, alice, "top", `,"visibility":"public"`)
		sub := group(t, s, alice, "sub", fmt.Sprintf(`,"parent_id":%d`, top))
		friends := group(t, s, bob, "friends", `,"visibility":"public"`)
		secret := group(t, s, bob, "secret", "")
		p := newProject(t, s, alice, "p", fmt.Sprintf(`,"namespace_id":%d,"visibility":"public"`, sub))
		at := fmt.Sprintf("/projects/%d", p)
		for _, share := range []string{
			fmt.Sprintf(`POST /projects/%d/share {"group_id":%d,"group_access":30}`, p, friends),
			fmt.Sprintf(`POST /projects/%d/share {"group_id":%d,"group_access":20}`, p, secret),
			fmt.Sprintf(`POST /groups/%d/share {"group_id":%d,"group_access":20}`, top, friends),
		} {
			var method, path, body string
			if _, err := fmt.Sscan(share, &method, &path, &body); err != nil {
				t.Fatal(err)
			}
			s.Check(t, apptest.Call{Do: method + " " + path, As: root, JSON: body, Status: 201})
		}
		s.Table(t, []apptest.Call{
			{Name: "users", Do: "GET " + at + "/users", As: alice, Status: 200, Want: `[{"username":"alice","state":"active"},{"username":"bob"}]`, Not: []string{"access_level", "email"}},
			{Name: "search", Do: "GET " + at + "/users?search=BO", As: alice, Status: 200, Want: `[{"username":"bob"}]`},
			{Name: "skip", Do: fmt.Sprintf("GET %s/users?skip_users=%d", at, bobID), As: alice, Status: 200, Want: `[{"username":"alice"}]`},
			{Name: "groups above", Do: "GET " + at + "/groups", As: alice, Status: 200, Want: fmt.Sprintf(`[{"id":%d,"full_path":"top/sub","full_name":"TOP / SUB"},{"id":%d}]`, sub, top)},
			{Name: "without one", Do: fmt.Sprintf("GET %s/groups?skip_groups[]=%d", at, sub), As: alice, Status: 200, Want: fmt.Sprintf(`[{"id":%d}]`, top)},
			{Name: "with shares, as far as they are seen", Do: "GET " + at + "/groups?with_shared=true", As: alice, Status: 200, Want: `[{"name":"FRIENDS"},{"name":"SUB"},{"name":"TOP"}]`},
			{Name: "and by one who sees all", Do: "GET " + at + "/groups?with_shared=true&shared_min_access_level=20", As: bob, Status: 200, Want: `["<any>","<any>","<any>","<any>"]`},
			{Name: "by level", Do: "GET " + at + "/groups?with_shared=true&shared_min_access_level=30&search=e", As: bob, Status: 200, Want: `[{"name":"FRIENDS"}]`},
			{Name: "anonymous, public ones", Do: "GET " + at + "/groups?with_shared=true", Status: 200, Want: `["<any>","<any>","<any>"]`},
			{Name: "invited", Do: "GET " + at + "/invited_groups", As: bob, Status: 200, Want: `[{"name":"FRIENDS"},{"name":"SECRET"}]`},
			{Name: "invited, anonymous", Do: "GET " + at + "/invited_groups", Status: 200, Want: `[{"name":"FRIENDS"}]`},
			{Name: "invited above", Do: "GET " + at + "/invited_groups?relation[]=inherited", As: bob, Status: 200, Want: `[{"name":"FRIENDS"}]`},
			{Name: "invited here with a level", Do: "GET " + at + "/invited_groups?relation=direct&min_access_level=30", As: bob, Status: 200, Want: `[{"name":"FRIENDS"}]`},
			{Name: "of a group", Do: fmt.Sprintf("GET /groups/%d/invited_groups", top), As: alice, Status: 200, Want: `[{"name":"FRIENDS"}]`},
			{Name: "above a group", Do: fmt.Sprintf("GET /groups/%d/invited_groups?relation=direct", sub), As: alice, Status: 200, Want: `[]`},
			{Name: "group with projects", Do: fmt.Sprintf("GET /groups/%d", sub), As: alice, Status: 200, Want: fmt.Sprintf(`{"projects":[{"id":%d,"permissions":{},"archived":false}],"shared_projects":[]}`, p)},
			{Name: "anonymous", Do: fmt.Sprintf("GET /groups/%d", sub), Status: 200, Want: fmt.Sprintf(`{"projects":[{"id":%d}],"shared_projects":[]}`, p), Not: []string{"permissions"}},
			{Name: "shared ones", Do: fmt.Sprintf("GET /groups/%d", friends), As: bob, Status: 200, Want: fmt.Sprintf(`{"projects":[],"shared_projects":[{"id":%d}]}`, p)},
			{Name: "as a list", Do: fmt.Sprintf("GET /groups/%d/projects/shared", friends), As: bob, Status: 200, Want: fmt.Sprintf(`[{"id":%d}]`, p)},
			{Name: "without", Do: fmt.Sprintf("GET /groups/%d?with_projects=false", sub), As: alice, Status: 200, Not: []string{`"projects"`, "shared_projects"}},
		})
	})
}

func TestProjectForUser(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		s.Table(t, []apptest.Call{
			{Name: "not for oneself", Do: fmt.Sprintf("POST /projects/user/%d", id), As: alice, JSON: `{"path":"p"}`, Status: 403},
			{Name: "made", Do: fmt.Sprintf("POST /projects/user/%d", id), As: root, JSON: `{"name":"Given thing","visibility":"internal"}`, Status: 201,
				Want: fmt.Sprintf(`{"path_with_namespace":"alice/given-thing","creator_id":%d,"visibility":"internal","owner":{"username":"alice"}}`, id)},
			{Name: "own", Do: "DELETE /projects/alice%2Fgiven-thing", As: alice, Status: 202},
			{Name: "no such user", Do: "POST /projects/user/99999", As: root, JSON: `{"path":"p"}`, Status: 404},
			{Name: "no name", Do: fmt.Sprintf("POST /projects/user/%d", id), As: root, JSON: `{}`, Status: 400},
			{Name: "no such storage", Do: "POST /projects", As: root, JSON: `{"path":"s","repository_storage":"nowhere"}`, Status: 400,
				Want: `{"message":{"repository_storage":["is not included in the list"]}}`},
			{Name: "a storage", Do: "POST /projects", As: root, JSON: `{"path":"s","repository_storage":"default"}`, Status: 201, Want: `{"repository_storage":"default"}`},
		})
		g := group(t, s, alice, "g", "")
		p := newProject(t, s, alice, "moving", "")
		s.Table(t, []apptest.Call{
			{Name: "administrators move it", Do: fmt.Sprintf("POST /groups/%d/projects/%d", g, p), As: alice, Status: 403},
			{Name: "by path", Do: fmt.Sprintf("POST /groups/%d/projects/alice%%2Fmoving", g), As: root, Status: 201, Want: `{"full_path":"g"}`},
			{Name: "there", Do: fmt.Sprintf("GET /projects/%d", p), As: alice, Status: 200, Want: `{"path_with_namespace":"g/moving"}`},
		})
	})
}
