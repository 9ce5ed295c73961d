package api_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/waittest"
)

// receiver is a server that records the requests of webhooks.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []received
	status int
	during func() // called before the response
}

type received struct {
	path   string
	header http.Header
	body   []byte
}

func (r received) field(path string) any {
	var v any
	if json.Unmarshal(r.body, &v) != nil {
		return nil
	}
	for _, name := range strings.Split(path, ".") {
		o, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = o[name]
	}
	return v
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{status: 200}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		r.got = append(r.got, received{q.URL.RequestURI(), q.Header, body})
		during := r.during
		r.mu.Unlock()
		if during != nil {
			during()
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		w.Header().Set("X-Receiver", "here")
		w.WriteHeader(r.status)
		_, _ = w.Write([]byte("thanks\x00"))
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// receive waits for a request that satisfies a condition and returns it.
func (r *receiver) receive(t *testing.T, what string, is func(received) bool) received {
	t.Helper()
	var found received
	waittest.For(t, what, func() bool {
		list := r.all()
		at := slices.IndexFunc(list, is)
		if at >= 0 {
			found = list[at]
		}
		return at >= 0
	})
	return found
}

// event waits for the request of an event with the given value in its payload and
// returns it.
func (r *receiver) event(t *testing.T, header, path string, value any) received {
	t.Helper()
	return r.receive(t, fmt.Sprintf("%s with %s=%v", header, path, value), func(q received) bool {
		return q.header.Get("X-Gitlab-Event") == header && q.field(path) == value
	})
}

// allowLocal allows webhooks to the local network, where the test servers are.
func allowLocal(t *testing.T, s *apptest.Server) {
	t.Helper()
	s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, JSON: `{"outbound_local_requests_whitelist":["127.0.0.0/8"]}`, Status: 200})
}

func TestHookSettings(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		const at = "/projects/alice%2Fp/hooks"
		s.Table(t, []apptest.Call{
			{Do: "POST /projects", As: alice, JSON: `{"name":"p"}`, Status: 201},
			{Do: "POST /projects", As: alice, JSON: `{"name":"q"}`, Status: 201},
			{Do: "POST " + at, As: alice, JSON: `{"url":"https://hooks.example.org/{secret}","url_variables":[{"key":"secret","value":"hidden-value"}],"token":"hidden-token",
				"custom_headers":[{"key":"X-Custom","value":"hidden-header"}],"issues_events":true,"push_events":false,"name":"n","description":"d",
				"signing_token":"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=","custom_webhook_template":"{\"id\":{{object_attributes.id}},\"t\":\"{{title}}\"}"}`, Status: 201,
				Want: `{"id":1,"url":"https://hooks.example.org/{secret}","name":"n","description":"d","project_id":1,"push_events":false,"issues_events":true,
					"confidential_issues_events":false,"enable_ssl_verification":true,"alert_status":"executable","disabled_until":null,"url_variables":[{"key":"secret"}],
					"custom_headers":[{"key":"X-Custom"}],"branch_filter_strategy":"wildcard","token_present":true,"signing_token_present":true}`, Not: []string{"hidden", "whsec"}},
			{Do: "GET " + at, As: alice, Status: 200, Want: `[{"id":1}]`, Not: []string{"hidden", "whsec"}},
			{Do: "PUT " + at + "/1", As: alice, JSON: `{"push_events":true,"push_events_branch_filter":"feature/*"}`, Status: 200,
				Want: `{"push_events":true,"issues_events":true,"push_events_branch_filter":"feature/*","token_present":true,"custom_headers":[{"key":"X-Custom"}]}`},
			{Name: "another host loses the secrets", Do: "PUT " + at + "/1", As: alice, JSON: `{"url":"https://elsewhere.example.org/x"}`, Status: 200,
				Want: `{"token_present":false,"signing_token_present":false,"custom_headers":[]}`},
			{Do: "PUT " + at + "/1/custom_headers/X-Other", As: alice, JSON: `{"value":"v"}`, Status: 204},
			{Do: "PUT " + at + "/1/url_variables/second", As: alice, JSON: `{"value":"v"}`, Status: 204},
			{Do: "GET " + at + "/1", As: alice, Status: 200, Want: `{"custom_headers":[{"key":"X-Other"}],"url_variables":[{"key":"second"}]}`},
			{Name: "a new token is no reason to send the headers", Do: "PUT " + at + "/1", As: alice, JSON: `{"url":"https://third.example.org/x","token":"new"}`, Status: 200,
				Want: `{"token_present":true,"custom_headers":[],"url_variables":[]}`},
			{Name: "a header again", Do: "PUT " + at + "/1/custom_headers/X-Other", As: alice, JSON: `{"value":"v"}`, Status: 204},
			{Name: "another path loses the secrets too", Do: "PUT " + at + "/1", As: alice, JSON: `{"url":"https://third.example.org/{host}",
				"url_variables":[{"key":"host","value":"y"}],"custom_headers":[{"key":"X-Other","value":"given again"}]}`, Status: 200,
				Want: `{"token_present":false,"custom_headers":[{"key":"X-Other"}],"url_variables":[{"key":"host"}]}`},
			{Name: "a header without a value", Do: "PUT " + at + "/1", As: alice, JSON: `{"url":"https://fourth.example.org","custom_headers":[{"key":"X-Other"}]}`, Status: 400},
			{Name: "a variable of the URL stays", Do: "DELETE " + at + "/1/url_variables/host", As: alice, Status: 400},
			{Do: "PUT " + at + "/1/url_variables/second", As: alice, JSON: `{"value":"v"}`, Status: 204},
			{Do: "DELETE " + at + "/1/custom_headers/X-Other", As: alice, Status: 204},
			{Do: "DELETE " + at + "/1/custom_headers/X-Other", As: alice, Status: 404},
			{Do: "DELETE " + at + "/1/url_variables/second", As: alice, Status: 204},
			{Do: "POST " + at, As: alice, JSON: `{"url":"https://{h}/x","url_variables":[{"key":"h","value":"hooks.example.org"}],"token":"t"}`, Status: 201, Want: `{"id":2}`},
			{Name: "a variable of the local network", Do: "PUT " + at + "/2/url_variables/h", As: alice, JSON: `{"value":"169.254.169.254"}`, Status: 422},
			{Name: "a variable is another host", Do: "PUT " + at + "/2/url_variables/h", As: alice, JSON: `{"value":"elsewhere.example.org"}`, Status: 204},
			{Do: "GET " + at + "/2", As: alice, Status: 200, Want: `{"token_present":false,"url_variables":[{"key":"h"}]}`},
			{Do: "PUT " + at + "/2", As: alice, Status: 200, JSON: `{"url":"https://{h}/x?k={k}","url_variables":[{"key":"h","value":"hooks.example.org"},{"key":"k","value":"v"},{"key":"unused","value":"v"}]}`},
			{Name: "another host does not get other variables", Do: "PUT " + at + "/2/url_variables/h", As: alice, JSON: `{"value":"elsewhere.example.org"}`, Status: 400,
				Want: `{"message":{"url":["contains the variable {k} which has no value"]}}`},
			{Name: "nor with a variable without a value", Do: "PUT " + at + "/2", As: alice, JSON: `{"url_variables":[{"key":"h","value":"elsewhere.example.org"},{"key":"k"}]}`, Status: 400},
			{Name: "all values are given", Do: "PUT " + at + "/2", As: alice, Status: 200, JSON: `{"url_variables":[{"key":"h","value":"elsewhere.example.org"},{"key":"k","value":"v"},{"key":"unused"}]}`,
				Want: `{"url_variables":[{"key":"h"},{"key":"k"}]}`},
			{Name: "the same host keeps the variables", Do: "PUT " + at + "/2/url_variables/k", As: alice, JSON: `{"value":"w"}`, Status: 204},
			{Do: "PUT " + at + "/2", As: alice, JSON: `{"url":"https://hooks.example.org{path}","url_variables":[{"key":"path","value":"/x"},{"key":"k","value":"v"}],"token":"t"}`, Status: 200},
			{Name: "a path is another host", Do: "PUT " + at + "/2/url_variables/path", As: alice, JSON: `{"value":"@elsewhere.example.org/"}`, Status: 204},
			{Do: "GET " + at + "/2", As: alice, Status: 200, Want: `{"token_present":false,"url_variables":[{"key":"path"}]}`},
			{Name: "the hook of another project", Do: "GET /projects/alice%2Fq/hooks/2", As: alice, Status: 404},
			{Name: "a header with a control character", Do: "PUT " + at + "/2/custom_headers/X", As: alice, JSON: `{"value":"a\u0001b"}`, Status: 400},
			{Name: "two headers of a name", Do: "PUT " + at + "/2", As: alice, JSON: `{"custom_headers":[{"key":"X-A","value":"x"},{"key":"x-a","value":"y"}]}`, Status: 400},
			{Do: "DELETE " + at + "/2", As: alice, Status: 204},
			{Name: "no URL", Do: "POST " + at, As: alice, JSON: `{}`, Status: 400},
			{Name: "no web address", Do: "POST " + at, As: alice, JSON: `{"url":"ftp://example.org"}`, Status: 422},
			{Name: "the local network", Do: "POST " + at, As: alice, JSON: `{"url":"http://127.0.0.1:9/x"}`, Status: 422},
			{Name: "the local network by name", Do: "POST " + at, As: alice, JSON: `{"url":"http://localhost/x"}`, Status: 422},
			{Name: "the local network by a variable", Do: "POST " + at, As: alice, JSON: `{"url":"http://{h}/x","url_variables":[{"key":"h","value":"169.254.169.254"}]}`, Status: 422},
			{Name: "an unknown variable", Do: "POST " + at, As: alice, JSON: `{"url":"https://example.org/{x}"}`, Status: 400},
			{Name: "a header of ours", Do: "POST " + at, As: alice, JSON: `{"url":"https://example.org","custom_headers":[{"key":"X-Gitlab-Token","value":"x"}]}`, Status: 400},
			{Name: "a header with a newline", Do: "POST " + at, As: alice, JSON: `{"url":"https://example.org","custom_headers":[{"key":"X","value":"x\r\ny: z"}]}`, Status: 400},
			{Name: "a broken expression", Do: "POST " + at, As: alice, JSON: `{"url":"https://example.org","branch_filter_strategy":"regex","push_events_branch_filter":"("}`, Status: 400},
			{Name: "a broken template", Do: "POST " + at, As: alice, JSON: `{"url":"https://example.org","custom_webhook_template":"{"}`, Status: 400},
			{Name: "a broken signing token", Do: "POST " + at, As: alice, JSON: `{"url":"https://example.org","signing_token":"x"}`, Status: 400},
			{Name: "vulnerabilities", Do: "POST " + at, As: alice, JSON: `{"url":"https://example.org","vulnerability_events":true}`, Status: 400},
			{Name: "events of groups", Do: "POST " + at, As: alice, JSON: `{"url":"https://example.org","member_events":true}`, Status: 400},
			{Name: "an unknown test", Do: "POST " + at + "/1/test/nothing", As: alice, Status: 400},
			{Name: "nothing to test with", Do: "POST " + at + "/1/test/push_events", As: alice, Status: 422},
			{Name: "an unknown status", Do: "GET " + at + "/1/events?status=x", As: alice, Status: 400},
			{Do: "DELETE " + at + "/1", As: alice, Status: 204},
			{Do: "DELETE " + at + "/1", As: alice, Status: 404},
			{Do: "GET /hooks", As: apptest.RootToken, Status: 200, Want: `[]`},
			{Name: "system hooks may be local", Do: "POST /hooks", As: apptest.RootToken, JSON: `{"url":"http://127.0.0.1:1/x"}`, Status: 201,
				Want: `{"push_events":false,"repository_update_events":true}`},
		})
	})
}

// TestHookEvents triggers each event of webhooks and checks what the receiver gets.
func TestHookEvents(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		allowLocal(t, s)
		r := newReceiver(t)
		aliceID, alice := s.User(t, "alice")
		bobID, _ := s.User(t, "bob")
		do := func(status int, do, body string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: do, As: alice, JSON: body, Status: status})
		}
		do(201, "POST /groups", `{"name":"top","path":"top"}`)
		do(201, "POST /groups", `{"name":"sub","path":"sub","parent_id":`+fmt.Sprint(idOfGroup(t, s, alice, "top"))+`}`)
		s.Check(t, apptest.Call{Do: "POST /hooks", As: apptest.RootToken, JSON: `{"url":"` + r.URL + `/system","push_events":true,"merge_requests_events":true}`, Status: 201})
		do(201, "POST /groups/top/hooks", `{"url":"`+r.URL+`/group","push_events":true,"member_events":true,"project_events":true,"subgroup_events":true}`)
		do(201, "POST /projects", `{"name":"p","namespace_id":`+fmt.Sprint(idOfGroup(t, s, alice, "top%2Fsub"))+`,"initialize_with_readme":true}`)
		const at = "/projects/top%2Fsub%2Fp"
		all := `"push_events":true,"tag_push_events":true,"issues_events":true,"confidential_issues_events":true,"note_events":true,"confidential_note_events":true,
			"merge_requests_events":true,"job_events":true,"pipeline_events":true,"wiki_page_events":true,"deployment_events":true,"milestone_events":true,"emoji_events":true,
			"feature_flag_events":true`
		key := []byte("0123456789012345678901234567890123456789")[:32]
		do(201, "POST "+at+"/hooks", `{"url":"`+r.URL+`/all/{v}","url_variables":[{"key":"v","value":"secret"}],"token":"the token","custom_headers":[{"key":"X-Custom","value":"mine"}],
			"signing_token":"whsec_`+base64.StdEncoding.EncodeToString(key)+`",`+all+`}`)
		do(201, "POST "+at+"/hooks", `{"url":"`+r.URL+`/open","push_events":true,"push_events_branch_filter":"f*","issues_events":true,"note_events":true}`)

		do(201, "POST "+at+"/repository/commits", `{"branch":"feature","start_branch":"main","commit_message":"Add files","actions":[
			{"action":"create","file_path":"a.txt","content":"a"},{"action":"update","file_path":"README.md","content":"new"}]}`)
		push := r.receive(t, "a push", func(q received) bool {
			return q.path == "/all/secret" && q.field("object_kind") == "push" && q.field("ref") == "refs/heads/feature"
		})
		if push.header.Get("X-Gitlab-Token") != "the token" || push.header.Get("X-Custom") != "mine" || push.header.Get("X-Gitlab-Instance") != s.URL ||
			push.header.Get("Content-Type") != "application/json" || push.header.Get("X-Gitlab-Webhook-UUID") == "" || push.header.Get("X-Gitlab-Event-UUID") == "" ||
			push.header.Get("Idempotency-Key") == "" || !strings.HasPrefix(push.header.Get("User-Agent"), "GitLab/") {
			t.Errorf("headers: %v", push.header)
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(push.header.Get("webhook-id") + "." + push.header.Get("webhook-timestamp") + "."))
		mac.Write(push.body)
		if got := push.header.Get("webhook-signature"); got != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) {
			t.Errorf("signature %s", got)
		}
		var p struct {
			Total   int `json:"total_commits_count"`
			Commits []struct {
				Title           string
				Added, Modified []string
			}
			UserUsername string `json:"user_username"`
			Project      struct {
				Path string `json:"path_with_namespace"`
			}
		}
		if err := json.Unmarshal(push.body, &p); err != nil || p.Total != 1 || len(p.Commits) != 1 || p.Commits[0].Title != "Add files" ||
			!slices.Equal(p.Commits[0].Added, []string{"a.txt"}) || !slices.Equal(p.Commits[0].Modified, []string{"README.md"}) || p.UserUsername != "alice" || p.Project.Path != "top/sub/p" {
			t.Errorf("push: %s %v", push.body, err)
		}
		for _, path := range []string{"/group", "/system", "/open"} {
			r.receive(t, "the push at "+path, func(q received) bool { return q.path == path && q.field("ref") == "refs/heads/feature" })
		}
		r.receive(t, "refs for system hooks", func(q received) bool { return q.path == "/system" && q.field("event_name") == "repository_update" })
		r.receive(t, "the project for system hooks", func(q received) bool {
			return q.path == "/system" && q.field("event_name") == "project_create" && q.field("path_with_namespace") == "top/sub/p"
		})
		r.receive(t, "the project for the group", func(q received) bool { return q.path == "/group" && q.header.Get("X-Gitlab-Event") == "Project Hook" })

		do(201, "POST "+at+"/repository/tags?tag_name=v1&ref=main&message=One", ``)
		if q := r.event(t, "Tag Push Hook", "ref", "refs/tags/v1"); q.field("message") != "One" || q.field("total_commits_count") != float64(1) {
			t.Errorf("tag: %s", q.body)
		}

		do(201, "POST "+at+"/labels", `{"name":"bug","color":"#ff0000"}`)
		do(201, "POST "+at+"/issues", `{"title":"one","labels":"bug"}`)
		q := r.event(t, "Issue Hook", "object_attributes.action", "open")
		if q.field("object_attributes.title") != "one" || q.field("user.username") != "alice" || q.field("object_attributes.url") != s.URL+"/top/sub/p/-/issues/1" {
			t.Errorf("issue: %s", q.body)
		}
		do(200, "PUT "+at+"/issues/1", fmt.Sprintf(`{"title":"two","assignee_ids":[%d],"remove_labels":"bug"}`, aliceID))
		q = r.event(t, "Issue Hook", "changes.title.current", "two")
		if q.field("changes.title.previous") != "one" || q.field("assignee") != nil && q.field("changes.labels.previous") == nil {
			t.Errorf("issue update: %s", q.body)
		}
		var c struct {
			Changes struct {
				Labels    struct{ Previous, Current []struct{ Title string } }
				Assignees struct{ Previous, Current []struct{ Username string } }
			}
		}
		if err := json.Unmarshal(q.body, &c); err != nil || len(c.Changes.Labels.Previous) != 1 || len(c.Changes.Labels.Current) != 0 ||
			len(c.Changes.Assignees.Previous) != 0 || len(c.Changes.Assignees.Current) != 1 || c.Changes.Assignees.Current[0].Username != "alice" {
			t.Errorf("issue changes: %s %v", q.body, err)
		}
		do(200, "PUT "+at+"/issues/1", `{"state_event":"close"}`)
		r.event(t, "Issue Hook", "object_attributes.action", "close")
		do(201, "POST "+at+"/issues", `{"title":"secret plan","confidential":true}`)
		r.event(t, "Confidential Issue Hook", "object_attributes.title", "secret plan")
		do(201, "POST "+at+"/issues/2/notes", `{"body":"secret words"}`)
		r.event(t, "Confidential Note Hook", "object_attributes.note", "secret words")
		do(201, "POST "+at+"/issues/1/notes", `{"body":"internal words","internal":true}`)
		r.event(t, "Confidential Note Hook", "object_attributes.note", "internal words")
		do(201, "POST "+at+"/issues/1/notes", `{"body":"open words"}`)
		r.receive(t, "the open note", func(q received) bool { return q.path == "/open" && q.field("object_attributes.note") == "open words" })
		do(201, "POST "+at+"/issues/1/award_emoji", `{"name":"rocket"}`)
		r.event(t, "Emoji Hook", "object_attributes.name", "rocket")
		do(201, "POST "+at+"/milestones", `{"title":"1.0"}`)
		r.event(t, "Milestone Hook", "action", "create")

		do(201, "POST "+at+"/merge_requests", `{"title":"mr","source_branch":"feature","target_branch":"main"}`)
		q = r.event(t, "Merge Request Hook", "object_attributes.action", "open")
		if q.field("object_attributes.last_commit.title") != "Add files" || q.field("object_attributes.source.path_with_namespace") != "top/sub/p" {
			t.Errorf("merge request: %s", q.body)
		}
		do(201, "POST "+at+"/merge_requests/1/notes", `{"body":"on the merge request"}`)
		r.event(t, "Note Hook", "merge_request.title", "mr")
		do(201, "POST "+at+"/repository/commits", `{"branch":"feature","commit_message":"More","actions":[{"action":"create","file_path":"b.txt","content":"b"}]}`)
		r.receive(t, "a new head", func(q received) bool { return q.field("object_attributes.oldrev") != nil })
		do(200, "PUT "+at+"/merge_requests/1", `{"title":"Draft: mr"}`)
		r.event(t, "Merge Request Hook", "changes.draft.current", true)
		do(200, "PUT "+at+"/merge_requests/1", `{"title":"mr"}`)
		do(200, "PUT "+at+"/merge_requests/1/merge", `{}`)
		r.event(t, "Merge Request Hook", "object_attributes.action", "merge")
		r.receive(t, "the merge for system hooks", func(q received) bool { return q.path == "/system" && q.field("object_attributes.action") == "merge" })

		do(201, "POST "+at+"/repository/commits", `{"branch":"ci","start_branch":"main","commit_message":"CI","actions":[{"action":"create","file_path":".gitlab-ci.yml",
			"content":"deploy:\n  script: x\n  when: manual\n  allow_failure: false\n  environment: production\n"}]}`)
		q = r.event(t, "Pipeline Hook", "object_attributes.status", "manual")
		if q.field("commit.title") != "CI" || q.field("object_attributes.ref") != "ci" {
			t.Errorf("pipeline: %s", q.body)
		}
		q = r.event(t, "Job Hook", "build_status", "manual")
		if q.field("build_name") != "deploy" || q.field("commit.author_name") == "" || q.field("environment.name") != "production" {
			t.Errorf("job: %s", q.body)
		}
		for _, name := range []string{"started_at_iso", "finished_at_iso"} {
			if !strings.Contains(string(q.body), `"`+name+`":null`) {
				t.Errorf("job without the %s of its pipeline: %s", name, q.body)
			}
		}
		sha := s.Check(t, apptest.Call{Do: "GET " + at + "/repository/commits/main", As: alice, Status: 200})
		var commit struct{ ID string }
		if err := json.Unmarshal(sha.Body, &commit); err != nil {
			t.Fatal(err)
		}
		do(201, "POST "+at+"/deployments", `{"environment":"staging","sha":"`+commit.ID+`","ref":"main","tag":false,"status":"success"}`)
		if q := r.event(t, "Deployment Hook", "environment", "staging"); q.field("status") != "success" || q.field("commit_title") == nil {
			t.Errorf("deployment: %s", q.body)
		}
		do(201, "POST "+at+"/wikis", `{"title":"Page","content":"the text"}`)
		if q := r.event(t, "Wiki Page Hook", "object_attributes.slug", "Page"); q.field("object_attributes.content") != "the text" || q.field("object_attributes.action") != "create" {
			t.Errorf("wiki: %s", q.body)
		}
		do(201, "POST "+at+"/feature_flags", `{"name":"new_cart","description":"the cart","active":false}`)
		do(200, "PUT "+at+"/feature_flags/new_cart", `{"description":"the new cart"}`)
		do(200, "PUT "+at+"/feature_flags/new_cart", `{"active":true}`)
		if q := r.event(t, "Feature Flag Hook", "object_kind", "feature_flag"); q.field("object_attributes.active") != true || q.field("object_attributes.name") != "new_cart" ||
			q.field("object_attributes.description") != "the new cart" || q.field("user.username") != "alice" || q.field("user_url") != s.URL+"/alice" {
			t.Errorf("feature flag: %s", q.body)
		}
		do(201, "POST "+at+"/repository/commits/"+commit.ID+"/comments", `{"note":"on a commit"}`)
		r.event(t, "Note Hook", "commit.id", commit.ID)
		do(201, "POST "+at+"/snippets", `{"title":"snip","visibility":"private","files":[{"file_path":"a.rb","content":"puts 1"},{"file_path":"b.rb","content":"puts 2"}]}`)
		do(201, "POST "+at+"/snippets/1/notes", `{"body":"on a snippet"}`)
		if q := r.event(t, "Note Hook", "snippet.title", "snip"); q.field("snippet.content") != "puts 1" || q.field("snippet.file_name") != "a.rb" {
			t.Errorf("snippet: %s", q.body)
		}
		do(201, "POST /groups/top/members", fmt.Sprintf(`{"user_id":%d,"access_level":30}`, bobID))
		if q := r.event(t, "Member Hook", "event_name", "user_add_to_group"); q.field("user_username") != "bob" || q.field("group_access") != "Developer" {
			t.Errorf("member: %s", q.body)
		}
		do(201, "POST /groups", `{"name":"more","path":"more","parent_id":`+fmt.Sprint(idOfGroup(t, s, alice, "top"))+`}`)
		r.event(t, "Subgroup Hook", "event_name", "subgroup_create")
		do(201, "POST /user/keys", `{"title":"k","key":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ9rPWn1HzTn4g5gYzfXp0mCq5SfMZSXEZs4Cz5HfCVO alice"}`)
		r.receive(t, "the key", func(q received) bool { return q.path == "/system" && q.field("event_name") == "key_create" })
		s.User(t, "carol")
		r.receive(t, "the user", func(q received) bool { return q.field("event_name") == "user_create" && q.field("username") == "carol" })

		for _, q := range r.all() {
			if strings.Contains(string(q.body), "secret") && q.path == "/open" || strings.Contains(string(q.body), "internal words") && q.path == "/open" {
				t.Errorf("the hook without the trigger got %s", q.body)
			}
			if q.path == "/open" && q.field("object_kind") == "push" && !strings.HasPrefix(fmt.Sprint(q.field("ref")), "refs/heads/f") {
				t.Errorf("the branch filter let through %v", q.field("ref"))
			}
		}
		log := s.Check(t, apptest.Call{Do: "GET " + at + "/hooks/3/events?per_page=100", As: alice, Status: 200, Not: []string{"the token", `"mine"`, "all/secret"}})
		var events []struct {
			ID             int64
			URL, Trigger   string
			ResponseStatus string            `json:"response_status"`
			ResponseBody   string            `json:"response_body"`
			RequestHeaders map[string]string `json:"request_headers"`
		}
		if err := json.Unmarshal(log.Body, &events); err != nil || len(events) < 10 || events[0].ResponseStatus != "200" || events[0].ResponseBody != "thanks\uFFFD" ||
			events[0].RequestHeaders["X-Gitlab-Token"] != "[REDACTED]" || events[0].URL != r.URL+"/all/{v}" {
			t.Fatalf("log: %.2000s %v", log.Body, err)
		}
		before := len(r.all())
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST %s/hooks/3/events/%d/resend", at, events[0].ID), As: alice, Status: 201, Want: `{"response_status":200}`})
		if len(r.all()) != before+1 {
			t.Error("nothing was sent again")
		}
		for _, trigger := range []string{"push_events", "issues_events", "merge_requests_events", "pipeline_events"} {
			s.Check(t, apptest.Call{Do: "POST " + at + "/hooks/3/test/" + trigger, As: alice, Status: 201, Want: `{"message":"201 Created"}`})
		}
		do(201, "POST "+at+"/hooks", `{"url":"`+r.URL+`/tests"}`)
		for _, trigger := range []string{"wiki_page_events", "emoji_events", "feature_flag_events", "note_events", "deployment_events"} {
			s.Check(t, apptest.Call{Do: "POST " + at + "/hooks/5/test/" + trigger, As: alice, Status: 201})
		}
		q = r.receive(t, "the test of a wiki page", func(q received) bool { return q.path == "/tests" && q.field("object_kind") == "wiki_page" })
		if q.field("object_attributes.content") != "the text" {
			t.Errorf("wiki page: %s", q.body)
		}
		do(201, "POST /projects", `{"name":"empty","namespace_id":`+fmt.Sprint(idOfGroup(t, s, alice, "top"))+`}`)
		s.Check(t, apptest.Call{Name: "the newest project has no commits", Do: "POST /groups/top/hooks/2/test/push_events", As: alice, Status: 201})
		s.Check(t, apptest.Call{Name: "too many tests", Do: "POST " + at + "/hooks/3/test/push_events", As: alice, Status: 429})
		s.Check(t, apptest.Call{Do: "POST /hooks/1", As: apptest.RootToken, Status: 201, Want: `{"event_name":"project_create","name":"Ruby"}`})
	})
}

// TestHookAccessTokens checks on which days before its expiration an access token of a project
// is announced.
func TestHookAccessTokens(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		allowLocal(t, s)
		r := newReceiver(t)
		_, alice := s.User(t, "alice")
		const at = "/projects/alice%2Fp"
		s.Table(t, []apptest.Call{
			{Do: "POST /projects", As: alice, JSON: `{"name":"p"}`, Status: 201},
			{Do: "POST " + at + "/hooks", As: alice, JSON: `{"url":"` + r.URL + `/x","push_events":false,"resource_access_token_events":true}`, Status: 201},
			{Do: "POST " + at + "/access_tokens", As: alice, JSON: `{"name":"bot","scopes":["api"],"expires_at":"` + s.Clock.Now().UTC().AddDate(0, 0, 9).Format(time.DateOnly) + `"}`, Status: 201},
		})
		for left := 9; left > 0; left-- {
			if err := s.Hooks.AnnounceExpiry(t.Context()); err != nil {
				t.Fatal(err)
			}
			var n int
			if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM hook_deliveries`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			want := map[bool]int{true: 1}[left <= 7]
			if left == 1 {
				want = 2
			}
			if n != want {
				t.Errorf("%d events %d days before, want %d", n, left, want)
			}
			s.Clock.Move(24 * time.Hour)
		}
		r.receive(t, "the announcement", func(q received) bool {
			return q.field("event_name") == "expiring_access_token" && q.field("object_attributes.name") == "bot" && q.field("project.path_with_namespace") == "alice/p"
		})
	})
}

// idOfGroup returns the ID of a group.
func idOfGroup(t *testing.T, s *apptest.Server, token, path string) int64 {
	t.Helper()
	var g struct{ ID int64 }
	if err := json.Unmarshal(s.Check(t, apptest.Call{Do: "GET /groups/" + path, As: token, Status: 200}).Body, &g); err != nil {
		t.Fatal(err)
	}
	return g.ID
}

// TestHookFailures checks a receiver that fails: the order of deliveries is kept,
// the hook is disabled temporarily, and enabled again.
func TestHookFailures(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		allowLocal(t, s)
		r := newReceiver(t)
		_, alice := s.User(t, "alice")
		do := func(status int, do, body string) apptest.Answer {
			t.Helper()
			return s.Check(t, apptest.Call{Do: do, As: alice, JSON: body, Status: status})
		}
		const at = "/projects/alice%2Fp"
		do(201, "POST /projects", `{"name":"p"}`)
		do(201, "POST "+at+"/hooks", `{"url":"`+r.URL+`/x","push_events":false,"issues_events":true}`)
		state := func() (alert string, until *time.Time) {
			var h struct {
				AlertStatus   string     `json:"alert_status"`
				DisabledUntil *time.Time `json:"disabled_until"`
			}
			if err := json.Unmarshal(do(200, "GET "+at+"/hooks/1", "").Body, &h); err != nil {
				t.Fatal(err)
			}
			return h.AlertStatus, h.DisabledUntil
		}
		// settled waits until the result of the n-th request is stored.
		requests := func() int { return len(r.all()) }
		settled := func(n, failures int) {
			t.Helper()
			waittest.For(t, fmt.Sprintf("%d requests and %d failures", n, failures), func() bool {
				var have int
				if err := s.DB.QueryRowContext(t.Context(), `SELECT failures FROM hook_states WHERE hook_id = 1`).Scan(&have); err != nil {
					t.Fatal(err)
				}
				return requests() == n && have == failures
			})
		}
		later := func(d time.Duration) {
			t.Helper()
			s.Clock.Move(d)
			if err := s.Hooks.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		r.answer(500)
		do(201, "POST "+at+"/issues", `{"title":"a"}`)
		settled(1, 1)
		do(201, "POST "+at+"/issues", `{"title":"b"}`)
		// The log has the failure before the retry, but no deliveries that were not
		// sent yet.
		s.Table(t, []apptest.Call{
			{Do: "GET " + at + "/hooks/1/events", As: alice, Status: 200, Want: `[{"id":1,"trigger":"issue_hooks","response_status":"500","request_data":{"object_attributes":{"title":"a"}}}]`},
			{Do: "GET " + at + "/hooks/1/events?status=server_failure", As: alice, Status: 200, Want: `[{"id":1}]`},
			{Do: "POST " + at + "/hooks/1/events/2/resend", As: alice, Status: 404},
		})
		// The first delivery is retried after a delay; the fourth failure
		// disables the hook.
		for n := 2; n <= 4; n++ {
			later(time.Minute)
			settled(n, n)
		}
		if alert, until := state(); alert != "temporarily_disabled" || until == nil {
			t.Errorf("after four failures: %s until %v", alert, until)
		}
		keys := map[string]bool{}
		for _, q := range r.all() {
			keys[q.header.Get("Idempotency-Key")] = true
			if q.field("object_attributes.title") != "a" {
				t.Errorf("overtaken: %s", q.body)
			}
		}
		if len(keys) != 1 {
			t.Errorf("retries have the keys %v", keys)
		}
		r.answer(200)
		later(2 * time.Minute)
		settled(6, 0)
		list := r.all()
		if list[4].field("object_attributes.title") != "a" || list[5].field("object_attributes.title") != "b" {
			t.Error("wrong order after the pause")
		}
		if alert, _ := state(); alert != "executable" {
			t.Errorf("after a success: %s", alert)
		}

		// A receiver that responds with 4xx gets each event once, until the hook is
		// disabled permanently.
		r.answer(410)
		for n := 1; n <= 40; n++ {
			later(25 * time.Hour) // while nothing is delivered: otherwise the lease would expire and another worker would send again
			do(201, "POST "+at+"/issues", `{"title":"c"}`)
			settled(6+n, n)
		}
		if alert, _ := state(); alert != "disabled" {
			t.Errorf("after 40 failures: %s", alert)
		}
		do(201, "POST "+at+"/issues", `{"title":"unheard"}`)
		r.answer(200)
		do(200, "PUT "+at+"/hooks/1", `{"url":"`+r.URL+`/x"}`)
		if alert, _ := state(); alert != "executable" {
			t.Errorf("after a change: %s", alert)
		}
		do(201, "POST "+at+"/issues", `{"title":"heard"}`)
		r.event(t, "Issue Hook", "object_attributes.title", "heard")
		if slices.ContainsFunc(r.all(), func(q received) bool { return q.field("object_attributes.title") == "unheard" }) {
			t.Error("a disabled hook got an event")
		}

		// A request that the receiver makes in response to an event does not trigger
		// the hook again.
		last := r.event(t, "Issue Hook", "object_attributes.title", "heard")
		for _, title := range []string{"made up", "made up again"} {
			s.Check(t, apptest.Call{
				Do: "POST " + at + "/issues", As: alice, JSON: `{"title":"` + title + `"}`, Header: map[string]string{"X-Gitlab-Event-UUID": "00000000-0000-4000-8000-000000000000"}, Status: 201,
			})
			r.event(t, "Issue Hook", "object_attributes.title", title)
		}
		s.Check(t, apptest.Call{Do: "POST " + at + "/issues", As: alice, JSON: `{"title":"recursive"}`, Header: map[string]string{"X-Gitlab-Event-UUID": last.header.Get("X-Gitlab-Event-UUID")}, Status: 201})
		do(201, "POST "+at+"/issues", `{"title":"after"}`)
		r.event(t, "Issue Hook", "object_attributes.title", "after")
		if slices.ContainsFunc(r.all(), func(q received) bool { return q.field("object_attributes.title") == "recursive" }) {
			t.Error("the webhook triggered itself")
		}
		s.Clock.Move(8 * 24 * time.Hour)
		if err := s.Hooks.Expire(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "/hooks/1/events", As: alice, Status: 200, Want: `[]`})
	})
}
