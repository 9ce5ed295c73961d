package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// TestIssuePages creates, plans, discusses and closes an issue on pages.
func TestIssuePages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		eveID, _ := s.User(t, "eve")
		call := func(do string, form url.Values) {
			t.Helper()
			s.Check(t, apptest.Call{Do: do, As: ada, Form: form, Status: 201})
		}
		call("POST /projects", url.Values{"path": {"p"}, "visibility": {"public"}})
		call("POST /projects", url.Values{"path": {"other"}, "visibility": {"public"}})
		call("POST /projects/ada%2Fp/labels", url.Values{"name": {"bug"}, "color": {"#ff0000"}})
		call("POST /projects/ada%2Fp/milestones", url.Values{"title": {"1.0"}})
		b, eve := newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("eve", password)

		const at = "/ada/p/-/issues"
		b.get(at).want(200, "Create an issue")
		newBrowser(t, s).get(at).want(200, "No issues yet").not("issues/new")
		goal := regexp.MustCompile(`<option value="(\d+)">1.0</option>`).FindStringSubmatch(b.get(at+"/new").want(200, `value="bug"`).body)[1]
		b.submit(at+"/new", at, "title", "").want(422, "can&#39;t be blank")
		b.submit(at+"/new", at, "title", "x", "planned", "1", "due_date", "soon").want(422, "is not a date")
		b.submit(at+"/new", at, "title", "x", "description", "**bold**", "preview", "1").want(200, "<strong>bold</strong>", `value="x"`)
		b.submit(at+"/new", at, "title", "Mend the engine", "description", "Steps:\r\n\r\n- [ ] look\r\n- [x] think\r\n", "planned", "1", "labels", "bug", "milestone_id", goal,
			"due_date", "2020-01-02", "assignee_ids", fmt.Sprint(eveID)).leads(at + "/1")
		s.Check(t, apptest.Call{Do: "GET /projects/ada%2Fp/issues/1", As: apptest.RootToken, Status: 200, Want: `{"description":"Steps:\n\n- [ ] look\n- [x] think\n"}`})
		page := b.get(at+"/1").want(200, "Mend the engine", "1 of 2 tasks done", "bug", "1.0", "(overdue)", `href="/eve"`, `value="0 true"`, `name="event" value="close"`)
		newBrowser(t, s).get(at+"/1").want(200, "Mend the engine", "Sign in").not(`name="task"`, "data-sheet", "<form method=\"post\"")
		if len(page.body) > 50<<10 {
			t.Errorf("the page has %d bytes", len(page.body))
		}
		eve.get("/dashboard/issues").want(200, "Mend the engine", "ada/p#1")
		b.get("/dashboard/issues?scope=created_by_me").want(200, "Mend the engine")

		// Tasks: two users check different tasks at once, and both are saved; a page
		// with an old description gets an error.
		b.submit(at+"/1", at+"/1/tasks", "task", "0 true").leads(at + "/1")
		b.submit(at+"/1", at+"/1/tasks", "task", "0 true").leads(at + "/1")
		b.get(at+"/1").want(200, "The task list has been changed", "2 of 2 tasks done")
		b.submit(at+"/1", at+"/1/tasks", "task", "9 true").leads(at + "/1")
		b.submit(at+"/1", at+"/1/tasks", "task", "x").want(422)

		// The forms of single fields.
		b.get(at+"/1/edit/labels").want(200, `name="labels" value="bug" checked`)
		b.get(at+"/1/edit/assignees").want(200, fmt.Sprintf(`value="%d" checked`, eveID))
		b.get(at + "/1/edit/nothing").want(404)
		b.submit(at+"/1", at+"/1/edit/nothing").want(404)
		b.submit(at+"/1", at+"/1/edit/labels", "new_label", "urgent").leads(at + "/1")
		b.submit(at+"/1", at+"/1/edit/due_date", "due_date", "never").want(422, "is not a date")
		b.submit(at+"/1", at+"/1/edit/due_date", "due_date", "").leads(at + "/1")
		b.submit(at+"/1", at+"/1/edit/milestone", "milestone_id", "0").leads(at + "/1")
		b.submit(at+"/1", at+"/1/edit/assignees").leads(at + "/1")
		b.get(at+"/1").want(200, "urgent", "None", "removed due date", "removed milestone").not("(overdue)")

		// An edit of a description that another user has changed is refused, and
		// neither text is lost.
		edit := b.get(at + "/1/edit").want(200)
		was := regexp.MustCompile(`name="was" value="(\w+)"`).FindStringSubmatch(edit.body)[1]
		b.submit(at+"/1/edit", at+"/1", "title", "Fix it", "description", "mine", "was", "0000").want(422, "in the meantime", ">mine</textarea>")
		b.submit(at+"/1/edit", at+"/1", "title", "Fix it", "description", "mine #1", "was", was).leads(at + "/1")
		b.get(at+"/1").want(200, "Fix it", `href="/ada/p/-/issues/1"`)

		// Comments.
		b.submit(at+"/1", at+"/1/notes", "note", "").want(422, "can&#39;t be blank")
		eve.submit(at+"/1", at+"/1/notes", "note", "*hello*", "preview", "1").want(200, "<em>hello</em>")
		note := regexp.MustCompile(`#note_(\d+)$`).FindStringSubmatch(eve.submit(at+"/1", at+"/1/notes", "note", "*hello*").header.Get("Location"))[1]
		eve.get(at+"/1").want(200, "<em>hello</em>", "/notes/"+note+"/edit")
		eve.get(at+"/1/notes/"+note+"/edit").want(200, "*hello*</textarea>")
		eve.submit(at+"/1", at+"/1/notes/"+note, "note", "changed").leads(at + "/1#note_" + note)
		thread := regexp.MustCompile(`/discussions/(\w+)"`).FindStringSubmatch(eve.get(at + "/1").body)[1]
		eve.submit(at+"/1", at+"/1/discussions/"+thread, "note", "a reply").want(303)
		eve.submit(at+"/1", at+"/1/discussions/"+thread+"/resolve", "resolved", "1").want(403)
		b.submit(at+"/1", at+"/1/discussions/"+thread+"/resolve", "resolved", "1").want(303)
		b.get(at+"/1").want(200, "Resolved by ada", "Reopen thread", "2 comments")
		b.submit(at+"/1", at+"/1/discussions/"+thread+"/resolve").want(303)
		b.submit(at+"/1", at+"/1/notes", "note", "quiet words", "internal", "1").want(303)
		b.get(at+"/1").want(200, "quiet words")
		eve.get(at+"/1").want(200).not("quiet words", "Internal")
		eve.submit(at+"/1", at+"/1/notes/"+note+"/delete").leads(at + "/1")
		eve.get(at + "/1/notes/" + note + "/edit").want(404)
		b.submit(at+"/1", at+"/1/notes", "note", "done", "event", "close").want(303)
		b.get(at+"/1").want(200, "Closed", "Reopen", "done")
		b.submit(at+"/1", at+"/1/notes", "note", "", "event", "reopen").leads(at + "/1")
		b.get(at+"/1").want(200, "The issue was reopened", "Close issue")

		// Locked discussion, links, subscription, move, deletion.
		b.submit(at+"/1", at+"/1/turn", "event", "lock").leads(at + "/1")
		eve.get(at+"/1").want(200, "locked to project members").not(`/notes" `)
		eve.submit(at+"/1", at+"/1/notes", "note", "x").want(403)
		eve.submit(at+"/1", at+"/1/turn", "event", "unlock").want(403)
		b.submit(at+"/1", at+"/1/turn", "event", "unlock").leads(at + "/1")
		b.submit(at+"/1", at+"/1/turn", "event", "explode").want(422)
		b.submit(at+"/new", at, "title", "Another").leads(at + "/2")
		b.submit(at+"/1", at+"/1/links", "issue", "#2", "kind", "blocks").leads(at + "/1")
		b.get(at+"/2").want(200, "is blocked by", "Fix it")
		b.submit(at+"/1", at+"/1/links", "issue", "ada/other#77").leads(at + "/1")
		b.get(at+"/1").want(200, "The issue does not exist")
		link := regexp.MustCompile(`links/(\d+)/delete`).FindStringSubmatch(b.get(at + "/1").body)[1]
		b.submit(at+"/1", at+"/1/links/"+link+"/delete").leads(at + "/1")
		b.get(at+"/1").want(200, "Unsubscribe")
		b.submit(at+"/1", at+"/1/subscribe").leads(at + "/1")
		b.get(at+"/1").want(200, ">Subscribe</button>")
		b.submit(at+"/2/move", at+"/2/move", "project", "nothing/here").want(422, "does not exist, or you")
		b.submit(at+"/2/move", at+"/2/move", "project", "ada/other").leads("/ada/other/-/issues/1")
		b.get(at+"/2").want(200, "Moved", "moved to an issue of another project")
		b.submit(at+"/2", at+"/2/delete").leads(at)
		b.get(at + "/2").want(404)
		eve.submit(at+"/1", at+"/1/delete").want(403)

		// Lists.
		for query, found := range map[string]bool{
			"": true, "?state=closed": false, "?state=all": true, "?author_username=ada": true, "?author_username=eve": false, "?assignee_username=None": true,
			"?assignee_username=eve": false, "?label_name[]=urgent": true, "?label_name[]=urgent,bug": false, "?milestone_title=None": true, "?milestone_title=1.0": false,
			"?search=FIX": true, "?search=nothing": false, "?confidential=yes": false, "?confidential=no": true, "?sort=due_date": true, "?sort=nonsense": true, "?page=9": false,
		} {
			if got := strings.Contains(b.get(at+query).want(200).body, "Fix it"); got != found {
				t.Errorf("%s: found %v", query, got)
			}
		}
		b.get("/ada/p").want(200, `/-/issues">Issues <span class="count">1</span>`)
	})
}

// TestEditor previews texts and uploads files into them.
func TestEditor(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		s.User(t, "eve")
		s.Check(t, apptest.Call{Do: "POST /projects", As: ada, Form: url.Values{"path": {"p"}}, Status: 201})
		b, eve := newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("eve", password)
		token := b.get("/").token()
		b.post("/ada/p/-/preview_markdown", url.Values{"authenticity_token": {token}, "text": {"**x** <script>alert(1)</script>"}}).want(200, "<strong>x</strong>").not("<script", "<html")
		eve.post("/ada/p/-/preview_markdown", url.Values{"authenticity_token": {eve.get("/").token()}, "text": {"x"}}).want(404)
		s.Table(t, []apptest.Call{
			{Do: "POST /projects/ada%2Fp/labels", As: ada, JSON: `{"name":"to do","color":"#ff0000"}`, Status: 201},
			{Do: "POST /projects/ada%2Fp/labels", As: ada, JSON: `{"name":"size::größe","color":"#00ff00"}`, Status: 201},
			{Do: "POST /projects/ada%2Fp/issues", As: ada, JSON: `{"title":"one"}`, Status: 201},
			{Do: "POST /projects/ada%2Fp/issues", As: ada, JSON: `{"title":"two"}`, Status: 201},
		})
		preview := func(query, text string) answer {
			return b.post("/ada/p/-/preview_markdown"+query, url.Values{"authenticity_token": {token}, "text": {text}}).want(200)
		}
		preview("", `~"to do" ~size::größe.`).want(200, `class="gfm gfm-label chip"><svg viewBox="0 0 8 8" aria-hidden="true"><circle cx="4" cy="4" r="4" fill="#ff0000"/></svg>to do</a>`,
			`fill="#00ff00"/></svg>size::größe</a>.`)
		preview("", "/close").want(200, "/close").not("Quick actions")
		preview("?on=issues&iid=1", "Done.\n/assign @ada\n/label ~\"to do\"\n/title <b>\n/spend 1h\n/duplicate #2\n/todo\n/clone\n/subscribe\n/nonsense\n/approve\n/reopen\n/due x\n/usr/bin").want(200,
			"<p>Done.", "<li>Assigns @ada.</li>", "<li>Adds ~&#34;to do&#34; label.</li>", "<li>Changes the title to “&lt;b&gt;”.</li>", "<li>Adds 1h of spent time.</li>", "<li>Closes this issue as a duplicate of #2.</li>",
			"<li>Adds a to-do item.</li>", "<li>Clones the issue to a project.</li>", "<li>Subscribes to notifications.</li>",
			`<li class="refused">/nonsense is not a quick action. It remains in the text.</li>`, `<li class="refused">/approve cannot be used on issues. It remains in the text.</li>`,
			`<li class="refused">Could not apply reopen command.</li>`, `<li class="refused">Failed to set due date because the date format is invalid.</li>`).not("/assign", "/usr/bin is")
		s.Check(t, apptest.Call{Do: "GET /projects/ada%2Fp/issues/1", As: ada, Status: 200, Want: `{"title":"one","state":"opened","labels":[],"assignees":[]}`})
		preview("?on=issues", "/close\n/weight 3").want(200, `<li class="refused">Could not apply close command.</li>`, "<li>Sets the weight to 3.</li>")
		b.post("/ada/p/-/preview_markdown?on=issues&iid=9", url.Values{"authenticity_token": {token}, "text": {"x"}}).want(404)
		b.post("/ada/p/-/issues/1/notes", url.Values{"authenticity_token": {token}, "note": {"/close"}, "preview": {"1"}}).want(200, "<li>Closes this issue.</li>")
		b.post("/ada/p/-/issues", url.Values{"authenticity_token": {token}, "title": {"x"}, "description": {"/weight 3"}, "preview": {"1"}}).want(200, "<li>Sets the weight to 3.</li>")
		send := func(b *browser, name, token, body string) answer {
			r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/ada/p/-/uploads?name="+url.QueryEscape(name), strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Csrf-Token", token)
			return b.send(r)
		}
		send(b, "a.png", "", "x").want(422)
		send(b, "a.png", eve.get("/").token(), "x").want(422)
		send(eve, "a.png", eve.get("/").token(), "x").want(404)
		send(b, "", token, "x").want(422)
		link := regexp.MustCompile(`^\{"markdown":"!\[a \(1\).png\]\((/uploads/\w+/a%20%281%29.png)\)"\}\s$`).FindStringSubmatch(send(b, `../x\a (1).png`, token, "picture").want(200).body)
		if link == nil {
			t.Fatal("no link")
		}
		shown := b.post("/ada/p/-/preview_markdown", url.Values{"authenticity_token": {token}, "text": {"![a](" + link[1] + ")"}}).want(200)
		src := regexp.MustCompile(`src="([^"]+)"`).FindStringSubmatch(shown.body)
		if src == nil {
			t.Fatalf("no picture: %s", shown.body)
		}
		b.get(src[1]).want(200, "picture")
		eve.get(src[1]).want(404)
		// A form that is too large.
		big, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/ada/p/-/uploads?name=big.bin", io.LimitReader(endless{}, 3<<20))
		if err != nil {
			t.Fatal(err)
		}
		big.ContentLength = 3 << 20
		big.Header.Set("X-Csrf-Token", token)
		b.send(big).want(200, `"[big.bin](`)
	})
}

// endless is a reader that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
