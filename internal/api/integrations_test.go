package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/waittest"
)

func TestIntegrations(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		allowLocal(t, s)
		r := newReceiver(t)
		_, alice := s.User(t, "alice")
		const at = "/projects/alice%2Fp"
		s.Table(t, []apptest.Call{
			{Do: "POST /projects", As: alice, JSON: `{"name":"p","initialize_with_readme":true}`, Status: 201},
			{Do: "GET " + at + "/integrations", As: alice, Status: 200, Want: `[]`},
			{Do: "GET " + at + "/integrations/slack", As: alice, Status: 404},
			{Do: "PUT " + at + "/integrations/jira", As: alice, JSON: `{}`, Status: 404},
			{Name: "no address", Do: "PUT " + at + "/integrations/slack", As: alice, JSON: `{}`, Status: 400, Want: `{"message":{"webhook":["can't be blank"]}}`},
			{Name: "not supported", Do: "PUT " + at + "/integrations/slack", As: alice, JSON: `{"webhook":"` + r.URL + `","alert_events":true}`, Status: 400},
			{Name: "wrong branches", Do: "PUT " + at + "/integrations/slack", As: alice, JSON: `{"webhook":"` + r.URL + `","branches_to_be_notified":"x"}`, Status: 400},
			{Name: "the setting of another one", Do: "PUT " + at + "/integrations/discord", As: alice, JSON: `{"webhook":"` + r.URL + `","username":"bot"}`, Status: 400,
				Want: `{"message":{"username":["is not a setting of this integration"]}}`},
			{Name: "the channel of another one", Do: "PUT " + at + "/integrations/discord", As: alice, JSON: `{"webhook":"` + r.URL + `","push_channel":"x"}`, Status: 400},
			{Name: "the trigger of another one", Do: "PUT " + at + "/integrations/telegram", As: alice, JSON: `{"token":"t","room":"r","deployment_events":true}`, Status: 400},
			{Name: "a priority that needs an acknowledgement", Do: "PUT " + at + "/integrations/pushover", As: alice, JSON: `{"api_key":"a","user_key":"u","priority":"2"}`, Status: 400},
			{Name: "the local network", Do: "PUT " + at + "/integrations/matrix", As: alice, JSON: `{"hostname":"http://10.0.0.1","token":"t","room":"r"}`, Status: 422},
			{Do: "PUT " + at + "/services/slack", As: alice, JSON: `{"webhook":"` + r.URL + `/services/hidden-path","username":"bot","channel":"general","issue_channel":"issues","wiki_page_events":false}`, Status: 200,
				Want: `{"title":"Slack notifications","slug":"slack","active":true,"issues_events":true,"wiki_page_events":false,"confidential_issues_events":false,
					"properties":{"username":"bot","channel":"general","issue_channel":"issues","branches_to_be_notified":"default","notify_only_broken_pipelines":true}}`, Not: []string{"hidden-path"}},
			{Do: "GET " + at + "/integrations", As: alice, Status: 200, Want: `[{"slug":"slack"}]`, Not: []string{"hidden-path"}},
			{Do: "POST " + at + "/issues", As: alice, JSON: `{"title":"a <b> & c @channel","description":"text"}`, Status: 201},
			{Do: "POST " + at + "/repository/files/x.txt", As: alice, JSON: `{"branch":"main","content":"x","commit_message":"Add x"}`, Status: 201},
		})
		q := r.receive(t, "the issue", func(q received) bool { return strings.Contains(fmt.Sprint(q.field("text")), "opened issue") })
		if q.path != "/services/hidden-path" || q.field("channel") != "issues" || q.field("username") != "bot" ||
			!strings.Contains(fmt.Sprint(q.field("text")), "a &lt;b&gt; &amp; c @\u200bchannel") {
			t.Errorf("issue: %s", q.body)
		}
		q = r.receive(t, "the push", func(q received) bool { return strings.Contains(fmt.Sprint(q.field("text")), "pushed to branch") })
		if q.field("channel") != "general" || !strings.Contains(string(q.body), "Add x") {
			t.Errorf("push: %s", q.body)
		}
		s.Table(t, []apptest.Call{
			{Do: "DELETE " + at + "/integrations/slack", As: alice, Status: 204},
			{Do: "DELETE " + at + "/integrations/slack", As: alice, Status: 404},
			{Do: "GET " + at + "/integrations", As: alice, Status: 200, Want: `[]`},
		})
	})
}

// TestChatServices sends a message to each chat service and decodes it as the
// service does.
func TestChatServices(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		allowLocal(t, s)
		r := newReceiver(t)
		_, alice := s.User(t, "alice")
		const at = "/projects/alice%2Fp"
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"name":"p"}`, Status: 201})
		services := []struct{ kind, set, path, field string }{
			{"discord", `"webhook":"` + r.URL + `/discord"`, "/discord", ""},
			{"hangouts-chat", `"webhook":"` + r.URL + `/google?key=hidden-key"`, "/google?key=hidden-key", "text"},
			{"matrix", `"hostname":"` + r.URL + `","token":"hidden-token","room":"!room:example.org"`, "/_matrix/client/v3/rooms/", "formatted_body"},
			{"mattermost", `"webhook":"` + r.URL + `/mattermost"`, "/mattermost", "text"},
			{"microsoft-teams", `"webhook":"` + r.URL + `/teams"`, "/teams", "summary"},
			{"pumble", `"webhook":"` + r.URL + `/pumble"`, "/pumble", "text"},
			{"telegram", `"hostname":"` + r.URL + `","token":"123:hidden-token","room":"@channel_name","thread":7`, "/bot123:hidden-token/sendMessage", "text"},
			{"webex-teams", `"webhook":"` + r.URL + `/webex"`, "/webex", "markdown"},
		}
		for _, c := range services {
			s.Table(t, []apptest.Call{
				{Do: "PUT " + at + "/integrations/" + c.kind, As: alice, JSON: "{" + c.set + "}", Status: 200, Want: `{"slug":"` + c.kind + `","active":true}`, Not: []string{"hidden"}},
				{Do: "GET " + at + "/integrations/" + c.kind, As: alice, Status: 200, Want: `{"properties":{"branches_to_be_notified":"default"}}`, Not: []string{"hidden"}},
			})
		}
		s.Check(t, apptest.Call{Do: "POST " + at + "/issues", As: alice, JSON: `{"title":"one [two](http://x) <three>","description":"text"}`, Status: 201})
		for _, c := range services {
			q := r.receive(t, c.kind, func(q received) bool { return strings.HasPrefix(q.path, c.path) })
			if text := string(q.body); !strings.Contains(text, "opened issue") || strings.Contains(text, "[two](http") && c.field == "markdown" {
				t.Errorf("%s: %s", c.kind, text)
			}
			if c.field != "" && !strings.Contains(fmt.Sprint(q.field(c.field)), "opened issue") {
				t.Errorf("%s has no %s: %s", c.kind, c.field, q.body)
			}
			switch c.kind {
			case "matrix":
				if q.header.Get("Authorization") != "Bearer hidden-token" || !strings.HasPrefix(q.path, "/_matrix/client/v3/rooms/%21room:example.org/send/m.room.message/") ||
					!strings.Contains(string(q.body), `\u0026lt;three\u0026gt;`) {
					t.Errorf("matrix: %s %v %s", q.path, q.header, q.body)
				}
			case "telegram":
				if q.field("chat_id") != "@channel_name" || q.field("message_thread_id") != 7.0 || q.field("parse_mode") != "HTML" {
					t.Errorf("telegram: %s", q.body)
				}
			}
		}
		s.Table(t, []apptest.Call{
			{Name: "a token is not sent to another server", Do: "PUT " + at + "/integrations/matrix", As: alice, JSON: `{"hostname":"https://elsewhere.example.org"}`, Status: 400,
				Want: `{"message":{"token":["can't be blank"]}}`},
			{Name: "other settings keep the token", Do: "PUT " + at + "/integrations/matrix", As: alice, JSON: `{"push_events":false}`, Status: 200, Want: `{"push_events":false}`},
			{Do: "PUT " + at + "/integrations/pushover", As: alice, JSON: `{"api_key":"a","user_key":"u","priority":"1","sound":"none"}`, Status: 200,
				Want: `{"push_events":true,"issues_events":false,"properties":{"priority":"1","sound":"none"}}`},
		})
	})
}

// TestGroupIntegrations configures integrations of a group, a subgroup and a
// project: the nearest one applies, even if it is disabled.
func TestGroupIntegrations(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		allowLocal(t, s)
		r := newReceiver(t)
		_, alice := s.User(t, "alice")
		do := func(status int, do, body string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: do, As: alice, JSON: body, Status: status})
		}
		do(201, "POST /groups", `{"name":"top","path":"top"}`)
		do(201, "POST /groups", fmt.Sprintf(`{"name":"sub","path":"sub","parent_id":%d}`, idOfGroup(t, s, alice, "top")))
		for path, group := range map[string]string{"low": "top%2Fsub", "own": "top%2Fsub", "off": "top", "high": "top"} {
			do(201, "POST /projects", fmt.Sprintf(`{"name":"%s","namespace_id":%d}`, path, idOfGroup(t, s, alice, group)))
		}
		do(200, "PUT /groups/top/integrations/slack", `{"webhook":"`+r.URL+`/top","labels_to_be_notified":"~loud"}`)
		do(200, "PUT /groups/top%2Fsub/integrations/slack", `{"webhook":"`+r.URL+`/sub"}`)
		do(200, "PUT /projects/top%2Fsub%2Fown/integrations/slack", `{"webhook":"`+r.URL+`/own"}`)
		do(200, "PUT /projects/top%2Foff/integrations/slack", `{"webhook":"`+r.URL+`/off","active":false}`)
		for _, path := range []string{"top%2Foff", "top%2Fsub%2Flow", "top%2Fsub%2Fown", "top%2Fhigh"} {
			do(201, "POST /projects/"+path+"/issues", `{"title":"first of `+strings.ReplaceAll(path, "%2F", "/")+`","labels":"loud"}`)
		}
		has := func(q received, text string) bool { return strings.Contains(fmt.Sprint(q.field("text")), text) }
		for at, title := range map[string]string{"/sub": "first of top/sub/low", "/own": "first of top/sub/own", "/top": "first of top/high"} {
			r.receive(t, title, func(q received) bool { return q.path == at && has(q, title) })
		}
		// Comments are filtered by the labels of the issue or merge request.
		do(201, "POST /projects/top%2Fhigh/issues", `{"title":"silent"}`)
		do(201, "POST /projects/top%2Fhigh/issues/2/notes", `{"body":"silent words"}`)
		do(201, "POST /projects/top%2Fhigh/issues/1/notes", `{"body":"loud words"}`)
		r.receive(t, "the comment", func(q received) bool { return q.path == "/top" && strings.Contains(string(q.body), "loud words") })
		for _, q := range r.all() {
			if q.path == "/off" || has(q, "top/off") || has(q, "silent") || q.path == "/top" && has(q, "top/sub") || q.path == "/sub" && has(q, "top/sub/own") {
				t.Errorf("%s got %s", q.path, q.body)
			}
		}
	})
}

// TestHookLife transfers and deletes projects and groups with webhooks.
func TestHookLife(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		allowLocal(t, s)
		r := newReceiver(t)
		_, alice := s.User(t, "alice")
		do := func(status int, do, body string) apptest.Answer {
			t.Helper()
			return s.Check(t, apptest.Call{Do: do, As: alice, JSON: body, Status: status})
		}
		count := func(table string) (n int) {
			t.Helper()
			if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM `+table).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		for _, name := range []string{"one", "two"} {
			do(201, "POST /groups", `{"name":"`+name+`","path":"`+name+`"}`)
			do(201, "POST /groups/"+name+"/hooks", `{"url":"`+r.URL+`/`+name+`","issues_events":true,"push_events":true,"push_events_branch_filter":"x*"}`)
		}
		do(201, "POST /projects", fmt.Sprintf(`{"name":"p","namespace_id":%d,"initialize_with_readme":true}`, idOfGroup(t, s, alice, "one")))
		do(201, "POST /projects/one%2Fp/hooks", `{"url":"`+r.URL+`/project","issues_events":true,"push_events":true}`)

		long := strings.Repeat("long ", 30_000)
		do(201, "POST /projects/one%2Fp/issues", `{"title":"a","description":"`+long+`"}`)
		for _, path := range []string{"/one", "/project"} {
			r.receive(t, "the issue at "+path, func(q received) bool { return q.path == path && q.field("object_attributes.title") == "a" })
		}
		waittest.For(t, "the log", func() bool {
			return strings.Contains(string(do(200, "GET /projects/one%2Fp/hooks/3/events", "").Body), `"request_data":{"oversize":true}`)
		})
		do(201, "POST /projects/one%2Fp/repository/commits", `{"branch":"main","commit_message":"`+long+`","actions":[{"action":"create","file_path":"a","content":"a"}]}`)
		q := r.receive(t, "the push", func(q received) bool {
			return q.path == "/project" && q.field("object_kind") == "push" && q.field("before") != strings.Repeat("0", 40)
		})
		var push struct{ Commits []struct{ Message string } }
		if err := json.Unmarshal(q.body, &push); err != nil || len(push.Commits) != 1 || len(push.Commits[0].Message) > 64<<10 || len(q.body) > 100_000 {
			t.Errorf("a long message: %d bytes, %v", len(q.body), err)
		}

		do(200, "PUT /projects/one%2Fp/transfer", `{"namespace":"two"}`)
		do(201, "POST /projects/two%2Fp/issues", `{"title":"b"}`)
		for _, path := range []string{"/two", "/project"} {
			r.receive(t, "the issue after the transfer at "+path, func(q received) bool { return q.path == path && q.field("object_attributes.title") == "b" })
		}
		do(201, "POST /projects/two%2Fp/archive", "")
		do(403, "POST /projects/two%2Fp/hooks", `{"url":"`+r.URL+`/more"}`)
		do(403, "PUT /projects/two%2Fp/hooks/3", `{"name":"x"}`)
		do(403, "POST /projects/two%2Fp/hooks/3/test/push_events", "")
		do(403, "PUT /projects/two%2Fp/integrations/slack", `{"webhook":"`+r.URL+`"}`)
		do(200, "GET /projects/two%2Fp/hooks/3", "")
		do(201, "POST /projects/two%2Fp/unarchive", "")

		// The hook changes during a request: the failure belongs to the old
		// configuration.
		r.answer(500)
		var once sync.Once
		r.mu.Lock()
		r.during = func() {
			once.Do(func() { do(200, "PUT /projects/two%2Fp/hooks/3", `{"name":"changed"}`) })
		}
		r.mu.Unlock()
		do(204, "DELETE /groups/two/hooks/2", "")
		do(201, "POST /projects/two%2Fp/issues", `{"title":"c"}`)
		r.receive(t, "the change", func(q received) bool { return q.path == "/project" && q.field("object_attributes.title") == "c" })
		waittest.For(t, "the first failure that counts", func() bool {
			var failures, tries int
			if err := s.DB.QueryRowContext(t.Context(), `
				SELECT t.failures, d.attempts FROM hook_states t JOIN hook_deliveries d ON d.hook_id = t.hook_id WHERE t.hook_id = 3 ORDER BY d.id DESC LIMIT 1`).Scan(&failures, &tries); err != nil {
				t.Fatal(err)
			}
			if failures >= tries && tries > 0 {
				t.Fatalf("%d failures after %d tries", failures, tries)
			}
			return failures == 1 && tries == 2
		})

		do(202, "DELETE /projects/two%2Fp", "")
		var marked struct {
			Path string `json:"path_with_namespace"`
		}
		do(200, "GET /projects/1", "").JSON(t, &marked)
		do(202, "DELETE /projects/1?permanently_remove=true&full_path="+url.QueryEscape(marked.Path), "")
		waittest.For(t, "the project to go", func() bool { return count("hooks WHERE project_id IS NOT NULL") == 0 })
		for _, name := range []string{"one", "two"} {
			id := idOfGroup(t, s, alice, name)
			do(202, fmt.Sprintf("DELETE /groups/%d", id), "")
			var group struct {
				Path string `json:"full_path"`
			}
			do(200, fmt.Sprintf("GET /groups/%d", id), "").JSON(t, &group)
			do(202, fmt.Sprintf("DELETE /groups/%d?permanently_remove=true&full_path=%s", id, url.QueryEscape(group.Path)), "")
		}
		waittest.For(t, "the groups to go", func() bool { return count("hooks") == 0 })
		if n := count("hook_states") + count("hook_deliveries"); n != 0 {
			t.Errorf("%d rows are left", n)
		}
		s.Clock.Move(2 * time.Hour)
		if err := s.Hooks.Expire(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := count("hook_events"); n != 0 {
			t.Errorf("%d events are left", n)
		}
	})
}

// TestHookShares checks that a project with many hooks whose receiver does not
// respond does not delay the hook of another project.
func TestHookShares(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		allowLocal(t, s)
		const hooks = 20
		release := make(chan struct{})
		var mu sync.Mutex
		started, most, done := 0, 0, map[string]bool{}
		blocked := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
			mu.Lock()
			started++
			most = max(most, started)
			mu.Unlock()
			answered := true
			select {
			case <-release:
			case <-q.Context().Done(): // the sender has timed out
				answered = false
			}
			mu.Lock()
			started--
			done[q.URL.Path] = done[q.URL.Path] || answered
			mu.Unlock()
		}))
		t.Cleanup(blocked.Close)
		free := sync.OnceFunc(func() { close(release) })
		t.Cleanup(free)
		quick := newReceiver(t)
		_, alice := s.User(t, "alice")
		do := func(do, body string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: do, As: alice, JSON: body, Status: 201})
		}
		do("POST /projects", `{"name":"loud"}`)
		do("POST /projects", `{"name":"quiet"}`)
		for i := range hooks {
			do("POST /projects/alice%2Floud/hooks", fmt.Sprintf(`{"url":"%s/%d","issues_events":true}`, blocked.URL, i))
		}
		do("POST /projects/alice%2Fquiet/hooks", `{"url":"`+quick.URL+`","issues_events":true}`)
		do("POST /projects/alice%2Floud/issues", `{"title":"for all"}`)
		do("POST /projects/alice%2Fquiet/issues", `{"title":"alone"}`)
		quick.event(t, "Issue Hook", "object_attributes.title", "alone")
		free()
		waittest.For(t, "all hooks of the loud project", func() bool {
			mu.Lock()
			defer mu.Unlock()
			n := 0
			for _, answered := range done {
				if answered {
					n++
				}
			}
			return n == hooks
		})
		mu.Lock()
		defer mu.Unlock()
		// Four at once. On a slow machine there are also requests whose cancellation
		// the receiver has not noticed yet.
		if most > 8 {
			t.Errorf("%d hooks of one project were delivered to at once", most)
		}
		if slices.ContainsFunc(quick.all(), func(q received) bool { return q.field("object_attributes.title") == "for all" }) {
			t.Error("an event reached another project")
		}
	})
}
