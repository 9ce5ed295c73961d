package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/notify"
)

func TestNotificationSettings(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		in := group(t, s, alice, "top", `,"visibility":"public"`)
		id := newProject(t, s, alice, "plan", fmt.Sprintf(`,"namespace_id":%d,"visibility":"public"`, in))
		s.Check(t, apptest.Call{Do: "POST /user/emails", As: alice, JSON: `{"email":"later@example.org"}`, Status: 201})
		const own = "/notification_settings"
		of, at := fmt.Sprintf("/groups/%d", in)+own, fmt.Sprintf("/projects/%d", id)+own
		s.Table(t, []apptest.Call{
			{Name: "as usual", Do: "GET " + own, As: alice, Status: 200, Want: `{"level":"participating","notification_email":"alice@example.org"}`, Not: []string{"events"}},
			{Name: "anonymous", Do: "GET " + own, Status: 401},
			{Name: "of a group as usual", Do: "GET " + of, As: alice, Status: 200, Want: `{"level":"global"}`, Not: []string{"events", "notification_email"}},
			{Name: "of a project as usual", Do: "GET " + at, As: bob, Status: 200, Want: `{"level":"global"}`},
			{Name: "of none", Do: "GET /projects/999999" + own, As: bob, Status: 404, Want: `{"message":"404 Project Not Found"}`},
			{Name: "flags wait for the level", Do: "PUT " + of, As: alice, JSON: `{"new_note":true,"failed_pipeline":false}`, Status: 200, Want: `{"level":"global"}`, Not: []string{"events"}},
			{Name: "custom", Do: "PUT " + of, As: alice, JSON: `{"level":"custom","new_epic":true}`, Status: 200, Want: `{"level":"custom","events":{"new_note":true,"new_issue":false,"reopen_issue":false,
				"close_issue":false,"reassign_issue":false,"issue_due":false,"new_merge_request":false,"push_to_merge_request":false,"reopen_merge_request":false,"close_merge_request":false,
				"reassign_merge_request":false,"change_reviewer_merge_request":false,"merge_merge_request":false,"failed_pipeline":false,"fixed_pipeline":true,"success_pipeline":false,
				"moved_project":true,"merge_when_pipeline_succeeds":false,"new_epic":true,"new_release":false}}`},
			{Name: "read again", Do: "GET " + of, As: alice, Status: 200, Want: `{"level":"custom","events":{"new_note":true,"failed_pipeline":false}}`},
			{Name: "of others it is their own", Do: "GET " + of, As: bob, Status: 200, Want: `{"level":"global"}`},
			{Name: "no level", Do: "PUT " + at, As: alice, JSON: `{"level":"loud"}`, Status: 400, Want: `{"message":"'loud' is not a valid level"}`},
			{Name: "no flag", Do: "PUT " + at, As: alice, JSON: `{"new_note":"loud"}`, Status: 400, Want: `{"error":"new_note is invalid"}`},
			{Name: "nothing is left of what was refused", Do: "GET " + at, As: alice, Status: 200, Want: `{"level":"global"}`},
			{Name: "an address of others", Do: "PUT " + own, As: alice, JSON: `{"level":"watch","notification_email":"bob@example.org"}`, Status: 400, Want: `{"message":{"notification_email":["must be an email you have verified"]}}`},
			{Name: "an address that is not confirmed", Do: "PUT " + own, As: alice, JSON: `{"notification_email":"later@example.org"}`, Status: 400, Want: `{"message":{"notification_email":["must be an email you have verified"]}}`},
			{Name: "nor of that", Do: "GET " + own, As: alice, Status: 200, Want: `{"level":"participating"}`},
		})
		second := made(t, s, root, fmt.Sprintf("POST /users/%d/emails", aliceID), `{"email":"second@example.org","skip_confirmation":true}`)
		s.Table(t, []apptest.Call{
			{Name: "a confirmed address", Do: "PUT " + own, As: alice, JSON: `{"level":"custom","success_pipeline":true,"notification_email":"second@example.org"}`, Status: 200, Want: `{"level":"custom","notification_email":"second@example.org","events":{"success_pipeline":true,"failed_pipeline":true}}`},
			{Name: "that goes away", Do: fmt.Sprintf("DELETE /user/emails/%d", second), As: alice, Status: 204},
			{Name: "and the primary one again", Do: "GET " + own, As: alice, Status: 200, Want: `{"notification_email":"alice@example.org"}`},
		})
		for _, level := range notify.Levels() {
			for _, path := range []string{own, of, at} {
				s.Check(t, apptest.Call{Do: "PUT " + path, As: bob, JSON: fmt.Sprintf(`{"level":"%s"}`, level), Status: 200, Want: fmt.Sprintf(`{"level":"%s"}`, level)})
			}
		}
	})
}
