package notify_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/db"
	"svc/internal/mail/mailtest"
	"svc/internal/notify"
)

// hold stops the queue, so that the test can change permissions before it runs the
// jobs with work.
func (f *fixture) hold() {
	f.t.Helper()
	if err := f.Queue.Stop(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	if err := f.DB.QueryRowContext(f.t.Context(), `SELECT COALESCE(max(id), 0) FROM notification_acts`).Scan(&f.last); err != nil {
		f.t.Fatal(err)
	}
}

// work runs the queued jobs in the usual order: it finds the recipients of new
// events, then sends the emails. It returns the error of each delivery.
func (f *fixture) work() (came []error) {
	f.t.Helper()
	ids := func(query string, args ...any) []int64 {
		list, err := db.All(f.t.Context(), f.DB, db.Value[int64], query, args...)
		if err != nil {
			f.t.Fatal(err)
		}
		return list
	}
	for _, id := range ids(`SELECT id FROM notification_acts WHERE id > ? ORDER BY id`, f.last) {
		if err := f.Notify.FindRecipients(f.t.Context(), notify.RecipientWork{EventID: id}); err != nil {
			f.t.Fatal(err)
		}
		f.last = id
	}
	for _, id := range ids(`SELECT id FROM notification_letters WHERE state IN ('waiting', 'closed', 'sending') ORDER BY id`) {
		came = append(came, f.Notify.Deliver(f.t.Context(), notify.Delivery{EmailID: id}))
	}
	return came
}

// sent runs the jobs and returns the emails that arrived, by username.
func (f *fixture) sent() map[string]mailtest.Email {
	f.t.Helper()
	for _, err := range f.work() {
		if err != nil {
			f.t.Error(err)
		}
	}
	got := map[string]mailtest.Email{}
	for _, l := range f.mail.Take() {
		name, _, _ := strings.Cut(l.To, "@")
		got[name] = l
	}
	return got
}

// TestLeaks checks that emails do not leak what their recipients may not see, when
// permissions change between the event and the email.
func TestLeaks(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, m *mailtest.Server) {
		f := newFixture(t, s, m, "owner", "guest", "planner", "leaver", "blocked", "unproven", "alien")
		f.group = f.do("owner", "POST /groups", `{"name":"Secret","path":"secret","visibility":"private"}`, 201)
		f.project = f.do("owner", "POST /projects", fmt.Sprintf(`{"name":"Vault","path":"vault","namespace_id":%d,"visibility":"private"}`, f.group), 201)
		at := fmt.Sprintf("/projects/%d", f.project)
		for who, level := range map[string]int{"guest": 10, "planner": 15, "leaver": 30, "blocked": 30, "unproven": 30} {
			f.member("projects", f.project, who, level)
			f.level(who, at, `{"level":"watch"}`)
		}
		f.level("owner", "", `{"level":"watch"}`)
		f.hold()
		all := "owner, guest, planner, leaver, blocked, unproven, alien"
		calls := "@" + strings.ReplaceAll(all, ", ", " @")
		n := 0
		for _, row := range []struct {
			name   string
			hidden bool               // the issue is confidential
			event  func(issue string) // another event than the new issue
			then   func(issue string) // runs before emails are sent
			want   string             // who gets the secret; no one else gets an email
		}{
			{"an issue of a private project", false, nil, nil, "blocked, guest, leaver, owner, planner, unproven"},
			{"a confidential issue", true, nil, nil, "blocked, leaver, owner, planner, unproven"},
			{"an issue that became confidential", false, nil, func(issue string) { f.do("root", "PUT "+issue, `{"confidential":true}`, 200) }, "blocked, leaver, owner, planner, unproven"},
			{"an internal note", false, func(issue string) {
				f.do("root", "POST "+issue+"/notes", fmt.Sprintf(`{"body":"SECRET %s","internal":true}`, calls), 201)
			}, nil, "blocked, leaver, owner, planner, unproven"},
			{"a note that is gone", false, func(issue string) {
				id := f.do("root", "POST "+issue+"/notes", `{"body":"SECRET"}`, 201)
				f.do("root", fmt.Sprintf("DELETE %s/notes/%d", issue, id), "", 204)
			}, nil, ""},
			{"an issue that is gone", false, nil, func(issue string) { f.do("root", "DELETE "+issue, "", 204) }, ""},
			{"a project without emails", false, nil, func(string) { f.do("root", "PUT "+at, `{"emails_enabled":false}`, 200) }, ""},
			{"a group without emails", false, nil, func(string) {
				f.do("root", "PUT "+at, `{"emails_enabled":true}`, 200)
				f.do("root", fmt.Sprintf("PUT /groups/%d", f.group), `{"emails_enabled":false}`, 200)
			}, ""},
			{"users who left, were blocked, or have an address that is not confirmed", false, nil, func(string) {
				f.do("root", fmt.Sprintf("PUT /groups/%d", f.group), `{"emails_enabled":true}`, 200)
				f.do("root", fmt.Sprintf("DELETE %s/members/%d", at, f.ids["leaver"]), "", 204)
				f.do("root", fmt.Sprintf("POST /users/%d/block", f.ids["blocked"]), "", 201)
				f.unprove("unproven")
			}, "guest, owner, planner"},
			{"issues that are disabled", false, nil, func(string) { f.do("root", "PUT "+at, `{"issues_access_level":"disabled"}`, 200) }, ""},
		} {
			n++
			body := fmt.Sprintf(`{"title":"SECRET","description":"SECRET %s"`, calls)
			switch {
			case row.hidden:
				body += `,"confidential":true`
			case row.event != nil:
				body = `{"title":"SECRET"`
			}
			f.do("root", "POST "+at+"/issues", body+"}", 201)
			issue := fmt.Sprintf("%s/issues/%d", at, n)
			if row.event != nil {
				f.sent()
				row.event(issue)
			}
			if row.then != nil {
				row.then(issue)
			}
			got := f.sent()
			if list := strings.Join(slices.Sorted(maps.Keys(got)), ", "); list != row.want {
				t.Errorf("%s: emails go to %q, want %q", row.name, list, row.want)
			}
			for who, l := range got {
				if !strings.Contains(l.Text, "SECRET") || !strings.Contains(l.HTML, "SECRET") {
					t.Errorf("%s: the email to %s does not contain it: %s", row.name, who, l.Text)
				}
			}
		}
	})
}

// unprove makes a user's address unconfirmed.
func (f *fixture) unprove(who string) {
	f.t.Helper()
	for _, query := range []string{`UPDATE users SET confirmed_at = NULL WHERE id = ?`, `UPDATE emails SET confirmed_at = NULL WHERE user_id = ?`} {
		if _, err := f.DB.ExecContext(f.t.Context(), query, f.ids[who]); err != nil {
			f.t.Fatal(err)
		}
	}
}

// TestPartly checks an email about several events, not all of which its recipient
// may see, and about an issue that was moved to a hidden project.
func TestPartly(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, m *mailtest.Server) {
		f := newFixture(t, s, m, "owner", "guest")
		f.project = f.do("owner", "POST /projects", `{"name":"Open","path":"open","visibility":"public"}`, 201)
		vault := f.do("owner", "POST /projects", `{"name":"Vault","path":"vault","visibility":"private"}`, 201)
		at := fmt.Sprintf("/projects/%d", f.project)
		f.hold()
		f.do("guest", "POST "+at+"/issues", `{"title":"Mine"}`, 201)
		var bot struct{ Token string }
		s.Check(t, apptest.Call{Do: "POST " + at + "/access_tokens", As: f.as["owner"], JSON: `{"name":"bot","scopes":["api"],"access_level":30,"expires_at":"2026-12-01"}`, Status: 201}).JSON(t, &bot)
		f.as["bot"] = bot.Token
		f.do("bot", "POST "+at+"/issues/1/notes", `{"body":"I count"}`, 201)
		if got := f.sent(); len(got) != 1 || got["guest"].To == "" {
			t.Errorf("of what a program wrote: %v", got)
		}
		// A burst of events becomes one email, without events that the recipient may
		// not see.
		f.do("owner", "POST "+at+"/issues/1/notes", `{"body":"an open word"}`, 201)
		f.do("owner", "POST "+at+"/issues/1/notes", `{"body":"SECRET @guest","internal":true}`, 201)
		f.do("owner", "PUT "+at+"/issues/1", `{"state_event":"close"}`, 200)
		got := f.sent()
		l := got["guest"]
		if len(got) != 1 || !strings.Contains(l.Text, "an open word") || !strings.Contains(l.Text, "owner closed the issue") || strings.Contains(l.Text+l.HTML, "SECRET") {
			t.Errorf("emails to %v: %s", slices.Sorted(maps.Keys(got)), l.Text)
		}
		if strings.Contains(l.Text+l.HTML, "you are mentioned") || l.Header.Get("X-Svc-NotificationReason") == "mentioned" {
			t.Errorf("the reason shows a note that the recipient may not see: %s", l.Text)
		}

		f.do("owner", fmt.Sprintf("POST %s/issues/1/move", at), fmt.Sprintf(`{"to_project_id":%d}`, vault), 201)
		l = f.sent()["guest"]
		if !strings.Contains(l.Text, "moved the issue to another project") || strings.Contains(l.Text+l.HTML, "vault") {
			t.Errorf("of where the issue went: %s", l.Text)
		}

		// The email links to the new issue if the recipient can see it.
		shelf := f.do("owner", "POST /projects", `{"name":"Shelf","path":"shelf","visibility":"public"}`, 201)
		f.do("guest", "POST "+at+"/issues", `{"title":"Mine too"}`, 201)
		f.do("owner", fmt.Sprintf("POST %s/issues/2/move", at), fmt.Sprintf(`{"to_project_id":%d}`, shelf), 201)
		l = f.sent()["guest"]
		if !strings.Contains(l.Text, "moved the issue to owner/shelf#1") || !strings.Contains(l.Text, s.URL+"/owner/shelf/-/issues/1") || strings.Contains(l.Text, "/open/-/issues/2") {
			t.Errorf("of an issue that moved: %s", l.Text)
		}
	})
}
