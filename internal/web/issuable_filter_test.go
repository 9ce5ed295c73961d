package web_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

func TestListFilters(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		adaID, ada := s.User(t, "ada")
		s.User(t, "eve")
		id := newProject(t, s, ada, "p", "public")
		r := s.Repository(t, id, gittest.Commit{Changes: change("a.txt", "one\n")})
		r.Commit(gittest.Commit{Branch: "topic", Parents: []string{r.Tip("main")}, Changes: change("a.txt", "two\n")})
		for i := range 3 {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/issues", id), As: ada, Status: 201, Form: url.Values{"title": {fmt.Sprintf("Issue %d", i)}, "labels": {"bug,ui"}, "weight": {fmt.Sprint(i)}}})
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/milestones", id), As: ada, Status: 201, Form: url.Values{"title": {"v1"}}})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/merge_requests", id), As: ada, Status: 201, Form: url.Values{"title": {"Topic"}, "source_branch": {"topic"}, "target_branch": {"main"}}})
		b, eve, none := newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("eve", password), newBrowser(t, s)
		const at = "/ada/p/-/issues"
		b.get(at).want(200, "Bulk edit", "data-filters=").not("Clear all", `id="bulk"`)
		eve.get(at+"?bulk=1").want(200).not("Bulk edit", `id="bulk"`)
		b.get(at+"?weight=2").want(200, "Issue 2", "Remove the filter Weight 2").not("Issue 1")
		b.get(at+"?label_name[]=bug&label_name[]=ui&author_username=ada").want(200, "Remove the filter Label bug", `href="?author_username=ada&amp;label_name%5B%5D=ui"`, "Remove the filter Author @ada", "Clear all")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/issues/2/award_emoji", id), As: ada, Status: 201, Form: url.Values{"name": {"rocket"}}})
		b.get(at+"?my_reaction_emoji=rocket").want(200, "Issue 1", "Remove the filter My reaction rocket").not("Issue 2")
		b.get("/ada/p/-/merge_requests?draft=no").want(200, "Topic", "Remove the filter Draft no", "Bulk edit")

		b.get("/ada/p/-/filter_values?kind=label&search=u").want(200, `"value":"bug"`, `"value":"ui"`)
		b.get("/ada/p/-/filter_values?kind=user&search=@ad").want(200, `"value":"ada"`)
		b.get("/ada/p/-/filter_values?kind=milestone").want(200, `"value":"v1"`)
		b.get("/ada/p/-/filter_values?kind=branch&search=top").want(200, `"value":"topic"`)
		b.get("/ada/p/-/filter_values?kind=x").want(422)
		none.get("/ada/p/-/filter_values?kind=user").want(303) // members are for users who have signed in

		// Weight beside the issue.
		b.submit(at+"/1/edit/weight", at+"/1/edit/weight", "weight", "x").want(422, "is not a number")
		b.submit(at+"/1/edit/weight", at+"/1/edit/weight", "weight", "8").leads(at + "/1")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/issues/1", id), As: ada, Status: 200, Want: `{"weight":8}`})

		// Bulk edit.
		b.get(at+"?bulk=1").want(200, `id="bulk"`, `name="selected" value="1"`, "Update selected")
		bulk := func(b *browser, at string, pairs ...string) answer {
			return b.submit(at+"?bulk=1", at+"/bulk_update", pairs...)
		}
		bulk(b, at).leads(at)
		b.get(at).want(200, "Select at least one issue")
		bulk(b, at, "selected", "1", "selected", "2", "back", "?state=all", "add_labels", "new", "remove_labels", "ui", "assignee_id", fmt.Sprint(adaID), "milestone_id", "1", "state_event", "close", "subscription_event", "unsubscribe").leads(at + "?state=all")
		b.get(at).want(200, "2 issues updated")
		for iid, want := range map[int]string{1: `{"state":"closed","labels":["bug","new"],"subscribed":false,"milestone":{"title":"v1"},"assignee":{"username":"ada"}}`, 3: `{"state":"opened","labels":["bug","ui"],"assignee":null}`} {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/issues/%d", id, iid), As: ada, Status: 200, Want: want})
		}
		bulk(b, at, "selected", "3", "selected", "99", "milestone_id", "0").leads(at)
		b.get(at).want(200, "1 issue could not be changed")
		bulk(eve, at, "selected", "3", "state_event", "close").want(403)
		bulk(b, "/ada/p/-/merge_requests", "selected", "1", "add_labels", "bug").leads("/ada/p/-/merge_requests")
		b.get("/ada/p/-/merge_requests").want(200, "1 merge request updated")
		many := []string{"state_event", "close"}
		for i := range 101 {
			many = append(many, "selected", fmt.Sprint(i+1))
		}
		bulk(b, at, many...).leads(at)
		if p := b.get(at).want(200); !strings.Contains(p.body, "at most 100") {
			t.Error("more than 100 issues were changed at once")
		}
	})
}

func TestCIEditor(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		s.User(t, "eve")
		id := newProject(t, s, ada, "p", "public")
		r := s.Repository(t, id, gittest.Commit{Changes: change("a.txt", "one\n", "more.yml", "deploy: {stage: deploy, script: [x]}\n")})
		b := newBrowser(t, s).signIn("ada", password)
		const at = "/ada/p/-/ci/editor"
		b.get(at).want(200, "build-job", "This branch has no", "Pipeline syntax is correct: 2 jobs")
		newBrowser(t, s).get(at).want(200).not("Commit changes")
		b.submit(at, at+"?branch_name=main", "content", "a: {script: 1, stage: nope}", "do", "check").want(200, "note bad").not("syntax is correct")
		b.submit(at, at+"?branch_name=main", "content", "include: more.yml\na:\n  script: [x]\n  rules: [{if: '$CI_COMMIT_TAG'}]\n", "do", "simulate").want(200, "Simulation completed: 1 job")
		b.submit(at, at+"?branch_name=main", "content", "include: more.yml\r\na:\r\n  script: [x]\r\n", "do", "commit", "branch", "main", "message", "CI").leads(at + "?branch_name=main")
		if got := r.Git("show", "main:.gitlab-ci.yml"); strings.Contains(got, "\r") || !strings.HasPrefix(got, "include: more.yml\n") {
			t.Errorf("the file has %q", got)
		}
		b.get(at+"?tab=merged").want(200, "deploy", "Full configuration", "<b>test</b>", "<b>deploy</b>")
		b.submit(at, at+"?branch_name=main", "content", "b: {script: [x]}", "do", "commit", "branch", "main", "last_commit_id", "0123").want(422, "has changed since", "b: {script: [x]}")
		b.submit(at, at+"?branch_name=main", "content", "b: {script: [x]}", "do", "commit", "branch", "ci", "propose", "1").want(303)
		b.get(at + "?branch_name=nothing").want(404)
		eve := newBrowser(t, s).signIn("eve", password)
		eve.get(at).want(200).not("Commit changes")
		eve.submit(at, at+"?branch_name=main", "content", "b: {script: [x]}", "do", "commit", "branch", "main").want(403)
		eve.submit(at, at+"?branch_name=main", "content", "b: {script: [x]}", "do", "check").want(403)
	})
}
