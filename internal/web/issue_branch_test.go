package web_test

import (
	"fmt"
	"net/url"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

func TestIssueBranches(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		s.User(t, "eve")
		id := newProject(t, s, ada, "p", "public")
		r := s.Repository(t, id, gittest.Commit{Changes: change("a.txt", "one\n")})
		for i := range 12 {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/issues", id), As: ada, Status: 201, Form: url.Values{"title": {fmt.Sprintf("Schöner Fehler %d!", i)}, "confidential": {fmt.Sprint(i == 1)}}})
		}
		r.Git("branch", "1-by-hand", "main")
		r.Git("branch", "11-other", "main")
		b, eve := newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("eve", password)
		const at = "/ada/p/-/issues/1"
		b.get(at).want(200, "Related branches", "1-by-hand", `value="1-schoner-fehler-0"`, "Create merge request").not("11-other")
		eve.get(at).want(200, "1-by-hand").not("Create branch", "/branch\"")
		eve.submit(at, at+"/branch", "name", "x", "ref", "main").want(403)
		b.submit(at, at+"/branch", "name", "..", "ref", "main").leads(at)
		b.get(at).want(200, "Branch name is invalid")
		b.submit(at, at+"/branch", "name", "1-schoner-fehler-0", "ref", "main").leads("/ada/p/-/tree/1-schoner-fehler-0")
		b.get(at).want(200, `value="1-schoner-fehler-0-2"`)
		b.submit(at, at+"/branch", "name", "1-mr", "ref", "main", "do", "merge_request").leads("/ada/p/-/merge_requests/1")
		b.get("/ada/p/-/merge_requests/1").want(200, "Draft: Resolve &#34;Schöner Fehler 0!&#34;", "Closes", "1-mr")
		// The name of a branch does not reveal the title of a confidential issue.
		b.get("/ada/p/-/issues/2").want(200, `value="2-confidential-issue"`, "Create branch").not(`value="merge_request"`)
		b.submit("/ada/p/-/issues/2", "/ada/p/-/issues/2/branch", "name", "2-mr", "ref", "main", "do", "merge_request").leads("/ada/p/-/merge_requests/2")
		b.get("/ada/p/-/merge_requests").want(200, "Draft: Resolve #2").not("Fehler 1")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", id), As: ada, Status: 200, Form: url.Values{"issue_branch_template": {"fix/%{id}_%{title}"}}, Want: `{"issue_branch_template":"fix/%{id}_%{title}"}`})
		const general = "/ada/p/-/settings/general"
		b.get(general).want(200, `value="fix/%{id}_%{title}"`)
		r.Git("branch", "fix/3_done", "main")
		b.get("/ada/p/-/issues/3").want(200, `value="fix/3_schoner-fehler-2"`, "fix/3_done")
	})
}
