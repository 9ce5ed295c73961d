package notify_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/mail/mailtest"
)

// TestOnce breaks off at every point of the way of a letter: it arrives once.
func TestOnce(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, m *mailtest.Server) {
		st := newStage(t, s, m, "owner", "guest")
		st.project = st.do("owner", "POST /projects", `{"name":"Open","path":"open","visibility":"public"}`, 201)
		at := fmt.Sprintf("/projects/%d/issues", st.project)
		st.do("guest", "POST "+at, `{"title":"Mine"}`, 201)
		st.settle()
		st.hold()
		state := func(want string) {
			t.Helper()
			var got string
			if err := s.DB.QueryRowContext(t.Context(), `SELECT state FROM notification_letters ORDER BY id DESC LIMIT 1`).Scan(&got); err != nil || got != want {
				t.Errorf("the letter is %s (%v), want %s", got, err, want)
			}
		}
		arrived := func(want int) {
			t.Helper()
			if got := m.Take(); len(got) != want {
				t.Errorf("%d letters arrived, want %d", len(got), want)
			}
		}
		for _, row := range []struct {
			name  string
			mail  func() // what the mail server does
			wrong bool   // the first try is to be repeated
			crash bool   // the end of the first try was not written down
			first int    // letters that arrived by the first try
			again int    // and by two more
			end   string // state of the letter
		}{
			{name: "all is well", first: 1, end: "sent"},
			{name: "a crash after it was sent", crash: true, first: 1, end: "unclear"},
			{name: "the server goes away after it took the letter", mail: m.Vanish, first: 1, end: "unclear"},
			{name: "the server is busy", mail: func() { m.Refuse("451 later") }, wrong: true, again: 1, end: "sent"},
			{name: "the server knows no such person", mail: func() { m.Refuse("550 nobody") }, end: "refused"},
		} {
			st.do("owner", "POST "+at+"/1/notes", `{"body":"hello"}`, 201)
			if row.mail != nil {
				row.mail()
			}
			if came := st.work(); len(came) != 1 || (came[0] != nil) != row.wrong {
				t.Errorf("%s: the first try came to %v", row.name, came)
			}
			arrived(row.first)
			if row.crash {
				if _, err := s.DB.ExecContext(t.Context(), `UPDATE notification_letters SET state = 'sending' WHERE id = (SELECT max(id) FROM notification_letters)`); err != nil {
					t.Fatal(err)
				}
			}
			st.work()
			st.work()
			arrived(row.again)
			state(row.end)
			if t.Failed() {
				t.Fatal(row.name)
			}
		}
	})
}

// TestLetter looks at a letter as mail programs and people do.
func TestLetter(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, m *mailtest.Server) {
		st := newStage(t, s, m, "owner", "guest")
		st.group = st.do("owner", "POST /groups", `{"name":"Top","path":"top","visibility":"public"}`, 201)
		st.project = st.do("owner", "POST /projects", fmt.Sprintf(`{"name":"Open | Shop","path":"open","visibility":"public","namespace_id":%d}`, st.group), 201)
		at := fmt.Sprintf("/projects/%d", st.project)
		st.do("root", fmt.Sprintf("PUT /users/%d", st.ids["owner"]), `{"name":"Mallory\" <m@evil.example>"}`, 200)
		st.hold()
		st.do("owner", "POST "+at+"/issues", `{"title":"Grüße\nBcc: evil@example.org","description":"<script>alert(1)</script>\n\n**bold** ![cat](https://evil.example/pixel.png) @guest #1 [up](/uploads/x)"}`, 201)
		first := st.sent()["guest"]
		for name, want := range map[string]string{
			"List-Id": fmt.Sprintf("top/open <%d.open.top.localhost>", st.project), "Auto-Submitted": "auto-generated", "X-Auto-Response-Suppress": "All",
			"List-Unsubscribe-Post": "List-Unsubscribe=One-Click", "In-Reply-To": "", "X-Svc-Project": "open", "X-Svc-Project-Path": "top/open",
			"X-Svc-Project-Id": fmt.Sprint(st.project), "X-Svc-Notificationreason": "mentioned", "X-Svc-Issue-Iid": "1", "X-Svc-Issue-State": "opened",
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
		for _, want := range []string{"opened an issue", "<strong>bold</strong>", `<a href="https://evil.example/pixel.png"`, `href="` + s.URL + `/guest"`, `href="` + s.URL + `/top/open/-/issues/1"`, "because you are mentioned"} {
			if !strings.Contains(first.HTML, want) {
				t.Errorf("the HTML lacks %q: %s", want, first.HTML)
			}
		}
		for _, bad := range []string{"<script", "<img", "<m@evil"} {
			if strings.Contains(first.HTML, bad) {
				t.Errorf("the HTML has %q: %s", bad, first.HTML)
			}
		}
		st.do("owner", "POST "+at+"/issues/1/notes", `{"body":"and more"}`, 201)
		second := st.sent()["guest"]
		id := first.Header.Get("Message-Id")
		if second.Header.Get("In-Reply-To") != id || second.Header.Get("References") != id || second.Header.Get("Message-Id") == id || second.Subject != "Re: "+first.Subject {
			t.Errorf("the second letter does not belong to %s: %v", id, second.Header)
		}
		if !regexp.MustCompile(`/top/open/-/issues/1#note_\d+`).MatchString(second.Text) {
			t.Errorf("it does not lead to the note: %s", second.Text)
		}
	})
}

// TestOthers tells of what is no issue: pipelines, days, projects that move.
func TestOthers(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, m *mailtest.Server) {
		st := newStage(t, s, m, "owner", "worker", "deaf")
		st.group = st.do("owner", "POST /groups", `{"name":"Top","path":"top","visibility":"private"}`, 201)
		st.project = st.do("owner", "POST /projects", `{"name":"Shop","path":"shop","visibility":"private","initialize_with_readme":true}`, 201)
		at := fmt.Sprintf("/projects/%d", st.project)
		st.member("projects", st.project, "worker", 40)
		st.member("projects", st.project, "deaf", 30)
		st.level("deaf", at, `{"level":"mention"}`)
		st.hold()

		var head struct{ ID string }
		s.Check(t, apptest.Call{Do: "GET " + at + "/repository/commits/main", As: st.as["worker"], Status: 200}).JSON(t, &head)
		status := func(state string) {
			st.do("worker", "POST "+at+"/statuses/"+head.ID, `{"ref":"main","name":"check","state":"`+state+`"}`, 201)
		}
		commit := func(n string) {
			s.Check(t, apptest.Call{Do: "POST " + at + "/repository/files/" + n, As: st.as["worker"], JSON: `{"branch":"main","content":"x","commit_message":"more"}`, Status: 201})
			s.Check(t, apptest.Call{Do: "GET " + at + "/repository/commits/main", As: st.as["worker"], Status: 200}).JSON(t, &head)
		}
		for _, row := range []struct{ name, want string }{
			{"success", ""}, {"failed", "Shop | Failed pipeline for main"}, {"success", "Shop | Fixed pipeline for main"}, {"success", ""},
			{"custom", "Shop | Successful pipeline for main"},
		} {
			commit(strings.ReplaceAll(row.name, " ", "") + fmt.Sprint(len(head.ID), st.last))
			state := row.name
			if state == "custom" {
				st.level("worker", "", `{"level":"custom","success_pipeline":true}`)
				state = "success"
			}
			status(state)
			got := st.sent()
			if len(got) > 1 || !strings.HasPrefix(got["worker"].Subject, row.want) || row.want == "" && len(got) > 0 {
				t.Errorf("%s pipeline: %d letters, %q, want %q", row.name, len(got), got["worker"].Subject, row.want)
			}
		}

		today := s.Clock.Now().Format("2006-01-02")
		st.do("owner", "POST "+at+"/issues", fmt.Sprintf(`{"title":"Soon","due_date":"%s","assignee_ids":[%d,%d]}`, s.Clock.Now().AddDate(0, 0, 1).Format("2006-01-02"), st.ids["worker"], st.ids["deaf"]), 201)
		st.do("owner", "POST "+at+"/issues", fmt.Sprintf(`{"title":"Now","due_date":"%s"}`, today), 201)
		st.sent()
		due := func(want string) {
			t.Helper()
			if err := s.Plan.NotifyDue(t.Context()); err != nil {
				t.Fatal(err)
			}
			var subjects []string
			st.work()
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

		st.do("owner", "PUT "+at+"/transfer", fmt.Sprintf(`{"namespace":%d}`, st.group), 200)
		got := st.sent()
		if len(got) != 1 || !strings.Contains(got["worker"].Text, "The project owner/shop has moved to top/shop.") || got["worker"].Subject != "Shop | Project was moved" {
			t.Errorf("of a project that moved: %v", got)
		}
		st.do("owner", fmt.Sprintf("PUT /groups/%d", st.group), `{"name":"Renamed"}`, 200)
		st.do("owner", fmt.Sprintf("PUT /groups/%d", st.group), `{"path":"up"}`, 200)
		if got := st.sent(); len(got) != 1 || !strings.Contains(got["worker"].Text, "The project top/shop has moved to up/shop.") {
			t.Errorf("of a group that moved: %v", got)
		}
	})
}
