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

// hold stops the queue: the test does its work by hand, after something else has
// happened.
func (st *stage) hold() {
	st.t.Helper()
	if err := st.Queue.Stop(st.t.Context()); err != nil {
		st.t.Fatal(err)
	}
	if err := st.DB.QueryRowContext(st.t.Context(), `SELECT COALESCE(max(id), 0) FROM notification_acts`).Scan(&st.last); err != nil {
		st.t.Fatal(err)
	}
}

// work does what is in the queue, in the usual order: it finds the recipients
// of the new acts, then sends the emails. It returns the result of each sending.
func (st *stage) work() (came []error) {
	st.t.Helper()
	ids := func(query string, args ...any) []int64 {
		list, err := db.All(st.t.Context(), st.DB, db.Value[int64], query, args...)
		if err != nil {
			st.t.Fatal(err)
		}
		return list
	}
	for _, id := range ids(`SELECT id FROM notification_acts WHERE id > ? ORDER BY id`, st.last) {
		if err := st.Notify.FindRecipients(st.t.Context(), notify.RecipientWork{EventID: id}); err != nil {
			st.t.Fatal(err)
		}
		st.last = id
	}
	for _, id := range ids(`SELECT id FROM notification_letters WHERE state IN ('waiting', 'closed', 'sending') ORDER BY id`) {
		came = append(came, st.Notify.Deliver(st.t.Context(), notify.Delivery{EmailID: id}))
	}
	return came
}

// sent does the work and gives the letters that arrived, by their readers.
func (st *stage) sent() map[string]mailtest.Email {
	st.t.Helper()
	for _, err := range st.work() {
		if err != nil {
			st.t.Error(err)
		}
	}
	got := map[string]mailtest.Email{}
	for _, l := range st.mail.Take() {
		name, _, _ := strings.Cut(l.To, "@")
		got[name] = l
	}
	return got
}

// TestLeaks tells of what not everybody may know, and changes who may know it
// between the act and the letter.
func TestLeaks(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, m *mailtest.Server) {
		st := newStage(t, s, m, "owner", "guest", "planner", "leaver", "blocked", "unproven", "alien")
		st.group = st.do("owner", "POST /groups", `{"name":"Secret","path":"secret","visibility":"private"}`, 201)
		st.project = st.do("owner", "POST /projects", fmt.Sprintf(`{"name":"Vault","path":"vault","namespace_id":%d,"visibility":"private"}`, st.group), 201)
		at := fmt.Sprintf("/projects/%d", st.project)
		for who, level := range map[string]int{"guest": 10, "planner": 15, "leaver": 30, "blocked": 30, "unproven": 30} {
			st.member("projects", st.project, who, level)
			st.level(who, at, `{"level":"watch"}`)
		}
		st.level("owner", "", `{"level":"watch"}`)
		st.hold()
		all := "owner, guest, planner, leaver, blocked, unproven, alien"
		calls := "@" + strings.ReplaceAll(all, ", ", " @")
		n := 0
		for _, row := range []struct {
			name   string
			hidden bool               // the issue is confidential
			act    func(issue string) // what is told of, instead of the issue itself
			then   func(issue string) // what happens before letters are sent
			want   string             // who gets the secret; nobody else gets a letter
		}{
			{"an issue of a private project", false, nil, nil, "blocked, guest, leaver, owner, planner, unproven"},
			{"a confidential issue", true, nil, nil, "blocked, leaver, owner, planner, unproven"},
			{"an issue that became confidential", false, nil, func(issue string) { st.do("root", "PUT "+issue, `{"confidential":true}`, 200) }, "blocked, leaver, owner, planner, unproven"},
			{"an internal note", false, func(issue string) {
				st.do("root", "POST "+issue+"/notes", fmt.Sprintf(`{"body":"SECRET %s","internal":true}`, calls), 201)
			}, nil, "blocked, leaver, owner, planner, unproven"},
			{"a note that is gone", false, func(issue string) {
				id := st.do("root", "POST "+issue+"/notes", `{"body":"SECRET"}`, 201)
				st.do("root", fmt.Sprintf("DELETE %s/notes/%d", issue, id), "", 204)
			}, nil, ""},
			{"an issue that is gone", false, nil, func(issue string) { st.do("root", "DELETE "+issue, "", 204) }, ""},
			{"a project without letters", false, nil, func(string) { st.do("root", "PUT "+at, `{"emails_enabled":false}`, 200) }, ""},
			{"a group without letters", false, nil, func(string) {
				st.do("root", "PUT "+at, `{"emails_enabled":true}`, 200)
				st.do("root", fmt.Sprintf("PUT /groups/%d", st.group), `{"emails_enabled":false}`, 200)
			}, ""},
			{"people who left, were blocked, or have an address that is not confirmed", false, nil, func(string) {
				st.do("root", fmt.Sprintf("PUT /groups/%d", st.group), `{"emails_enabled":true}`, 200)
				st.do("root", fmt.Sprintf("DELETE %s/members/%d", at, st.ids["leaver"]), "", 204)
				st.do("root", fmt.Sprintf("POST /users/%d/block", st.ids["blocked"]), "", 201)
				st.unprove("unproven")
			}, "guest, owner, planner"},
			{"issues that nobody reads any more", false, nil, func(string) { st.do("root", "PUT "+at, `{"issues_access_level":"disabled"}`, 200) }, ""},
		} {
			n++
			body := fmt.Sprintf(`{"title":"SECRET","description":"SECRET %s"`, calls)
			switch {
			case row.hidden:
				body += `,"confidential":true`
			case row.act != nil:
				body = `{"title":"SECRET"`
			}
			st.do("root", "POST "+at+"/issues", body+"}", 201)
			issue := fmt.Sprintf("%s/issues/%d", at, n)
			if row.act != nil {
				st.sent()
				row.act(issue)
			}
			if row.then != nil {
				row.then(issue)
			}
			got := st.sent()
			if list := strings.Join(slices.Sorted(maps.Keys(got)), ", "); list != row.want {
				t.Errorf("%s: letters go to %q, want %q", row.name, list, row.want)
			}
			for who, l := range got {
				if !strings.Contains(l.Text, "SECRET") || !strings.Contains(l.HTML, "SECRET") {
					t.Errorf("%s: the letter to %s does not tell of it: %s", row.name, who, l.Text)
				}
			}
		}
	})
}

// unprove makes the address of somebody one that is not confirmed.
func (st *stage) unprove(who string) {
	st.t.Helper()
	for _, query := range []string{`UPDATE users SET confirmed_at = NULL WHERE id = ?`, `UPDATE emails SET confirmed_at = NULL WHERE user_id = ?`} {
		if _, err := st.DB.ExecContext(st.t.Context(), query, st.ids[who]); err != nil {
			st.t.Fatal(err)
		}
	}
}

// TestPartly has a letter tell of several acts, of which its reader may not know
// all, and of an issue that went where he sees nothing.
func TestPartly(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, m *mailtest.Server) {
		st := newStage(t, s, m, "owner", "guest")
		st.project = st.do("owner", "POST /projects", `{"name":"Open","path":"open","visibility":"public"}`, 201)
		vault := st.do("owner", "POST /projects", `{"name":"Vault","path":"vault","visibility":"private"}`, 201)
		at := fmt.Sprintf("/projects/%d", st.project)
		st.hold()
		st.do("guest", "POST "+at+"/issues", `{"title":"Mine"}`, 201)
		var bot struct{ Token string }
		s.Check(t, apptest.Call{Do: "POST " + at + "/access_tokens", As: st.as["owner"], JSON: `{"name":"bot","scopes":["api"],"access_level":30,"expires_at":"2026-12-01"}`, Status: 201}).JSON(t, &bot)
		st.as["bot"] = bot.Token
		st.do("bot", "POST "+at+"/issues/1/notes", `{"body":"I count"}`, 201)
		if got := st.sent(); len(got) != 1 || got["guest"].To == "" {
			t.Errorf("of what a program wrote: %v", got)
		}
		// A burst becomes one letter, without what is not for its reader.
		st.do("owner", "POST "+at+"/issues/1/notes", `{"body":"an open word"}`, 201)
		st.do("owner", "POST "+at+"/issues/1/notes", `{"body":"SECRET @guest","internal":true}`, 201)
		st.do("owner", "PUT "+at+"/issues/1", `{"state_event":"close"}`, 200)
		got := st.sent()
		l := got["guest"]
		if len(got) != 1 || !strings.Contains(l.Text, "an open word") || !strings.Contains(l.Text, "owner closed the issue") || strings.Contains(l.Text+l.HTML, "SECRET") {
			t.Errorf("letters to %v: %s", slices.Sorted(maps.Keys(got)), l.Text)
		}
		if strings.Contains(l.Text+l.HTML, "you are mentioned") || l.Header.Get("X-Svc-NotificationReason") == "mentioned" {
			t.Errorf("the reason tells of a note that is not for its reader: %s", l.Text)
		}

		st.do("owner", fmt.Sprintf("POST %s/issues/1/move", at), fmt.Sprintf(`{"to_project_id":%d}`, vault), 201)
		l = st.sent()["guest"]
		if !strings.Contains(l.Text, "moved the issue to another project") || strings.Contains(l.Text+l.HTML, "vault") {
			t.Errorf("of where the issue went: %s", l.Text)
		}
	})
}
