package api_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"svc/internal/app/apptest"
)

// made sends a request that creates an object and returns its ID.
func made(t testing.TB, s *apptest.Server, as, do, body string) int64 {
	t.Helper()
	var thing struct{ ID int64 }
	s.Check(t, apptest.Call{Do: do, As: as, JSON: body, Status: 201}).JSON(t, &thing)
	return thing.ID
}

func group(t testing.TB, s *apptest.Server, as, path, more string) int64 {
	t.Helper()
	return made(t, s, as, "POST /groups", fmt.Sprintf(`{"name":"%s","path":"%s"%s}`, strings.ToUpper(path), path, more))
}

func newProject(t testing.TB, s *apptest.Server, as, path, more string) int64 {
	t.Helper()
	return made(t, s, as, "POST /projects", fmt.Sprintf(`{"path":"%s"%s}`, path, more))
}

func TestProjectLife(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		id := newProject(t, s, alice, "first", "")
		at := fmt.Sprintf("/projects/%d", id)
		s.Table(t, []apptest.Call{
			{Name: "what is true of an empty one", Do: "GET " + at, As: alice, Status: 200, Want: `{"name":"first","path":"first","path_with_namespace":"alice/first",
				"name_with_namespace":"alice / first","empty_repo":true,"default_branch":"main","visibility":"private","archived":false,"mirror":false,
				"merge_method":"merge","squash_option":"default_off","repository_access_level":"enabled","merge_requests_access_level":"enabled",
				"namespace":{"kind":"user","full_path":"alice","parent_id":null},"owner":{"username":"alice"},"star_count":0,"forks_count":0,
				"permissions":{"project_access":{"access_level":50},"group_access":{"access_level":50}},"topics":[],"shared_with_groups":[]}`},
			{Name: "by path", Do: "GET /projects/alice%2Ffirst", As: alice, Status: 200, Want: fmt.Sprintf(`{"id":%d}`, id)},
			{Name: "by path in another case", Do: "GET /projects/Alice%2FFIRST", As: alice, Status: 200},
			{Name: "with an encoded point", Do: "GET /projects/alice%2Ffir%73t", As: alice, Status: 200},
			{Name: "users without projects", Do: "GET /users?without_projects=true&username=alice", As: root, Status: 200, Want: `[]`},
			{Name: "and others", Do: "GET /users?without_projects=true&username=bob", As: root, Status: 200, Want: `["<any>"]`},
			{Name: "unseen", Do: "GET " + at, As: bob, Status: 404, Want: `{"message":"404 Project Not Found"}`},
			{Name: "hidden from anonymous callers", Do: "GET " + at, Status: 404},
			{Name: "unseen is not changed", Do: "PUT " + at, As: bob, JSON: `{"description":"x"}`, Status: 404},
			{Name: "change", Do: "PUT " + at, As: alice, Status: 200,
				JSON: `{"description":"A thing","topics":["go","Go","forge"],"merge_method":"ff","squash_option":"always","wiki_enabled":false,
					"issues_access_level":"private","build_timeout":1200,"ci_config_path":"ci.yml","remove_source_branch_after_merge":false,"only_allow_merge_if_pipeline_succeeds":true}`,
				Want: `{"description":"A thing","topics":["go","forge"],"tag_list":["go","forge"],"merge_method":"ff","squash_option":"always","wiki_enabled":false,
					"wiki_access_level":"disabled","issues_access_level":"private","build_timeout":1200,"ci_config_path":"ci.yml",
					"remove_source_branch_after_merge":false,"only_allow_merge_if_pipeline_succeeds":true}`},
			{Name: "it lasts", Do: "GET " + at, As: alice, Status: 200, Want: `{"merge_method":"ff","build_timeout":1200,"topics":["go","forge"]}`},
			{Name: "wrong values", Do: "PUT " + at, As: alice, JSON: `{"merge_method":"octopus","visibility":"secret"}`, Status: 400,
				Want: `{"error":"visibility does not have a valid value, merge_method does not have a valid value"}`},
			{Name: "wrong by the rules", Do: "PUT " + at, As: alice, JSON: `{"build_timeout":1}`, Status: 400,
				Want: `{"message":{"build_timeout":["needs to be between 10 minutes and 1 month"]}}`},
			{Name: "not more open than the repository", Do: "PUT " + at, As: alice, JSON: `{"repository_access_level":"disabled"}`, Status: 400},
			{Name: "storage is for administrators", Do: "PUT " + at, As: alice, JSON: `{"repository_storage":"other"}`, Status: 200, Not: []string{"repository_storage"}},
			{Name: "administrators see it", Do: "GET " + at, As: root, Status: 200, Want: `{"repository_storage":"default"}`},
			{Name: "statistics", Do: "GET " + at + "?statistics=true", As: alice, Status: 200, Want: `{"statistics":{"commit_count":0,"repository_size":0}}`},
			{Name: "open it", Do: "PUT " + at, As: alice, JSON: `{"visibility":"public"}`, Status: 200},
			{Name: "seen by anonymous callers", Do: "GET " + at, Status: 200, Want: `{"visibility":"public"}`, Not: []string{"permissions", "merge_method"}},
			{Name: "seen but not theirs", Do: "PUT " + at, As: bob, JSON: `{"description":"x"}`, Status: 403},
			{Name: "no writes", Do: "PUT " + at, JSON: `{"description":"x"}`, Status: 401},
			{Name: "deleted by another", Do: "DELETE " + at, As: bob, Status: 403},
			{Name: "changed since", Do: "DELETE " + at, As: alice, Header: map[string]string{"If-Unmodified-Since": "Mon, 02 Jan 2006 15:04:05 GMT"}, Status: 412},
			{Name: "at once", Do: "PUT /application/settings?deletion_adjourned_period=0", As: root, Status: 200},
			{Name: "delete", Do: "DELETE " + at, As: alice, Status: 202, Want: `{"message":"202 Accepted"}`},
			{Name: "gone at once", Do: "GET " + at, As: root, Status: 404},
			{Name: "the path is free at once", Do: "POST /projects", As: alice, JSON: `{"path":"first"}`, Status: 201},
		})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		var n int
		if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM projects WHERE id = ?`, id).Scan(&n); err != nil || n != 0 {
			t.Errorf("%d rows are left, %v", n, err)
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /audit_events?entity_type=Project&entity_id=%d", id), As: root, Status: 200, Want: `[
			{"event_type":"project_destroyed"},{"event_type":"project_visibility_level_updated","details":{"change":"visibility","from":"private","to":"public"}},
			"<any>","<any>","<any>",{"event_type":"project_created","details":{"entity_path":"alice/first"}}]`})
	})
}

func TestCreateProject(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		g := group(t, s, alice, "tools", `,"visibility":"internal"`)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /users/%d", id), As: root, JSON: `{"projects_limit":1}`, Status: 200})
		into := func(rest string) string { return fmt.Sprintf(`{"namespace_id":%d,%s}`, g, rest) }
		s.Table(t, []apptest.Call{
			{Name: "neither name nor path", Do: "POST /projects", As: alice, JSON: `{"description":"x"}`, Status: 400,
				Want: `{"error":"name, path are missing, at least one parameter must be provided"}`},
			{Name: "a path from a name", Do: "POST /projects", As: alice, JSON: into(`"name":"Ein Größeres Ding!"`), Status: 201,
				Want: `{"path":"ein-grosseres-ding","name":"Ein Größeres Ding!","namespace":{"kind":"group"},"name_with_namespace":"TOOLS / Ein Größeres Ding!"}`},
			{Name: "taken", Do: "POST /projects", As: alice, JSON: into(`"path":"Ein-grosseres-DING"`), Status: 400, Want: `{"message":{"path":["has already been taken"]}}`},
			{Name: "leading dash", Do: "POST /projects", As: alice, JSON: into(`"path":"-rf"`), Status: 400},
			{Name: "dots", Do: "POST /projects", As: alice, JSON: into(`"path":"a..b"`), Status: 400},
			{Name: "a slash", Do: "POST /projects", As: alice, JSON: into(`"path":"a/b"`), Status: 400},
			{Name: "the suffix of repositories", Do: "POST /projects", As: alice, JSON: into(`"path":"x.git"`), Status: 400},
			{Name: "a word of URLs", Do: "POST /projects", As: alice, JSON: into(`"path":"-"`), Status: 400},
			{Name: "more visible than the group", Do: "POST /projects", As: alice, JSON: into(`"path":"p","visibility":"public"`), Status: 400,
				Want: `{"message":{"visibility_level":["public is not allowed in a internal group."]}}`},
			{Name: "as visible as the group", Do: "POST /projects", As: alice, JSON: into(`"path":"p","visibility":"internal"`), Status: 201},
			{Name: "an internal group without membership", Do: "POST /projects", As: bob, JSON: into(`"path":"q"`), Status: 403},
			{Name: "a namespace of another", Do: "POST /projects", As: bob, JSON: `{"path":"q","namespace_id":` + fmt.Sprint(g-2) + `}`, Status: 404},
			{Name: "none of that id", Do: "POST /projects", As: bob, JSON: `{"path":"q","namespace_id":99999}`, Status: 404, Want: `{"message":"404 Namespace Not Found"}`},
			{Name: "own", Do: "POST /projects", As: alice, JSON: `{"path":"one"}`, Status: 201},
			{Name: "one too many", Do: "POST /projects", As: alice, JSON: `{"path":"two"}`, Status: 400,
				Want: `{"message":{"limit_reached":["Your project limit is 1 projects! Please contact your administrator to increase it"]}}`},
			{Name: "a subgroup", Do: "POST /groups", As: alice, JSON: fmt.Sprintf(`{"name":"Sub","path":"sub","parent_id":%d}`, g), Status: 201},
			{Name: "a project of its path", Do: "POST /projects", As: alice, JSON: into(`"path":"Sub"`), Status: 400, Want: `{"message":{"path":["has already been taken"]}}`},
			{Name: "a subgroup of the same path", Do: "POST /groups", As: alice, JSON: fmt.Sprintf(`{"name":"P","path":"p","parent_id":%d}`, g), Status: 400,
				Want: `{"message":{"path":["has already been taken"]}}`},
		})
	})
}

// TestCreateTwiceAtOnce checks that of concurrent requests to create the same
// object, one succeeds and the others are refused.
func TestCreateTwiceAtOnce(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		g := group(t, s, alice, "tools", "")
		for round := range 5 {
			for _, text := range []string{
				fmt.Sprintf(`POST /projects {"path":"p%d","namespace_id":%d}`, round, g),
				fmt.Sprintf(`POST /groups {"name":"G","path":"g%d","parent_id":%d}`, round, g),
				fmt.Sprintf(`POST /groups {"name":"G","path":"top%d"}`, round),
			} {
				method, rest, _ := strings.Cut(text, " {")
				var wg sync.WaitGroup
				var mu sync.Mutex
				got := map[int]int{}
				for range 4 {
					wg.Go(func() {
						a := s.Send(t, apptest.Call{Do: method, As: alice, JSON: "{" + rest})
						mu.Lock()
						defer mu.Unlock()
						got[a.Status]++
					})
				}
				wg.Wait()
				if got[201] != 1 || got[400] != 3 {
					t.Errorf("%s: answers %v, want one 201 and three 400", text, got)
				}
			}
		}
	})
}
