package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/mail/mailtest"
)

// TestNotifications changes notification levels on pages, and unsubscribes from an
// issue by the link in an email.
func TestNotifications(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, mail *mailtest.Server) {
		_, ada := s.User(t, "ada")
		_, eve := s.User(t, "eve")
		s.Check(t, apptest.Call{Do: "POST /groups", As: ada, JSON: `{"name":"Top","path":"top","visibility":"private"}`, Status: 201})
		s.Check(t, apptest.Call{Do: "POST /projects", As: ada, JSON: `{"name":"Open","path":"open","visibility":"public"}`, Status: 201})
		guest, a, e := newBrowser(t, s), newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("eve", password)

		for _, row := range []struct {
			who    *browser
			path   string
			status int
			text   string
		}{
			{guest, "/-/user_settings/notifications", 303, ""},
			{guest, "/ada/open/-/notifications", 303, ""},
			{guest, "/groups/top/-/notifications", 303, ""},
			{a, "/-/user_settings/notifications", 200, "No custom levels"},
			{a, "/groups/top/-/notifications", 200, "Custom events"},
			{a, "/top", 200, "/groups/top/-/notifications"},
			{e, "/groups/top/-/notifications", 404, ""},
			{e, "/ada/open/-/notifications", 200, `value="global" checked`},
			{e, "/ada/open", 200, `action="/ada/open/-/notifications"`},
			{guest, "/ada/open", 200, "Clone"},
			{guest, "/-/sent_notifications/1.Issue.1.x/unsubscribe", 404, ""},
			{guest, "/-/sent_notifications/x/unsubscribe", 404, ""},
		} {
			p := row.who.get(row.path)
			if p.status != row.status || !strings.Contains(p.body, row.text) {
				t.Errorf("%s: status %d without %q", row.path, p.status, row.text)
			}
		}
		guest.get("/ada/open").not("/-/notifications")

		const own = "/-/user_settings/notifications"
		e.submit(own, own, "level", "watch", "notification_email", "ada@example.org").want(422, "must be an email you have verified")
		e.submit(own, own, "level", "nonsense", "notification_email", "eve@example.org").want(422, "is not a valid level")
		e.submit(own, own, "level", "custom", "notification_email", "eve@example.org", "own_acts", "1", "events", "1", "new_note", "1").leads(own)
		e.get(own).want(200, `value="custom" checked`, `name="new_note" value="1" checked`, `name="failed_pipeline" value="1">`, `name="own_acts" value="1" checked`)
		s.Check(t, apptest.Call{Do: "GET /notification_settings", As: eve, Status: 200, Want: `{"level":"custom","notification_email":"eve@example.org","events":{"new_note":true,"failed_pipeline":false,"new_issue":false}}`})
		e.submit("/ada/open", "/ada/open/-/notifications", "level", "watch").leads("/ada/open")
		e.submit("/ada/open", "/ada/open/-/notifications", "level", "custom").leads("/ada/open/-/notifications")
		e.submit("/ada/open/-/notifications", "/ada/open/-/notifications", "level", "participating", "events", "1").leads("/ada/open/-/notifications")
		e.get(own).want(200, "ada / Open", "Participate")
		a.submit("/top", "/groups/top/-/notifications", "level", "disabled").leads("/top")
		a.get(own).want(200, "Disabled", "Group, with its subgroups and projects")

		// The link in an email asks for confirmation, and works for anyone who has
		// the email.
		s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fopen/issues", As: eve, JSON: `{"title":"<b>Hard</b>"}`, Status: 201})
		s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fopen/issues/1/notes", As: ada, JSON: `{"body":"hello"}`, Status: 201})
		link := mail.Wait(t, "eve@example.org").Link(t, "/unsubscribe")
		guest.get(link).want(200, "&lt;b&gt;Hard&lt;/b&gt; (#1)", "ada / Open", "Unsubscribe</button>")
		state := func(want string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "GET /projects/ada%2Fopen/issues/1", As: eve, Status: 200, Want: fmt.Sprintf(`{"subscribed":%s}`, want)})
		}
		state("true")
		r, err := http.NewRequestWithContext(t.Context(), "POST", link, strings.NewReader(url.Values{"List-Unsubscribe": {"One-Click"}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		newBrowser(t, s).send(r).want(200, "Unsubscribed</h1>")
		state("false")
		tampered := strings.Replace(link, ".Issue.1.", ".Issue.2.", 1)
		guest.post(tampered, nil).want(404)

		// Without the issue, or without access to it, the link unsubscribes from
		// nothing.
		s.Check(t, apptest.Call{Do: "DELETE /projects/ada%2Fopen/issues/1", As: apptest.RootToken, Status: 204})
		leave := func() {
			t.Helper()
			guest.post(link, url.Values{"List-Unsubscribe": {"One-Click"}}).want(200, "Unsubscribed</h1>")
			var left int
			if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM subscriptions WHERE kind = 'Issue'`).Scan(&left); err != nil || left != 0 {
				t.Errorf("%d subscriptions are left: %v", left, err)
			}
		}
		leave()
		var self struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET /user", As: eve, Status: 200}).JSON(t, &self)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /users/%d", self.ID), As: apptest.RootToken, Status: 204})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		leave()
	})
}
