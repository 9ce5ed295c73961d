package api_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/mail/mailtest"
)

// TestPipelineEmails checks that pipeline status emails are sent to the recipients
// of the integration, for the configured pipelines.
func TestPipelineEmails(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, post *mailtest.Server) {
		_, alice := s.User(t, "alice")
		const at = "/projects/alice%2Fp"
		const one = at + "/integrations/pipelines-email"
		var first, second struct{ ID string }
		many := strings.Repeat("a@example.org,", 3)
		for i := range 31 {
			many += fmt.Sprintf("u%d@example.org,", i)
		}
		s.Table(t, []apptest.Call{
			{Do: "POST /projects", As: alice, JSON: `{"name":"p","initialize_with_readme":true}`, Status: 201},
			{Name: "missing", Do: "GET " + one, As: alice, Status: 404},
			{Name: "no recipients", Do: "PUT " + one, As: alice, JSON: `{"notify_only_broken_pipelines":true}`, Status: 400, Want: `{"message":{"recipients":["can't be blank"]}}`},
			{Name: "no address", Do: "PUT " + one, As: alice, JSON: `{"recipients":"team@example.org, Team <x@example.org>"}`, Status: 400, Want: `{"message":{"recipients":["has an invalid email address"]}}`},
			{Name: "too many", Do: "PUT " + one, As: alice, JSON: `{"recipients":"` + many + `"}`, Status: 400, Want: `{"message":{"recipients":["can't exceed 30"]}}`},
			{Name: "another trigger", Do: "PUT " + one, As: alice, JSON: `{"recipients":"team@example.org","push_events":true}`, Status: 400},
			{Name: "set up", Do: "PUT " + one, As: alice, JSON: `{"recipients":"team@example.org, lead@example.org,TEAM@example.org","branches_to_be_notified":"default"}`, Status: 200,
				Want: `{"slug":"pipelines-email","title":"Pipeline status emails","active":true,"pipeline_events":true,"push_events":false,
					"properties":{"recipients":"team@example.org, lead@example.org,TEAM@example.org","notify_only_broken_pipelines":true,"branches_to_be_notified":"default"}}`},
			{Name: "list", Do: "GET " + at + "/integrations", As: alice, Status: 200, Want: `[{"slug":"pipelines-email"}]`},
		})
		commit := func(branch string, into any) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "POST " + at + "/repository/commits", As: alice, Status: 201,
				JSON: fmt.Sprintf(`{"branch":%q,"start_branch":"main","commit_message":"Break %s","actions":[{"action":"create","file_path":"f%s","content":"x"}]}`, branch, branch, branch)}).JSON(t, into)
		}
		status := func(sha, state, ref string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "POST " + at + "/statuses/" + sha, As: alice, JSON: fmt.Sprintf(`{"state":%q,"ref":%q,"name":"check"}`, state, ref), Status: 201})
		}
		commit("other", &second)
		status(second.ID, "failed", "other") // no email: another branch
		s.Check(t, apptest.Call{Do: "POST " + at + "/repository/commits", As: alice, Status: 201, JSON: `{"branch":"main","commit_message":"Break it","actions":[{"action":"create","file_path":"g","content":"x"}]}`}).JSON(t, &first)
		status(first.ID, "failed", "main")
		for _, to := range []string{"team@example.org", "lead@example.org"} {
			got := post.Wait(t, to)
			if want := "alice/p | Failed pipeline for main | " + first.ID[:8]; got.Subject != want {
				t.Errorf("email to %s: subject %q, want %q", to, got.Subject, want)
			}
			if !strings.HasPrefix(got.Text, "Hello,") || !strings.Contains(got.HTML, ">Hello,<") {
				t.Errorf("email to %s greets without a name: %s", to, got.Text)
			}
			if !strings.Contains(got.Text, "/alice/p/-/pipelines/") || !strings.Contains(got.Text, "Break it") {
				t.Errorf("email to %s lacks the pipeline or the commit: %s", to, got.Text)
			}
		}
		// With emails for passed pipelines too, the next email is about the next
		// pipeline.
		post.Take()
		s.Table(t, []apptest.Call{
			{Do: "PUT " + one, As: alice, JSON: `{"recipients":"team@example.org","notify_only_broken_pipelines":false}`, Status: 200},
			{Do: "POST " + at + "/repository/commits", As: alice, Status: 201, JSON: `{"branch":"main","commit_message":"Fix it","actions":[{"action":"delete","file_path":"g"}]}`},
		})
		s.Check(t, apptest.Call{Do: "GET " + at + "/repository/commits/main", As: alice, Status: 200}).JSON(t, &first)
		status(first.ID, "success", "main")
		if got := post.Wait(t, "team@example.org"); got.Subject != "alice/p | Successful pipeline for main | "+first.ID[:8] {
			t.Errorf("subject %q", got.Subject)
		}
		s.Check(t, apptest.Call{Name: "remove", Do: "DELETE " + one, As: alice, Status: 204})
	})
}

func TestExternalWiki(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		const one = "/projects/alice%2Fp/integrations/external-wiki"
		s.Table(t, []apptest.Call{
			{Do: "POST /projects", As: alice, JSON: `{"name":"p"}`, Status: 201},
			{Name: "no address", Do: "PUT " + one, As: alice, JSON: `{}`, Status: 400, Want: `{"message":{"external_wiki_url":["can't be blank"]}}`},
			{Name: "no web address", Do: "PUT " + one, As: alice, JSON: `{"external_wiki_url":"javascript:alert(1)"}`, Status: 400},
			{Name: "a trigger", Do: "PUT " + one, As: alice, JSON: `{"external_wiki_url":"https://wiki.example.org","push_events":true}`, Status: 400},
			{Name: "set up", Do: "PUT " + one, As: alice, JSON: `{"external_wiki_url":"https://wiki.example.org/x?a=b"}`, Status: 200,
				Want: `{"slug":"external-wiki","active":true,"push_events":false,"properties":{"external_wiki_url":"https://wiki.example.org/x?a=b"}}`},
			{Name: "read", Do: "GET " + one, As: alice, Status: 200, Want: `{"properties":{"external_wiki_url":"https://wiki.example.org/x?a=b"}}`},
			{Name: "by the old name", Do: "DELETE /projects/alice%2Fp/services/external-wiki", As: alice, Status: 204},
			{Name: "removed", Do: "GET " + one, As: alice, Status: 404},
		})
	})
}
