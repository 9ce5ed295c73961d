package web_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// sendEvent sends an event like an SDK.
func sendEvent(t *testing.T, dsn, event string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	base, id, _ := strings.Cut(u.Path, "/collector/")
	to := fmt.Sprintf("http://%s%s/collector/api/%s/envelope/?sentry_key=%s", u.Host, base, id, u.User.Username())
	res, err := http.Post(to, "text/plain", bytes.NewReader(fmt.Appendf(nil, "{}\n{\"type\":\"event\",\"length\":%d}\n%s\n", len(event), event)))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 200 {
		t.Fatalf("the event was answered with %d", res.StatusCode)
	}
}

var dsnField = regexp.MustCompile(`<code id="dsn\d+">([^<]+)</code>`)

// TestErrorPages enables error tracking, sends errors with hostile texts, and visits
// the pages as every role.
func TestErrorPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		s.Check(t, apptest.Call{Do: "POST /projects", As: ada, JSON: `{"name":"App","path":"app","visibility":"public"}`, Status: 201})
		browsers := map[string]*browser{"nobody": newBrowser(t, s), "root": newBrowser(t, s).signIn("root", apptest.RootPassword), "owner": newBrowser(t, s).signIn("ada", password)}
		for who, level := range map[string]int{"stranger": 0, "guest": 10, "reporter": 20, "developer": 30, "maintainer": 40} {
			id, _ := s.User(t, who)
			browsers[who] = newBrowser(t, s).signIn(who, password)
			if level > 0 {
				s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fapp/members", As: ada, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":%d}`, id, level), Status: 201})
			}
		}
		const list, settings = "/ada/app/-/error_tracking", "/ada/app/-/settings/error_tracking"
		owner := browsers["owner"]
		owner.get(list).want(200, "Error tracking is disabled", "Enable error tracking")
		browsers["reporter"].get(list).want(200, "Ask a maintainer to enable it").not("Enable error tracking<")
		owner.get(settings).want(200, "No client keys")
		owner.get("/ada/app/-/settings/operations").leads(settings)
		owner.submit(settings, settings, "backend", "integrated").leads(settings)
		owner.get(list).want(200, "No errors yet")
		page := owner.get(settings).want(200, "sentry_sdk.init", `data-copy="dsn`)
		dsn := dsnField.FindStringSubmatch(page.body)[1]

		const hostile = `<script>alert(1)</script>\"'`
		const event = `{"event_id":"%032x","platform":"go","environment":"%s","release":"1.%d","user":{"id":%d},"tags":{"` + hostile + `":"` + hostile + `"},"exception":[{"type":"` + hostile + `","value":"` + hostile + `","mechanism":{"handled":false},
			"stacktrace":{"frames":[{"function":"library"},{"filename":"` + hostile + `","function":"` + hostile + `","lineno":7,"in_app":true,"pre_context":["line five","line six"],"context_line":"` + hostile + `","post_context":["line eight"]}]}}],
			"breadcrumbs":[{"message":"` + hostile + `"}],"contexts":{"` + hostile + `":{"` + hostile + `":"` + hostile + `"}},"request":{"url":"javascript:` + hostile + `"},"user":{"id":"%d","username":"` + hostile + `"}}`
		for i := range 3 {
			sendEvent(t, dsn, fmt.Sprintf(event, i+1, []string{"staging", "production"}[i%2], i, i, i))
		}
		sendEvent(t, dsn, `{"message":"only said","level":"warning"}`)
		found := owner.get(list).want(200, "<b>3</b> events", "only said", `class="spark"`, "last 24 hours").not("<script>alert")
		details := regexp.MustCompile(`/ada/app/-/error_tracking/\d+/details`).FindAllString(found.body, -1)
		one := details[len(details)-1] // the message is newer, so it is first
		owner.get(list+"?environment=staging").want(200, "<b>3</b> events").not("only said</a>")
		owner.get(list+"?search=ONLY").want(200, "only said").not("<b>3</b> events")
		owner.get(list+"?sort=frequency&status=all").want(200, "<b>3</b> events")
		owner.get(list+"?status=ignored").want(200, "No ignored errors")
		owner.get(list+"?search=nothing").want(200, "No results found")
		shown := owner.get(one).want(200, "line five", `<td class="n">7</td>`, "Unhandled", "<b>3</b> events", "<b>3</b> users", "first seen in 1.0", "last seen in 1.2", "3 events on ", "Older", "&lt;script&gt;").not("<script>alert", `="javascript:`)
		if len(shown.body) > 50<<10 {
			t.Errorf("the page has %d bytes", len(shown.body))
		}
		owner.get(one+"?event=00000000000000000000000000000001").want(200, "Newer", "1.0").not(">Older<")
		owner.get(one + "?event=00000000000000000000000000000009").want(404)

		for page, want := range map[string]string{
			list: "303 404 404 200 200 200 200 200", one: "303 404 404 200 200 200 200 200", settings: "303 403 403 403 403 200 200 200",
			list + "/999999/details": "303 404 404 404 404 404 404 404",
		} {
			for i, status := range strings.Fields(want) {
				who := []string{"nobody", "stranger", "guest", "reporter", "developer", "maintainer", "owner", "root"}[i]
				if got := browsers[who].get(page); fmt.Sprint(got.status) != status {
					t.Errorf("%s gets %d for %s, want %s", who, got.status, page, status)
				}
			}
		}
		browsers["guest"].get("/ada/app").not(">Monitor<")
		browsers["reporter"].get("/ada/app").want(200, ">Monitor<")
		act := strings.TrimSuffix(one, "details") + "status"
		browsers["reporter"].get(one).not(">Resolve<", "Ignore</button>")
		for who, status := range map[string]int{"stranger": 404, "guest": 404, "reporter": 403, "developer": 303} {
			if got := browsers[who].submit("/ada/app", act, "status", "resolved"); got.status != status {
				t.Errorf("%s is told %d, want %d", who, got.status, status)
			}
		}
		owner.get(one).want(200, "Resolved", "Reopen")
		sendEvent(t, dsn, fmt.Sprintf(event, 9, "production", 3, 3, 3))
		owner.get(one).want(200, "Unresolved", "<b>4</b> events")
		owner.submit(one, act, "status", "ignored").leads(one)
		owner.get(list).want(200, `Ignored <span class="count">1</span>`)
		owner.submit(one, act, "status", "nonsense").leads(one)

		key := regexp.MustCompile(`error_tracking/keys/(\d+)/turn`).FindStringSubmatch(page.body)[1]
		for who, status := range map[string]int{"developer": 403, "maintainer": 303} {
			for _, to := range []string{"/keys", "/keys/" + key + "/turn"} {
				if got := browsers[who].submit("/ada/app", settings+to); got.status != status {
					t.Errorf("%s is told %d at %s, want %d", who, got.status, to, status)
				}
			}
		}
		owner.get(settings).want(200, "Disabled</span>")
		owner.submit(settings, settings+"/keys/"+key+"/turn", "active", "1").leads(settings)
		owner.submit(settings, settings+"/keys/"+key+"/delete").leads(settings)
		owner.submit(settings, settings+"/keys/"+key+"/delete").want(404)

		owner.submit(settings, settings+"/external", "project_name", "app", "api_url", "nowhere", "token", "hush").want(422, "must be a valid URL").not("hush")
		owner.submit(settings, settings+"/external", "external_url", "https://errors.example.org").want(422, "is a required field")
		owner.submit(settings, settings+"/external", "project_name", "app", "api_url", "https://errors.example.org/api/0", "token", "hush").leads(settings)
		owner.submit(settings, settings, "backend", "external").leads(settings)
		owner.get(settings).want(200, "Delete the stored token", "https://errors.example.org/api/0").not("hush")
		owner.submit(settings, settings, "backend", "off").leads(settings)
		s.Check(t, apptest.Call{Do: "GET /projects/ada%2Fapp/error_tracking/settings", As: ada, Status: 200,
			Want: `{"active":false,"integrated":false,"project_name":"app","api_url":"https://errors.example.org/api/0","errsvc_external_url":null}`})
		s.Check(t, apptest.Call{Do: "PUT /projects/ada%2Fapp?monitor_access_level=disabled", As: ada, Status: 200})
		owner.get(list).want(404)
	})
}
