package web_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// commit changes a file on a branch and returns the commit. The push creates a
// pipeline.
func (st *ciProject) commit(branch, text string) string {
	st.t.Helper()
	st.api("POST /projects/%d/repository/commits", 201, url.Values{
		"branch": {branch}, "commit_message": {text}, "actions[][action]": {"create"}, "actions[][file_path]": {strings.ReplaceAll(text, " ", "-")}, "actions[][content]": {text},
	})
	st.idle()
	var made struct{ ID string }
	st.api("GET /projects/%d/repository/commits/"+branch, 200, nil).JSON(st.t, &made)
	return made.ID
}

// TestRollback deploys twice with a runner, rolls back to the first deployment, and
// re-deploys it.
func TestRollback(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st := newCIProject(t, s, "ship: {script: [x], environment: {name: production, url: https://example.org}}\n")
		b := newBrowser(t, s).signIn("ada", password)
		const at = "/ada/p/-/environments/1"
		first := st.commit("main", "one")
		st.end(st.take(), "success")
		second := st.commit("main", "two")
		st.end(st.take(), "success")
		deployed := func(sha string, iid int) {
			t.Helper()
			st.api("GET /projects/%d/environments/1", 200, nil)
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/environments/1", st.project), As: st.owner, Status: 200,
				Want: fmt.Sprintf(`{"last_deployment":{"iid":%d,"status":"success","sha":%q}}`, iid, sha)})
		}
		deployed(second, 2)
		b.get(at).want(200, `aria-label="Re-deploy #2"`, `aria-label="Rollback #1"`, "Rollback: deploy "+first[:8]+" to production?")
		// The job of the first deployment runs again.
		b.submit(at, at+"/redeploy", "deployment", "1").want(303)
		st.idle()
		again := st.take()
		b.get(at).want(200, "#3").not(`aria-label="Re-deploy #3"`) // it is running
		st.end(again, "success")
		deployed(first, 3)
		b.get(at).want(200, `aria-label="Re-deploy #3"`, `aria-label="Rollback #2"`).not(`aria-label="Re-deploy #2"`)
		b.submit(at, at+"/redeploy", "deployment", "3").want(303)
		st.idle()
		st.end(st.take(), "failed")
		deployed(first, 3) // a failed deployment changes nothing
		// The job of the failed deployment can run again; that of the deployment
		// before was retried.
		b.get(at).want(200, `aria-label="Re-deploy #4"`, `aria-label="Rollback #2"`).not(`#3"`)
		// Other users cannot deploy, and no deployment of another environment can be
		// named.
		b.submit(at, at+"/redeploy", "deployment", "99").want(404)
		b.submit(at, "/ada/p/-/environments/2/redeploy", "deployment", "3").want(404)
		s.User(t, "bob")
		other := newBrowser(t, s).signIn("bob", password)
		other.get(at).want(200).not("redeploy")
		other.submit(at, at+"/redeploy", "deployment", "1").want(403)
	})
}

// TestMergeRequestWarnings shows a merge request whose pipeline passed with
// warnings, in pages and in the API.
func TestMergeRequestWarnings(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st := newCIProject(t, s, "unit: {script: [x]}\nstyle: {script: [x], allow_failure: true}\n")
		b := newBrowser(t, s).signIn("ada", password)
		st.commit("dev", "one")
		st.api("POST /projects/%d/merge_requests", 201, url.Values{"title": {"Change"}, "source_branch": {"dev"}, "target_branch": {"main"}})
		const list, page, passed = "/ada/p/-/merge_requests", "/ada/p/-/merge_requests/1", "Passed with warnings"
		b.get(list).want(200, "Pipeline: Pending", "dot st-pending")
		r := st.take()
		b.get("/ada/p/-/pipelines").want(200, "data-elapsed")
		b.get("/ada/p/-/pipelines/1").want(200, "data-elapsed")
		for _, one := range []run{r, st.take()} {
			if one.Info.Name == "style" {
				st.end(one, "failed")
			} else {
				st.end(one, "success")
			}
		}
		b.get("/ada/p/-/pipelines").want(200, passed).not("data-elapsed")
		for _, path := range []string{list, "/dashboard/merge_requests?scope=created_by_me"} {
			b.get(path).want(200, "Pipeline: "+passed, "dot st-warning")
		}
		b.get(page).want(200, passed, "st-warning")
		b.get(page+"/pipelines").want(200, passed)
		const want = `"detailed_status":{"icon":"status_warning","text":"Warning","label":"passed with warnings","group":"success-with-warnings","tooltip":"passed with warnings"}`
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("GET /projects/%d/pipelines/1", st.project), As: st.owner, Status: 200, Want: `{"status":"success",` + want + `}`},
			{Do: fmt.Sprintf("GET /projects/%d/pipelines/latest?ref=dev", st.project), As: st.owner, Status: 200, Want: `{` + want + `}`},
			{Do: fmt.Sprintf("GET /projects/%d/merge_requests/1", st.project), As: st.owner, Status: 200, Want: `{"head_pipeline":{` + want + `}}`},
		})
		// Users who can see the merge request and no pipelines.
		st.api("PUT /projects/%d", 200, url.Values{"builds_access_level": {"private"}})
		newBrowser(t, s).get(list).want(200, "Change").not("Pipeline:", "st-warning")
	})
}
