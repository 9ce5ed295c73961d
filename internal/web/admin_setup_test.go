package web_test

import (
	"encoding/json"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/mail/mailtest"
)

// TestSetup completes the setup checklist of a new instance.
func TestSetup(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		root := newBrowser(t, s).signIn("root", apptest.RootPassword)
		root.get("/dashboard").want(200, `href="/admin/setup"`)
		const at = "/admin/setup"
		root.get(at).want(200, "4 items left", "works on this machine only", "No mail server is configured", "There is no runner that all projects can use",
			"svc backup was never run", "New users cannot sign up", "can be written to").not("Send test email")

		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200,
			Form: url.Values{"signup_enabled": {"true"}, "require_admin_approval_after_user_signup": {"false"}}})
		root.get(at).want(200, "5 items left", "Everyone who reaches this server can create an account")
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, Form: url.Values{"signup_enabled": {"false"}}})

		var runner struct{ Token string }
		made := s.Check(t, apptest.Call{Do: "POST /user/runners", As: apptest.RootToken, JSON: `{"runner_type":"instance_type"}`, Status: 201})
		if err := json.Unmarshal(made.Body, &runner); err != nil {
			t.Fatal(err)
		}
		root.get(at).want(200, "No runner that all projects can use is online")
		s.Check(t, apptest.Call{Do: "POST /runners/verify", JSON: `{"token":"` + runner.Token + `","system_id":"s_1"}`, Status: 200})
		root.get(at).want(200, "A runner that all projects can use is online")

		if err := s.Instance.RecordBackup(t.Context(), s.Clock.Now(), 17); err != nil {
			t.Fatal(err)
		}
		root.get(at).want(200, "2 items left", "The last backup was made on "+s.Clock.Now().UTC().Format(time.DateOnly)).not("Run svc backup")
		s.Check(t, apptest.Call{Do: "GET /audit_events?entity_type=Gitlab::Audit::InstanceScope&per_page=1", As: apptest.RootToken, Status: 200,
			Want: `[{"event_type":"backup_created","details":{"custom_message":"Backup of 17 bytes created"}}]`})
		s.Clock.Move(8 * 24 * time.Hour)
		root = newBrowser(t, s).signIn("root", apptest.RootPassword)
		root.get(at).want(200, "Run svc backup", "No runner that all projects can use is online")

		if err := os.RemoveAll(s.Config.DataDir + "/blobs"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.Config.DataDir+"/blobs", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		root.get(at).want(200, "The object storage cannot be used")
	})
}

// TestSetupMail sends a test email.
func TestSetupMail(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, post *mailtest.Server) {
		root := newBrowser(t, s).signIn("root", apptest.RootPassword)
		const at = "/admin/setup"
		root.get(at).want(200, "The mail server accepts connections")
		root.submit(at, at+"/test_email").leads(at)
		root.get(at).want(200, "Test email sent to")
		var me struct{ Email string }
		if err := json.Unmarshal(s.Check(t, apptest.Call{Do: "GET /user", As: apptest.RootToken, Status: 200}).Body, &me); err != nil {
			t.Fatal(err)
		}
		if got := post.Wait(t, me.Email); got.Subject != "Test email" || !strings.Contains(got.Text, "The mail server works") {
			t.Errorf("%+v", got)
		}
	})
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		newBrowser(t, s).signIn("root", apptest.RootPassword).get("/admin/setup").want(200, "The mail server does not respond").not("Send test email")
	}, apptest.Mail("smtp://127.0.0.1:1"))
}
