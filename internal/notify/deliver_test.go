package notify_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/mail/mailtest"
)

// TestOnce interrupts delivery at each step and checks that the email arrives at
// most once.
func TestOnce(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, m *mailtest.Server) {
		f := newFixture(t, s, m, "owner", "guest")
		f.project = f.do("owner", "POST /projects", `{"name":"Open","path":"open","visibility":"public"}`, 201)
		at := fmt.Sprintf("/projects/%d/issues", f.project)
		f.do("guest", "POST "+at, `{"title":"Mine"}`, 201)
		f.settle()
		f.hold()
		state := func(want string) {
			t.Helper()
			var got string
			if err := s.DB.QueryRowContext(t.Context(), `SELECT state FROM notification_letters ORDER BY id DESC LIMIT 1`).Scan(&got); err != nil || got != want {
				t.Errorf("the email is %s (%v), want %s", got, err, want)
			}
		}
		arrived := func(want int) {
			t.Helper()
			if got := m.Take(); len(got) != want {
				t.Errorf("%d emails arrived, want %d", len(got), want)
			}
		}
		for _, row := range []struct {
			name  string
			mail  func() // what the mail server does
			wrong bool   // the first attempt fails and is retried
			crash bool   // the result of the first attempt was not recorded
			first int    // emails that arrive by the first attempt
			again int    // emails that arrive by two more attempts
			end   string // state of the email
		}{
			{name: "all is well", first: 1, end: "sent"},
			{name: "a crash after it was sent", crash: true, first: 1, end: "unclear"},
			{name: "the server goes away after it took the email", mail: m.Vanish, first: 1, end: "unclear"},
			{name: "the server is busy", mail: func() { m.Refuse("451 later") }, wrong: true, again: 1, end: "sent"},
			{name: "the server knows no such person", mail: func() { m.Refuse("550 nobody") }, end: "refused"},
		} {
			f.do("owner", "POST "+at+"/1/notes", `{"body":"hello"}`, 201)
			if row.mail != nil {
				row.mail()
			}
			if came := f.work(); len(came) != 1 || (came[0] != nil) != row.wrong {
				t.Errorf("%s: the first try came to %v", row.name, came)
			}
			arrived(row.first)
			if row.crash {
				if _, err := s.DB.ExecContext(t.Context(), `UPDATE notification_letters SET state = 'sending' WHERE id = (SELECT max(id) FROM notification_letters)`); err != nil {
					t.Fatal(err)
				}
			}
			f.work()
			f.work()
			arrived(row.again)
			state(row.end)
			if t.Failed() {
				t.Fatal(row.name)
			}
		}
	})
}

// TestFirstComment checks that an email with several comments links to the first
// one.
func TestFirstComment(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, m *mailtest.Server) {
		f := newFixture(t, s, m, "owner", "guest")
		f.project = f.do("owner", "POST /projects", `{"name":"Open","path":"open","visibility":"public"}`, 201)
		at := fmt.Sprintf("/projects/%d/issues", f.project)
		f.do("guest", "POST "+at, `{"title":"Mine"}`, 201)
		f.settle()
		f.hold()
		first := f.do("owner", "POST "+at+"/1/notes", `{"body":"hello"}`, 201)
		f.do("owner", "POST "+at+"/1/notes", `{"body":"again"}`, 201)
		m.Take()
		f.work()
		emails := m.Take()
		if len(emails) != 1 || !strings.Contains(emails[0].Text, "hello") || !strings.Contains(emails[0].Text, "again") {
			t.Fatalf("the emails are %+v, want one with both comments", emails)
		}
		link := fmt.Sprintf("/open/-/issues/1#note_%d", first)
		if !strings.Contains(emails[0].Text, link+"\n") {
			t.Errorf("the email does not link to %s:\n%s", link, emails[0].Text)
		}
	})
}

// TestEmail checks the headers and the body of emails.
func TestEmail(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, m *mailtest.Server) {
		f := newFixture(t, s, m, "owner", "guest")
		f.group = f.do("owner", "POST /groups", `{"name":"Top","path":"top","visibility":"public"}`, 201)
		f.project = f.do("owner", "POST /projects", fmt.Sprintf(`{"name":"Open | Shop","path":"open","visibility":"public","namespace_id":%d}`, f.group), 201)
		at := fmt.Sprintf("/projects/%d", f.project)
		f.do("root", fmt.Sprintf("PUT /users/%d", f.ids["owner"]), `{"name":"Mallory\" <m@evil.example>"}`, 200)
		f.hold()
		f.do("owner", "POST "+at+"/issues", `{"title":"Grüße\nBcc: evil@example.org","description":"<script>alert(1)</script>\n\n**bold** ![cat](https://evil.example/pixel.png) @guest #1 [up](/uploads/x)"}`, 201)
		first := f.sent()["guest"]
		for name, want := range map[string]string{
			"List-Id": fmt.Sprintf("top/open <%d.open.top.127.0.0.1>", f.project), "Auto-Submitted": "auto-generated", "X-Auto-Response-Suppress": "All",
			"List-Unsubscribe-Post": "List-Unsubscribe=One-Click", "In-Reply-To": "", "X-Svc-Project": "open", "X-Svc-Project-Path": "top/open",
			"X-Svc-Project-Id": fmt.Sprint(f.project), "X-Svc-Notificationreason": "mentioned", "X-Svc-Issue-Iid": "1", "X-Svc-Issue-State": "opened",
			"X-Svc-Confidentialissue": "false", "Bcc": "",
		} {
			if got := first.Header.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		if want := "Open | Shop | Grüße Bcc: evil@example.org (#1)"; first.Subject != want {
			t.Errorf("the subject is %q, want %q", first.Subject, want)
		}
		if from, err := first.Header.AddressList("From"); err != nil || len(from) != 1 || from[0].Address != "forge@example.org" || from[0].Name != `Mallory" <m@evil.example> (svc)` {
			t.Errorf("it is from %v: %v", from, err)
		}
		for _, want := range []string{"opened an issue", "<strong>bold</strong>", `/-/image_proxy/`, `href="` + s.URL + `/guest"`, `href="` + s.URL + `/top/open/-/issues/1"`, "because you were mentioned"} {
			if !strings.Contains(first.HTML, want) {
				t.Errorf("the HTML lacks %q: %s", want, first.HTML)
			}
		}
		for _, bad := range []string{"<script", "<img", "<m@evil"} {
			if strings.Contains(first.HTML, bad) {
				t.Errorf("the HTML has %q: %s", bad, first.HTML)
			}
		}
		f.do("owner", "POST "+at+"/issues/1/notes", `{"body":"and more"}`, 201)
		second := f.sent()["guest"]
		id := first.Header.Get("Message-Id")
		if second.Header.Get("In-Reply-To") != id || second.Header.Get("References") != id || second.Header.Get("Message-Id") == id || second.Subject != "Re: "+first.Subject {
			t.Errorf("the second email does not belong to %s: %v", id, second.Header)
		}
		if !regexp.MustCompile(`/top/open/-/issues/1#note_\d+`).MatchString(second.Text) {
			t.Errorf("it does not lead to the note: %s", second.Text)
		}
	})
}

// TestOthers checks notifications of pipelines, due dates and moved projects.
func TestOthers(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, m *mailtest.Server) {
		f := newFixture(t, s, m, "owner", "worker", "deaf")
		f.group = f.do("owner", "POST /groups", `{"name":"Top","path":"top","visibility":"private"}`, 201)
		f.project = f.do("owner", "POST /projects", `{"name":"Shop","path":"shop","visibility":"private","initialize_with_readme":true}`, 201)
		at := fmt.Sprintf("/projects/%d", f.project)
		f.member("projects", f.project, "worker", 40)
		f.member("projects", f.project, "deaf", 30)
		f.level("deaf", at, `{"level":"mention"}`)
		f.hold()

		var head struct{ ID string }
		s.Check(t, apptest.Call{Do: "GET " + at + "/repository/commits/main", As: f.as["worker"], Status: 200}).JSON(t, &head)
		status := func(state string) {
			f.do("worker", "POST "+at+"/statuses/"+head.ID, `{"ref":"main","name":"check","state":"`+state+`"}`, 201)
		}
		commit := func(n string) {
			s.Check(t, apptest.Call{Do: "POST " + at + "/repository/files/" + n, As: f.as["worker"], JSON: `{"branch":"main","content":"x","commit_message":"more"}`, Status: 201})
			s.Check(t, apptest.Call{Do: "GET " + at + "/repository/commits/main", As: f.as["worker"], Status: 200}).JSON(t, &head)
		}
		for _, row := range []struct{ name, want string }{
			{"success", ""}, {"failed", "Shop | Failed pipeline for main"}, {"success", "Shop | Fixed pipeline for main"}, {"success", ""},
			{"custom", "Shop | Successful pipeline for main"},
		} {
			commit(strings.ReplaceAll(row.name, " ", "") + fmt.Sprint(len(head.ID), f.last))
			state := row.name
			if state == "custom" {
				f.level("worker", "", `{"level":"custom","success_pipeline":true}`)
				state = "success"
			}
			status(state)
			got := f.sent()
			if len(got) > 1 || !strings.HasPrefix(got["worker"].Subject, row.want) || row.want == "" && len(got) > 0 {
				t.Errorf("%s pipeline: %d emails, %q, want %q", row.name, len(got), got["worker"].Subject, row.want)
			}
		}

		today := s.Clock.Now().Format("2006-01-02")
		f.do("owner", "POST "+at+"/issues", fmt.Sprintf(`{"title":"Soon","due_date":"%s","assignee_ids":[%d,%d]}`, s.Clock.Now().AddDate(0, 0, 1).Format("2006-01-02"), f.ids["worker"], f.ids["deaf"]), 201)
		f.do("owner", "POST "+at+"/issues", fmt.Sprintf(`{"title":"Now","due_date":"%s"}`, today), 201)
		f.sent()
		due := func(want string) {
			t.Helper()
			if err := s.Plan.NotifyDue(t.Context()); err != nil {
				t.Fatal(err)
			}
			var subjects []string
			f.work()
			for _, l := range m.Take() {
				name, _, _ := strings.Cut(l.To, "@")
				subjects = append(subjects, name+" "+l.Subject)
			}
			if got := strings.Join(subjects, ", "); got != want {
				t.Errorf("due: %q, want %q", got, want)
			}
		}
		due("owner Re: Shop | Now (#2), owner Re: Shop | Soon (#1), worker Re: Shop | Soon (#1)")
		due("")

		f.do("owner", "PUT "+at+"/transfer", fmt.Sprintf(`{"namespace":%d}`, f.group), 200)
		got := f.sent()
		if len(got) != 1 || !strings.Contains(got["worker"].Text, "Project owner/shop was moved to top/shop.") || got["worker"].Subject != "Shop | Project was moved" {
			t.Errorf("of a project that moved: %v", got)
		}
		f.do("owner", fmt.Sprintf("PUT /groups/%d", f.group), `{"name":"Renamed"}`, 200)
		f.do("owner", fmt.Sprintf("PUT /groups/%d", f.group), `{"path":"up"}`, 200)
		if got := f.sent(); len(got) != 1 || !strings.Contains(got["worker"].Text, "Project top/shop was moved to up/shop.") {
			t.Errorf("of a group that moved: %v", got)
		}
	})
}
