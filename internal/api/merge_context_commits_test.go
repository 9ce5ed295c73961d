package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/project"
)

func TestContextCommits(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		_, dan := s.User(t, "dan")
		id := code(t, s, alice, "code", `,"visibility":"public"`)
		enlist(t, s, id, bobID, project.Developer)
		before := commitTo(t, s, alice, id, "main", "b.txt", "two\n", "Merged before")
		more := commitTo(t, s, alice, id, "main", "c.txt", "three\n", "And this")
		at := proposed(t, s, bob, id, "use", "")
		all := "/context_commits"
		one := func(sha string) string { return `{"commits":["` + sha + `"]}` }
		s.Table(t, []apptest.Call{
			{Name: "none", Do: "GET " + at + all, Status: 200, Want: `[]`},
			{Name: "without", Do: "POST " + at + all, As: bob, JSON: `{}`, Status: 400, Want: `{"error":"commits is missing"}`},
			{Name: "unknown", Do: "POST " + at + all, As: bob, JSON: one("0123456789012345678901234567890123456789"), Status: 400},
			{Name: "no commit", Do: "POST " + at + all, As: bob, JSON: one("main"), Status: 400},
			{Name: "outsider", Do: "POST " + at + all, As: dan, JSON: one(before), Status: 403},
			{Name: "anonymous", Do: "POST " + at + all, JSON: one(before), Status: 401},
			{Name: "nothing was added", Do: "GET " + at + all, Status: 200, Want: `[]`},
			{Name: "added", Do: "POST " + at + all, As: bob, JSON: `{"commits":["` + before + `","` + more[:10] + `","` + more + `"]}`, Status: 201,
				Want: fmt.Sprintf(`[{"id":%q,"short_id":%q,"title":"Merged before","message":"Merged before"},{"id":%q}]`, before, before[:8], more)},
			{Name: "again", Do: "POST " + at + all, As: bob, JSON: one(before), Status: 400},
			{Name: "list", Do: "GET " + at + all, Status: 200, Want: fmt.Sprintf(`[{"id":%q},{"id":%q}]`, before, more)},
			{Name: "not its own commits", Do: "GET " + at + "/commits", Status: 200, Want: `[{"title":"Add use"}]`},
			{Name: "note", Do: "GET " + at + "/notes?activity_filter=only_activity&per_page=1", Status: 200, Want: `[{"body":"added 2 context commits"}]`},
			{Name: "outsider", Do: "DELETE " + at + all, As: dan, JSON: one(before), Status: 403},
			{Name: "not one of them", Do: "DELETE " + at + all, As: bob, JSON: `{"commits":["` + before + `","0123456789012345678901234567890123456789"]}`, Status: 404},
			{Name: "both are kept", Do: "GET " + at + all, Status: 200, Want: fmt.Sprintf(`[{"id":%q},{"id":%q}]`, before, more)},
			{Name: "removed", Do: "DELETE " + at + all, As: alice, JSON: one(before), Status: 204},
			{Name: "one is left", Do: "GET " + at + all, Status: 200, Want: fmt.Sprintf(`[{"id":%q}]`, more)},
			{Name: "code for members", Do: fmt.Sprintf("PUT /projects/%d", id), As: alice, JSON: `{"repository_access_level":"private","merge_requests_access_level":"private","builds_access_level":"private"}`, Status: 200},
			{Name: "hidden with the code", Do: "GET " + at + all, As: dan, Status: 404},
		})
	})
}

// TestDeploymentMerges deploys a branch three times and lists the merge requests of
// each deployment.
func TestDeploymentMerges(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, dan := s.User(t, "dan")
		id := code(t, s, alice, "code", `,"visibility":"public"`)
		merge := func(branch, json string) {
			t.Helper()
			at := proposed(t, s, alice, id, branch, "")
			s.Check(t, apptest.Call{Do: "PUT " + at + "/merge", As: alice, JSON: json, Status: 200})
		}
		deploy := func(environment, status string) string {
			t.Helper()
			var tip struct{ Commit struct{ ID string } }
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/repository/branches/main", id), As: alice, Status: 200}).JSON(t, &tip)
			var made struct{ ID int64 }
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/deployments", id), As: alice, Status: 201,
				JSON: fmt.Sprintf(`{"environment":%q,"sha":%q,"ref":"main","tag":false,"status":%q}`, environment, tip.Commit.ID, status)}).JSON(t, &made)
			return fmt.Sprintf("/projects/%d/deployments/%d", id, made.ID)
		}
		merge("one", `{}`)
		proposed(t, s, alice, id, "open", "")
		first := deploy("production", "success")
		merge("two", `{}`)
		merge("three", `{"squash":true}`)
		failed := deploy("production", "failed")
		second := deploy("production", "success")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", id), As: alice, JSON: `{"merge_method":"ff"}`, Status: 200})
		commitTo(t, s, alice, id, "four", "four.txt", "4\n", "Add four")
		four := requested(t, s, alice, id, "four", "")
		s.Check(t, apptest.Call{Do: "PUT " + four + "/merge", As: alice, Status: 200})
		third := deploy("production", "success")
		other := deploy("staging", "success")
		const list = "/merge_requests?order_by=created_at&sort=asc"
		s.Table(t, []apptest.Call{
			{Name: "the first has all that were merged", Do: "GET " + first + list, Status: 200, Want: `[{"iid":1},{"iid":3},{"iid":4},{"iid":5}]`},
			{Name: "one that failed", Do: "GET " + failed + list, Status: 200, Want: `[]`},
			{Name: "since the one before", Do: "GET " + second + list, As: dan, Status: 200, Want: `[{"iid":3,"state":"merged"},{"iid":4}]`},
			{Name: "filtered", Do: "GET " + second + list + "&source_branch=three", Status: 200, Want: `[{"iid":4}]`},
			{Name: "by number", Do: "GET " + second + list + "&iids[]=3&iids[]=1", Status: 200, Want: `[{"iid":3}]`},
			{Name: "none is open", Do: "GET " + second + list + "&state=opened", Status: 200, Want: `[]`},
			{Name: "simple", Do: "GET " + second + list + "&view=simple&per_page=1", Status: 200, Want: `[{"iid":3}]`},
			{Name: "without a merge commit", Do: "GET " + third + list, Status: 200, Want: `[{"iid":5}]`},
			{Name: "another environment", Do: "GET " + other + list, Status: 200, Want: `[{"iid":1},{"iid":3},{"iid":4},{"iid":5}]`},
			{Name: "missing", Do: fmt.Sprintf("GET /projects/%d/deployments/999999/merge_requests", id), Status: 404},
			{Name: "merge requests for members", Do: fmt.Sprintf("PUT /projects/%d", id), As: alice, JSON: `{"merge_requests_access_level":"private"}`, Status: 200},
			{Name: "hidden", Do: "GET " + second + list, As: dan, Status: 404},
		})
	})
}
