package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

func TestGroupLife(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		top := group(t, s, alice, "top", `,"visibility":"public","description":"All"`)
		sub := made(t, s, alice, "POST /groups", fmt.Sprintf(`{"name":"Sub","path":"sub","parent_id":%d}`, top))
		p := newProject(t, s, alice, "p", fmt.Sprintf(`,"namespace_id":%d,"visibility":"public"`, sub))
		at := fmt.Sprintf("/groups/%d", top)
		s.Table(t, []apptest.Call{
			{Name: "one", Do: "GET " + at, Status: 200, Want: `{"name":"TOP","path":"top","full_path":"top","full_name":"TOP","parent_id":null,"visibility":"public",
				"description":"All","project_creation_level":"developer","subgroup_creation_level":"maintainer","request_access_enabled":true,"shared_with_groups":[]}`},
			{Name: "below", Do: "GET /groups/top%2Fsub", Status: 200, Want: fmt.Sprintf(`{"id":%d,"full_path":"top/sub","full_name":"TOP / Sub","parent_id":%d,"visibility":"public"}`, sub, top)},
			{Name: "a user is no group", Do: "GET /groups/alice", As: alice, Status: 404, Want: `{"message":"404 Group Not Found"}`},
			{Name: "the name of a user", Do: "POST /groups", As: bob, JSON: `{"name":"x","path":"Alice"}`, Status: 400, Want: `{"message":{"path":["has already been taken"]}}`},
			{Name: "a word of URLs", Do: "POST /groups", As: bob, JSON: `{"name":"x","path":"api"}`, Status: 400},
			{Name: "digits alone", Do: "POST /groups", As: bob, JSON: `{"name":"x","path":"123"}`, Status: 400},
			{Name: "without a path", Do: "POST /groups", As: bob, JSON: `{"name":"x"}`, Status: 400, Want: `{"error":"path is missing"}`},
			{Name: "below a group of others", Do: "POST /groups", As: bob, JSON: fmt.Sprintf(`{"name":"x","path":"x","parent_id":%d}`, top), Status: 403},
			{Name: "subgroups", Do: "GET " + at + "/subgroups", Status: 200, Want: `[{"full_path":"top/sub"}]`},
			{Name: "descendants", Do: "GET " + at + "/descendant_groups", Status: 200, Want: `[{"full_path":"top/sub"}]`},
			{Name: "projects", Do: "GET " + at + "/projects", Status: 200, Want: `[]`},
			{Name: "projects below", Do: "GET " + at + "/projects?include_subgroups=true", Status: 200, Want: `[{"path_with_namespace":"top/sub/p"}]`},
			{Name: "change", Do: "PUT " + at, As: alice, JSON: `{"description":"","project_creation_level":"maintainer","default_branch":"trunk","share_with_group_lock":true}`, Status: 200,
				Want: `{"description":"","project_creation_level":"maintainer","default_branch":"trunk","share_with_group_lock":true}`},
			{Name: "change by another", Do: "PUT " + at, As: bob, JSON: `{"description":"x"}`, Status: 403},
			{Name: "less visible than what is in it", Do: "PUT " + at, As: alice, JSON: `{"visibility":"private"}`, Status: 400},
			{Name: "rename", Do: "PUT " + at, As: alice, JSON: `{"path":"summit","name":"Summit"}`, Status: 200, Want: `{"full_path":"summit","full_name":"Summit"}`},
			{Name: "what is in it has moved", Do: fmt.Sprintf("GET /projects/%d", p), Status: 200, Want: `{"path_with_namespace":"summit/sub/p","name_with_namespace":"Summit / Sub / p"}`},
			{Name: "an old path leads on", Do: "GET /projects/top%2Fsub%2Fp?statistics=true", Status: 301,
				WantHeader: map[string]string{"Location": fmt.Sprintf("%s/api/v4/projects/%d?statistics=true", s.URL, p)}},
			{Name: "below a resource as well", Do: "GET /projects/top%2Fsub%2Fp/starrers", Status: 301,
				WantHeader: map[string]string{"Location": fmt.Sprintf("%s/api/v4/projects/%d/starrers", s.URL, p)}},
			{Name: "a group too", Do: "GET /groups/top%2Fsub", Status: 301, WantHeader: map[string]string{"Location": fmt.Sprintf("%s/api/v4/groups/%d", s.URL, sub)}},
			{Name: "but no write", Do: "PUT /projects/top%2Fsub%2Fp", As: alice, JSON: `{"description":"x"}`, Status: 404,
				Want: `{"message":"404 Project Not Found - Project has moved to summit/sub/p"}`},
			{Name: "a new thing at the old path", Do: "POST /groups", As: bob, JSON: `{"name":"Top","path":"top","visibility":"public"}`, Status: 201},
			{Name: "wins", Do: "GET /groups/top", Status: 200, Want: `{"name":"Top"}`},
			{Name: "its owner alone can not be deleted", Do: fmt.Sprintf("DELETE /users/%d", aliceID), As: root, Status: 409, Want: `{"message":"User cannot be removed."}`},
			{Name: "delete by another", Do: "DELETE " + at, As: bob, Status: 403},
			{Name: "at once", Do: "PUT /application/settings?deletion_adjourned_period=0", As: root, Status: 200},
			{Name: "delete", Do: "DELETE " + at, As: alice, Status: 202},
			{Name: "gone at once", Do: "GET " + at, As: root, Status: 404},
			{Name: "with all in it", Do: fmt.Sprintf("GET /projects/%d", p), As: root, Status: 404},
			{Name: "the path is free", Do: "POST /groups", As: bob, JSON: `{"name":"Summit","path":"summit"}`, Status: 201},
		})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"namespaces WHERE id IN (%d, %d)", "projects WHERE namespace_id IN (%d, %d)", "namespace_tree WHERE descendant_id IN (%d, %d)", "members WHERE namespace_id IN (%d, %d)"} {
			var n int
			if err := s.DB.QueryRowContext(t.Context(), "SELECT count(*) FROM "+fmt.Sprintf(table, top, sub)).Scan(&n); err != nil || n != 0 {
				t.Errorf("%s: %d rows are left, %v", table, n, err)
			}
		}
	})
}

// TestMovedIsHidden checks that the old path of a private project does not reveal
// that it exists.
func TestMovedIsHidden(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		id := newProject(t, s, alice, "p", "")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", id), As: alice, JSON: `{"path":"q"}`, Status: 200, Want: `{"path_with_namespace":"alice/q"}`})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /users/%d", aliceID), As: root, JSON: `{"username":"alicia"}`, Status: 200})
		to := map[string]string{"Location": fmt.Sprintf("%s/api/v4/projects/%d", s.URL, id)}
		s.Table(t, []apptest.Call{
			{Do: "GET /projects/alice%2Fp", As: alice, Status: 301, WantHeader: to},
			{Do: "HEAD /projects/alice%2Fp", As: alice, Status: 301, WantHeader: to},
			{Name: "moved with its owner", Do: "GET /projects/alice%2Fq", As: alice, Status: 301, WantHeader: to},
			{Do: "GET /projects/alicia%2Fq", As: alice, Status: 200, Want: `{"path_with_namespace":"alicia/q"}`},
			{Do: "GET /projects/alice%2Fp", As: bob, Status: 404, WantHeader: map[string]string{"Location": "-"}, Want: `{"message":"404 Project Not Found"}`},
			{Do: "DELETE /projects/alice%2Fp", As: bob, Status: 404, Want: `{"message":"404 Project Not Found"}`},
			{Name: "not in plain view", Do: "GET /projects/alice/p", As: alice, Status: 404},
		})
	})
}

func TestTransfer(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		a := group(t, s, alice, "a", "")
		b := made(t, s, alice, "POST /groups", fmt.Sprintf(`{"name":"B","path":"b","parent_id":%d}`, a))
		c := group(t, s, alice, "c", "")
		other := group(t, s, bob, "other", `,"visibility":"public"`)
		p := newProject(t, s, alice, "p", fmt.Sprintf(`,"namespace_id":%d`, b))
		s.Table(t, []apptest.Call{
			{Name: "into itself", Do: fmt.Sprintf("POST /groups/%d/transfer", a), As: alice, JSON: fmt.Sprintf(`{"group_id":%d}`, b), Status: 400},
			{Name: "where it is", Do: fmt.Sprintf("POST /groups/%d/transfer", b), As: alice, JSON: fmt.Sprintf(`{"group_id":%d}`, a), Status: 400},
			{Name: "into a group of others", Do: fmt.Sprintf("POST /groups/%d/transfer", b), As: alice, JSON: fmt.Sprintf(`{"group_id":%d}`, other), Status: 403},
			{Name: "below another", Do: fmt.Sprintf("POST /groups/%d/transfer", b), As: alice, JSON: fmt.Sprintf(`{"group_id":%d}`, c), Status: 201, Want: `{"full_path":"c/b","full_name":"C / B"}`},
			{Name: "its project follows", Do: fmt.Sprintf("GET /projects/%d", p), As: alice, Status: 200, Want: `{"path_with_namespace":"c/b/p"}`},
			{Name: "no longer below the first", Do: fmt.Sprintf("GET /groups/%d/descendant_groups", a), As: alice, Status: 200, Want: `[]`},
			{Name: "but below the second", Do: fmt.Sprintf("GET /groups/%d/projects?include_subgroups=true", c), As: alice, Status: 200, Want: `[{"path":"p"}]`},
			{Name: "to the top", Do: fmt.Sprintf("POST /groups/%d/transfer", b), As: alice, Status: 201, Want: `{"full_path":"b","parent_id":null}`},
			{Name: "a project", Do: fmt.Sprintf("PUT /projects/%d/transfer", p), As: alice, JSON: fmt.Sprintf(`{"namespace":%d}`, a), Status: 200, Want: `{"path_with_namespace":"a/p","namespace":{"full_path":"a"}}`},
			{Name: "a project by path", Do: fmt.Sprintf("PUT /projects/%d/transfer", p), As: alice, JSON: `{"namespace":"alice"}`, Status: 200,
				Want: `{"path_with_namespace":"alice/p","permissions":{"project_access":{"access_level":50}}}`},
			{Name: "its owner is a member", Do: fmt.Sprintf("GET /projects/%d/members", p), As: alice, Status: 200, Want: `[{"username":"alice","access_level":50}]`},
			{Name: "away", Do: fmt.Sprintf("PUT /projects/%d/transfer", p), As: alice, JSON: fmt.Sprintf(`{"namespace":%d}`, a), Status: 200},
			{Name: "and home, a member already", Do: fmt.Sprintf("PUT /projects/%d/transfer", p), As: alice, JSON: `{"namespace":"alice"}`, Status: 200},
			{Name: "a project to where it is", Do: fmt.Sprintf("PUT /projects/%d/transfer", p), As: alice, JSON: `{"namespace":"alice"}`, Status: 400},
			{Name: "a project to others", Do: fmt.Sprintf("PUT /projects/%d/transfer", p), As: alice, JSON: `{"namespace":"other"}`, Status: 403},
			{Name: "a project to a user", Do: fmt.Sprintf("PUT /projects/%d/transfer", p), As: alice, JSON: `{"namespace":"bob"}`, Status: 404},
			{Name: "every old path", Do: "GET /projects/c%2Fb%2Fp", As: alice, Status: 301},
			{Name: "archive", Do: fmt.Sprintf("POST /projects/%d/archive", p), As: alice, Status: 201, Want: `{"archived":true}`},
			{Name: "archived is listed as such", Do: "GET /projects?archived=true", As: alice, Status: 200, Want: `[{"path":"p"}]`},
			{Name: "and not as other", Do: "GET /projects?archived=false", As: alice, Status: 200, Want: `[]`},
			{Name: "unarchive", Do: fmt.Sprintf("POST /projects/%d/unarchive", p), As: alice, Status: 201, Want: `{"archived":false}`},
		})
	})
}

func TestListProjects(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		g := group(t, s, alice, "tools", `,"visibility":"public"`)
		var ids []int64
		for i, visibility := range []string{"private", "internal", "public", "public", "public"} {
			ids = append(ids, newProject(t, s, alice, fmt.Sprintf("p%d", i), fmt.Sprintf(`,"namespace_id":%d,"visibility":"%s"`, g, visibility)))
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", ids[3]), As: alice, JSON: `{"topics":["Forge"],"merge_requests_access_level":"disabled","name":"Something 50% else"}`, Status: 200})
		s.Table(t, []apptest.Call{
			{Name: "anonymous", Do: "GET /projects", Status: 200, Want: `[{"path":"p4"},{"path":"p3"},{"path":"p2"}]`, Not: []string{"permissions"}, WantHeader: map[string]string{"X-Total": "3"}},
			{Name: "a stranger", Do: "GET /projects?order_by=id&sort=asc", As: bob, Status: 200, Want: `[{"path":"p1","permissions":{"project_access":null,"group_access":null}},{"path":"p2"},{"path":"p3"},{"path":"p4"}]`},
			{Name: "the owner", Do: "GET /projects?order_by=id&sort=asc&simple=true", As: alice, Status: 200, Want: `[{"path":"p0"},{"path":"p1"},{"path":"p2"},{"path":"p3"},{"path":"p4"}]`, Not: []string{"permissions"}},
			{Name: "of a member", Do: "GET /projects?membership=true", As: bob, Status: 200, Want: `[]`},
			{Name: "as Renovate asks", Do: "GET /projects?membership=true&per_page=100&with_merge_requests_enabled=true&min_access_level=30&archived=false", As: alice, Status: 200,
				Want: `[{"path":"p4"},{"path":"p2"},{"path":"p1"},{"path":"p0"}]`},
			{Name: "owned", Do: "GET /projects?owned=true&visibility=private", As: alice, Status: 200, Want: `[{"path":"p0","permissions":{"project_access":null,"group_access":{"access_level":50}}}]`},
			{Name: "topic", Do: "GET /projects?topic=forge", Status: 200, Want: `[{"path":"p3"}]`},
			{Name: "too many topics", Do: "GET /projects?topic=" + strings.Repeat("a,", 10) + "a", Status: 400, Want: `{"error":"topic must contain at most 10 items"}`},
			{Name: "search", Do: "GET /projects?search=SOMETHING", Status: 200, Want: `[{"path":"p3"}]`},
			{Name: "search for a sign", Do: "GET /projects?search=" + url.QueryEscape("50% e"), Status: 200, Want: `[{"path":"p3"}]`},
			{Name: "search the namespaces", Do: "GET /projects?search=tools&search_namespaces=true", Status: 200, Want: `["<any>","<any>","<any>"]`},
			{Name: "by name", Do: "GET /projects?order_by=name&sort=asc", Status: 200, Want: `[{"path":"p3"},{"path":"p2"},{"path":"p4"}]`},
			{Name: "storage for administrators", Do: "GET /projects?repository_storage=none", As: root, Status: 200, Want: `[]`},
			{Name: "storage for others", Do: "GET /projects?repository_storage=none&search=p4", As: alice, Status: 200, Want: `["<any>"]`},
			{Name: "keyset by another order", Do: "GET /projects?pagination=keyset&order_by=name", Status: 405, Want: `{"error":"Keyset pagination is not yet available for this type of request"}`},
			{Name: "active", Do: "GET /projects?last_activity_after=2099-01-01T00:00:00Z", Status: 200, Want: `[]`},
			{Name: "ids", Do: fmt.Sprintf("GET /projects?id_after=%d&id_before=%d", ids[2], ids[4]), Status: 200, Want: `[{"path":"p3"}]`},
			{Name: "of a user", Do: "GET /users/alice/projects", Status: 200, Want: `[]`},
			{Name: "anonymous", Do: "GET /users/nobody/projects", Status: 404},
			{Name: "star", Do: fmt.Sprintf("POST /projects/%d/star", ids[2]), As: bob, Status: 201, Want: `{"star_count":1}`},
			{Name: "star again", Do: fmt.Sprintf("POST /projects/%d/star", ids[2]), As: bob, Status: 304},
			{Name: "starred", Do: "GET /projects?starred=true", As: bob, Status: 200, Want: `[{"path":"p2"}]`},
			{Name: "starred by", Do: fmt.Sprintf("GET /users/%d/starred_projects", bobID), Status: 200, Want: `[{"path":"p2"}]`},
			{Name: "starrers", Do: fmt.Sprintf("GET /projects/%d/starrers", ids[2]), Status: 200, Want: `[{"starred_since":"<any>","user":{"username":"bob"}}]`},
			{Name: "unstar", Do: fmt.Sprintf("POST /projects/%d/unstar", ids[2]), As: bob, Status: 201, Want: `{"star_count":0}`},
			{Name: "forks", Do: fmt.Sprintf("GET /projects/%d/forks", ids[2]), Status: 200, Want: `[]`},
		})
		for _, sort := range []string{"asc", "desc"} {
			got := walk(t, s, alice, "GET /projects?pagination=keyset&order_by=id&per_page=2&sort="+sort)
			want := "p0 p1 p2 p3 p4"
			if sort == "desc" {
				want = "p4 p3 p2 p1 p0"
			}
			if got != want {
				t.Errorf("keyset %s: %s, want %s", sort, got, want)
			}
		}
		if got := walk(t, s, "", "GET /projects?pagination=keyset&order_by=id&sort=asc&per_page=1"); got != "p2 p3 p4" {
			t.Errorf("keyset of nobody: %s", got)
		}
	})
}

// walk follows the links to the next pages of a list and returns the paths of its
// items.
func walk(t *testing.T, s *apptest.Server, as, do string) string {
	t.Helper()
	var paths []string
	for range 100 {
		a := s.Check(t, apptest.Call{Do: do, As: as, Status: 200, WantHeader: map[string]string{"X-Total": "-", "X-Page": "-"}})
		var items []struct{ Path string }
		a.JSON(t, &items)
		for _, item := range items {
			paths = append(paths, item.Path)
		}
		link := a.Header.Get("Link")
		if link == "" {
			break
		}
		next, rel, _ := strings.Cut(strings.TrimPrefix(link, "<"), ">")
		if rel != `; rel="next"` || !strings.HasPrefix(next, s.URL+"/api/v4/") {
			t.Fatalf("link %s", link)
		}
		do = "GET " + strings.TrimPrefix(next, s.URL+"/api/v4")
	}
	return strings.Join(paths, " ")
}

func TestListGroups(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		a := group(t, s, alice, "aa", `,"visibility":"public"`)
		group(t, s, alice, "bb", `,"visibility":"internal"`)
		group(t, s, alice, "cc", "")
		made(t, s, alice, "POST /groups", fmt.Sprintf(`{"name":"DD","path":"dd","parent_id":%d}`, a))
		s.Table(t, []apptest.Call{
			{Name: "anonymous", Do: "GET /groups", Status: 200, Want: `[{"path":"aa"},{"path":"dd"}]`},
			{Name: "a stranger's own", Do: "GET /groups", As: bob, Status: 200, Want: `[]`},
			{Name: "what a stranger sees", Do: "GET /groups?all_available=true", As: bob, Status: 200, Want: `[{"path":"aa"},{"path":"bb"},{"path":"dd"}]`},
			{Name: "the owner", Do: "GET /groups", As: alice, Status: 200, Want: `[{"path":"aa"},{"path":"bb"},{"path":"cc"},{"path":"dd"}]`},
			{Name: "an administrator", Do: "GET /groups?sort=desc", As: root, Status: 200, Want: `[{"path":"dd"},{"path":"cc"},{"path":"bb"},{"path":"aa"}]`},
			{Name: "top", Do: "GET /groups?top_level_only=true&search=d", As: alice, Status: 200, Want: `[]`},
			{Name: "skip", Do: fmt.Sprintf("GET /groups?skip_groups[]=%d&owned=true", a), As: alice, Status: 200, Want: `[{"path":"bb"},{"path":"cc"},{"path":"dd"}]`},
			{Name: "least", Do: "GET /groups?min_access_level=50", As: bob, Status: 200, Want: `[]`},
			{Name: "keyset the other way", Do: "GET /groups?pagination=keyset&order_by=name&sort=desc", Status: 405},
		})
		if got := walk(t, s, alice, "GET /groups?pagination=keyset&order_by=name&sort=asc&per_page=3"); got != "aa bb cc dd" {
			t.Errorf("keyset: %s", got)
		}
	})
}
