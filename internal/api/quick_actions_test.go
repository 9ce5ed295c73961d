package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
)

func TestQuickActionsOnIssues(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		const in, at = "/projects/alice%2Fp", "/projects/alice%2Fp/issues/1"
		s.Table(t, []apptest.Call{
			{Do: "POST /projects", As: alice, JSON: `{"name":"p","visibility":"public"}`, Status: 201},
			{Do: "POST /projects", As: alice, JSON: `{"name":"q","visibility":"public"}`, Status: 201},
			{Do: "POST " + in + "/labels", As: alice, JSON: `{"name":"bug","color":"#ff0000"}`, Status: 201},
			{Do: "POST " + in + "/labels", As: alice, JSON: `{"name":"to do","color":"#ff0000"}`, Status: 201},
			{Do: "POST " + in + "/milestones", As: alice, JSON: `{"title":"1.0"}`, Status: 201},
			{Name: "create", Do: "POST " + in + "/issues", As: alice, Status: 201,
				JSON: `{"title":"one","description":"Text\n/label ~bug ~\"to do\"\n/assign me\n/milestone %1.0\n/weight 3\n/due 2030-01-02\n/estimate 2h\n/unknown"}`,
				Want: `{"description":"Text\n/unknown","labels":["bug","to do"],"assignee":{"username":"alice"},"milestone":{"title":"1.0"},"weight":3,"due_date":"2030-01-02",
					"time_stats":{"time_estimate":7200}}`},
			{Do: "POST " + in + "/issues", As: alice, JSON: `{"title":"two"}`, Status: 201},
			{Name: "only commands", Do: "POST " + at + "/notes", As: alice, JSON: `{"body":"/unlabel ~bug\n/spend 1h\n/close"}`, Status: 202,
				Want: `{"commands_changes":{"state_event":"close","spend_time":{"duration":3600}},"summary":["Removed ~bug label.","Added 1h of spent time.","Closed this issue."]}`},
			{Name: "changed", Do: "GET " + at, As: alice, Status: 200, Want: `{"state":"closed","labels":["to do"],"user_notes_count":0,"time_stats":{"total_time_spent":3600}}`},
			{Name: "text and commands", Do: "POST " + at + "/notes", As: alice, JSON: `{"body":"Again.\n\n/reopen\n/confidential"}`, Status: 201,
				Want: `{"body":"Again.","commands_changes":{"state_event":"reopen","confidential":true}}`},
			{Name: "changed", Do: "GET " + at, As: alice, Status: 200, Want: `{"state":"opened","confidential":true,"user_notes_count":1}`},
			{Name: "in code", Do: "POST " + at + "/notes", As: alice, JSON: "{\"body\":\"```\\n/close\\n```\"}", Status: 201, Want: `{"commands_changes":{}}`},
			{Name: "refused", Do: "POST " + at + "/notes", As: alice, JSON: `{"body":"/label ~none"}`, Status: 400},
			{Name: "refused and applied", Do: "POST " + at + "/notes", As: alice, JSON: `{"body":"/assign @nobody\n/lock"}`, Status: 202,
				Want: `{"summary":["Locked the discussion.","Failed to find users for @nobody."]}`},
			{Name: "thread", Do: "POST " + at + "/discussions", As: alice, JSON: `{"body":"/unlock"}`, Status: 202},
			{Name: "links", Do: "POST " + at + "/notes", As: alice, JSON: `{"body":"/blocks #2"}`, Status: 202},
			{Name: "links", Do: "GET " + at + "/links", As: alice, Status: 200, Want: `[{"iid":2,"link_type":"blocks"}]`},
			{Name: "another user", Do: "POST " + in + "/issues/2/notes", As: bob, JSON: `{"body":"/close"}`, Status: 400},
			{Name: "another user with text", Do: "POST " + in + "/issues/2/notes", As: bob, JSON: `{"body":"please\n/close\n/subscribe"}`, Status: 201, Want: `{"body":"please"}`},
			{Name: "unchanged", Do: "GET " + in + "/issues/2", As: bob, Status: 200, Want: `{"state":"opened","subscribed":true}`},
			{Name: "update", Do: "PUT " + in + "/issues/2", As: alice, JSON: `{"description":"New.\n/title Second\n/copy_metadata #1"}`, Status: 200,
				Want: `{"title":"Second","description":"New.","labels":["to do"],"milestone":{"title":"1.0"}}`},
			{Name: "duplicate", Do: "POST " + in + "/issues/2/notes", As: alice, JSON: `{"body":"/duplicate #1"}`, Status: 202},
			{Name: "duplicate", Do: "GET " + in + "/issues/2", As: alice, Status: 200, Want: `{"state":"closed"}`},
			{Name: "to-do", Do: "POST " + in + "/issues/2/notes", As: alice, JSON: `{"body":"/todo\n/react :tada:"}`, Status: 202,
				Want: `{"summary":["Added a to-do item.","<any>"]}`},
			{Name: "done", Do: "POST " + in + "/issues/2/notes", As: alice, JSON: `{"body":"/done"}`, Status: 202, Want: `{"summary":["Marked the to-do item as done."]}`},
			{Name: "reacted", Do: "GET " + in + "/issues/2/award_emoji", As: alice, Status: 200, Want: `[{"name":"tada"}]`},
			{Name: "incident", Do: "POST " + in + "/issues/2/notes", As: alice, JSON: `{"body":"/promote_to_incident"}`, Status: 202, Want: `{"commands_changes":{"issue_type":"incident"}}`},
			{Name: "unlink", Do: "POST " + at + "/notes", As: alice, JSON: `{"body":"/unlink #2"}`, Status: 202, Want: `{"summary":["Removed the link with #2."]}`},
			{Name: "unlinked", Do: "GET " + at + "/links", As: alice, Status: 200, Want: `[]`},
			{Name: "unlink again", Do: "POST " + at + "/notes", As: alice, JSON: `{"body":"/unlink #2"}`, Status: 400},
			{Name: "move", Do: "POST " + at + "/notes", As: alice, JSON: `{"body":"/move alice/q"}`, Status: 202, Want: `{"summary":["Moved this issue to alice/q#1."]}`},
			{Name: "moved", Do: "GET /projects/alice%2Fq/issues/1", As: alice, Status: 200, Want: fmt.Sprintf(`{"title":"one","time_stats":{"total_time_spent":3600},"author":{"id":%d}}`, aliceID)},
			{Name: "spent too little", Do: "POST /projects/alice%2Fq/issues/1/notes", As: alice, JSON: `{"body":"/spend -2h"}`, Status: 400},
			{Name: "shrug", Do: "POST /projects/alice%2Fq/issues/1/notes", As: alice, JSON: `{"body":"/shrug well"}`, Status: 201, Want: `{"body":"well ¯\\_(ツ)_/¯"}`},
		})
	})
}
