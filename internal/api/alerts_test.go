package api_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/alert"
	"svc/internal/app/apptest"
	"svc/internal/project"
	"svc/internal/waittest"
)

// integration creates an alert integration and returns its ID, URL and token.
func integration(t testing.TB, s *apptest.Server, as string, projectID int64, body string) (id int64, url, token string) {
	t.Helper()
	var made struct {
		ID         int64
		URL, Token string
	}
	s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/alert_management/http_integrations", projectID), As: as, JSON: body, Status: 201}).JSON(t, &made)
	return made.ID, made.URL, made.Token
}

// below returns a POST request to a URL in the form of Call.Do.
func below(s *apptest.Server, url string) string {
	return "POST //" + strings.TrimPrefix(url, s.URL+"/")
}

func TestAlertIntegrations(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		devID, dev := s.User(t, "dev")
		id := newProject(t, s, alice, "watched", "")
		enlist(t, s, id, devID, project.Developer)
		at := fmt.Sprintf("/projects/%d/alert_management/http_integrations", id)
		first, url, token := integration(t, s, alice, id, `{"name":" Émile's  Watch! "}`)
		if !strings.HasPrefix(url, s.URL+"/alice/watched/alerts/notify/mile-s-watch/") || len(url) != len(s.URL+"/alice/watched/alerts/notify/mile-s-watch/0123456789abcdef.json") {
			t.Errorf("the address is %s", url)
		}
		_, metrics, _ := integration(t, s, alice, id, `{"name":"p","type":"prometheus","active":false}`)
		if metrics != s.URL+"/alice/watched/prometheus/alerts/notify.json" {
			t.Errorf("the address is %s", metrics)
		}
		one := fmt.Sprintf("%s/%d", at, first)
		example := `{"event":{"name":"Disk full","hosts":["a","b"],"when":"2024-05-06T07:08:09Z","deep":[{"x":1}]}}`
		s.Table(t, []apptest.Call{
			{Name: "list", Do: "GET " + at, As: alice, Status: 200, Want: fmt.Sprintf(`[{"id":%d,"name":"Émile's  Watch!","type":"http","active":true,"url":"%s","token":"%s","payload_example":null,"payload_attribute_mappings":[]},{"type":"prometheus","active":false}]`, first, url, token)},
			{Name: "without a name", Do: "POST " + at, As: alice, JSON: `{}`, Status: 400, Want: `{"error":"name is missing"}`},
			{Name: "a long name", Do: "POST " + at, As: alice, JSON: `{"name":"` + strings.Repeat("ä", 256) + `"}`, Status: 400, Want: `{"message":{"name":["is too long (maximum is 255 characters)"]}}`},
			{Name: "of another type", Do: "POST " + at, As: alice, JSON: `{"name":"x","type":"smoke"}`, Status: 400, Want: `{"error":"type does not have a valid value"}`},
			{Name: "mapped", Do: "PUT " + one, As: alice, JSON: `{"payload_example":` + example + `,"payload_attribute_mappings":[{"field_name":"TITLE","path":["event","label"],"fallback_paths":[["event","name"]]},{"field_name":"gitlab_environment_name","path":["event","deep",0,"x"]}]}`, Status: 200,
				Want: `{"payload_example":` + example + `,"payload_attribute_mappings":[{"field_name":"title","path":["event","label"],"fallback_paths":[["event","name"]]},{"field_name":"svc_environment_name","path":["event","deep","0","x"]}]}`},
			{Name: "by name of the field", Do: "PUT " + one, As: alice, JSON: `{"payload_attribute_mappings":{"hosts":{"path":["event","hosts"],"type":"array"},"start_time":{"path":["event","when"]}}}`, Status: 200,
				Want: `{"payload_attribute_mappings":[{"field_name":"start_time","path":["event","when"]},{"field_name":"hosts","path":["event","hosts"]}]}`},
			{Name: "as texts", Do: "PUT " + one, As: alice, JSON: `{"payload_example":"{\"a\":1}","payload_attribute_mappings":"[{\"field_name\":\"title\",\"path\":[\"a\"]}]"}`, Status: 200,
				Want: `{"payload_example":{"a":1},"payload_attribute_mappings":[{"field_name":"title","path":["a"]}]}`},
			{Name: "a path that is not there", Do: "PUT " + one, As: alice, JSON: `{"payload_attribute_mappings":[{"field_name":"title","path":["b"]}]}`, Status: 400,
				Want: `{"message":{"payload_attribute_mappings":["has no path for title that is in the payload_example"]}}`},
			{Name: "a sample that lost it", Do: "PUT " + one, As: alice, JSON: `{"payload_example":{"b":1}}`, Status: 400},
			{Name: "a value that does not suit", Do: "PUT " + one, As: alice, JSON: `{"payload_example":{"b":"soon"},"payload_attribute_mappings":[{"field_name":"end_time","path":["b"]}]}`, Status: 400,
				Want: `{"message":{"payload_attribute_mappings":["has a path for end_time whose value does not suit it: b"]}}`},
			{Name: "an unknown field", Do: "PUT " + one, As: alice, JSON: `{"payload_attribute_mappings":[{"field_name":"colour","path":["a"]}]}`, Status: 400},
			{Name: "a field twice", Do: "PUT " + one, As: alice, JSON: `{"payload_attribute_mappings":[{"field_name":"title","path":["a"]},{"field_name":"title","path":["a"]}]}`, Status: 400},
			{Name: "no mappings", Do: "PUT " + one, As: alice, JSON: `{"payload_attribute_mappings":7}`, Status: 400},
			{Name: "a sample that is no object", Do: "PUT " + one, As: alice, JSON: `{"payload_example":[1]}`, Status: 400, Want: `{"message":{"payload_example":["must be a JSON object"]}}`},
			{Name: "a sample that is no JSON", Do: "PUT " + one, As: alice, JSON: `{"payload_example":"{"}`, Status: 400, Want: `{"error":"payload_example is invalid"}`},
			{Name: "a large sample", Do: "PUT " + one, As: alice, JSON: `{"payload_example":{"a":"` + strings.Repeat("x", 64<<10) + `"}}`, Status: 400},
			{Name: "another type", Do: "PUT " + one, As: alice, JSON: `{"type":"prometheus"}`, Status: 400},
			{Name: "neither", Do: "PUT " + one, As: alice, JSON: `{"name":"Émile","payload_example":null,"payload_attribute_mappings":null,"active":false}`, Status: 200, Want: `{"name":"Émile","active":false,"payload_example":null,"payload_attribute_mappings":[]}`},
			{Name: "test one that is off", Do: "POST " + one + "/test", As: dev, Status: 403, Want: `{"message":"403 Forbidden - The integration is not active."}`},
			{Do: "PUT " + one, As: alice, JSON: `{"active":true}`, Status: 200},
			{Name: "test", Do: "POST " + one + "/test", As: dev, Status: 200, Want: `[{"iid":1,"title":"Test alert"}]`},
			{Name: "test with a payload", Do: "POST " + one + "/test", As: dev, JSON: `{"payload":{"title":"Mine"}}`, Status: 200, Want: `[{"iid":2,"title":"Mine"}]`},
			{Name: "test with none", Do: "POST " + one + "/test", As: dev, JSON: `{"payload":"mine"}`, Status: 400},
			{Name: "another token", Do: "POST " + one + "/reset_token", As: alice, Status: 201, Want: fmt.Sprintf(`{"id":%d,"token":"<any>"}`, first), Not: []string{token}},
			{Name: "the old one", Do: below(s, url), Header: bearer(token), JSON: `{}`, Status: 401},
			{Name: "delete", Do: "DELETE " + one, As: alice, Status: 204},
			{Name: "gone", Do: "GET " + one, As: alice, Status: 404, Want: `{"message":"404 Integration Not Found"}`},
			{Name: "its alerts are there", Do: fmt.Sprintf("GET /projects/%d/alert_management_alerts/2", id), As: dev, Status: 200, Want: `{"title":"Mine","integration_id":null}`},
			{Name: "what was done", Do: fmt.Sprintf("GET /projects/%d/audit_events?per_page=5", id), As: root, Status: 200,
				Want: `[{"event_type":"alert_integration_deleted","details":{"remove":"alert integration","target_type":"AlertManagement::HttpIntegration"}},{"event_type":"alert_integration_token_reset"},{"event_type":"alert_integration_tested","author_id":"<any>"},{"event_type":"alert_integration_tested"},{"event_type":"alert_integration_updated","details":{"change":"active","from":"false","to":"true"}}]`},
		})
	})
}

// TestAlertEndpoints sends payloads with and without tokens.
func TestAlertEndpoints(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id := newProject(t, s, alice, "watched", `,"visibility":"private"`)
		other := newProject(t, s, alice, "other", "")
		first, url, token := integration(t, s, alice, id, `{"name":"Watch"}`)
		_, secondURL, secondToken := integration(t, s, alice, id, `{"name":"Watch"}`)
		_, _, stranger := integration(t, s, alice, other, `{"name":"Watch"}`)
		password := func(user string) map[string]string {
			return map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+token))}
		}
		one, plain := below(s, url), "POST //alice/watched/alerts/notify.json"
		missing := strings.Replace(one, url[len(url)-len("0123456789abcdef.json"):], "0123456789abcdef.json", 1)
		metrics := `{"version":"4","groupKey":"g","status":"firing","receiver":"r","groupLabels":{},"commonLabels":{},"commonAnnotations":{},"externalURL":"","alerts":[{"startsAt":"2024-01-02T03:04:05Z","labels":{"alertname":"Down"}}]}`
		s.Table(t, []apptest.Call{
			{Name: "bearer", Do: one, Header: bearer(token), JSON: `{"title":"a"}`, Status: 200, Want: `[{"iid":1,"title":"a"}]`},
			{Name: "password", Do: one, Header: password(""), JSON: `{"title":"b"}`, Status: 200, Want: `[{"iid":2,"title":"b"}]`},
			{Name: "in the address", Do: one, Header: password("name"), JSON: `{"title":"c"}`, Status: 200, Want: `[{"iid":3,"title":"c"}]`},
			{Name: "of the project", Do: plain, Header: bearer(token), JSON: `{"title":"d"}`, Status: 200, Want: `[{"iid":4,"title":"d"}]`},
			{Name: "for metrics", Do: "POST //alice/watched/prometheus/alerts/notify.json", Header: bearer(token), JSON: metrics, Status: 200, Want: `[{"iid":5,"title":"Down"}]`},
			{Name: "for metrics alone", Do: "POST //alice/watched/prometheus/alerts/notify.json", Header: bearer(token), JSON: `{"title":"e"}`, Status: 400},
			{Name: "another slug", Do: strings.Replace(one, "/watch/", "/renamed/", 1), Header: bearer(token), JSON: `{"title":"a"}`, Status: 200},
			{Name: "anonymous", Do: one, JSON: `{}`, Status: 401, Want: `{"message":"401 Unauthorized"}`},
			{Name: "a wrong token", Do: one, Header: bearer("wrong"), JSON: `{}`, Status: 401},
			{Name: "the token of a user", Do: one, As: root, JSON: `{}`, Status: 401},
			{Name: "that of another project", Do: one, Header: bearer(stranger), JSON: `{}`, Status: 401},
			{Name: "that of a duplicate", Do: one, Header: bearer(secondToken), JSON: `{}`, Status: 401},
			{Name: "no such project", Do: "POST //alice/none/alerts/notify.json", Header: bearer(token), JSON: `{}`, Status: 401},
			{Name: "no such address", Do: missing, Header: bearer(token), JSON: `{}`, Status: 404},
			{Name: "no such endpoint, anonymous", Do: missing, Header: bearer("wrong"), JSON: `{}`, Status: 401},
			{Name: "disable", Do: fmt.Sprintf("PUT /projects/%d", id), As: alice, JSON: `{"monitor_access_level":"disabled"}`, Status: 200},
			{Name: "disabled", Do: one, Header: bearer(token), JSON: `{"title":"f"}`, Status: 403, Want: `{"message":"403 Forbidden - Alerts are disabled in this project."}`},
			{Name: "disabled, a wrong token", Do: one, Header: bearer("wrong"), JSON: `{"title":"f"}`, Status: 401},
			{Name: "enable", Do: fmt.Sprintf("PUT /projects/%d", id), As: alice, JSON: `{"monitor_access_level":"enabled"}`, Status: 200},
			{Name: "read", Do: strings.Replace(one, "POST", "GET", 1), Header: bearer(token), Status: 405, WantHeader: map[string]string{"Allow": "POST"}},
			{Name: "no JSON", Do: one, Header: bearer(token), JSON: `{`, Status: 400, Want: `{"message":"400 Bad request - the payload is not valid JSON"}`},
			{Name: "two of them", Do: one, Header: bearer(token), JSON: `{}{}`, Status: 400},
			{Name: "no object", Do: one, Header: bearer(token), JSON: `[]`, Status: 400},
			{Name: "not UTF-8", Do: one, Header: bearer(token), JSON: "{\"title\":\"\xff\"}", Status: 400},
			{Name: "a form", Do: one, Header: bearer(token), Form: map[string][]string{"title": {"x"}}, Status: 415},
			{Name: "as large as may be", Do: one, Header: bearer(token), JSON: `{"x":"` + strings.Repeat("x", 1<<20-8) + `"}`, Status: 200},
			{Name: "larger", Do: one, Header: bearer(token), JSON: `{"x":"` + strings.Repeat("x", 1<<20-7) + `"}`, Status: 413},
			{Name: "larger, anonymous", Do: one, JSON: `{"x":"` + strings.Repeat("x", 1<<20-7) + `"}`, Status: 401},
			{Do: fmt.Sprintf("PUT /projects/%d/alert_management/http_integrations/%d", id, first), As: alice, JSON: `{"active":false}`, Status: 200},
			{Name: "turned off", Do: one, Header: bearer(token), JSON: `{}`, Status: 403},
			{Do: fmt.Sprintf("PUT /projects/%d", id), As: alice, JSON: `{"path":"moved"}`, Status: 200},
			{Name: "of a project that moved", Do: plain, Header: bearer(secondToken), JSON: `{}`, Status: 404, Want: `{"message":"404 Project Not Found - Project has moved to alice/moved"}`},
			{Name: "anonymous", Do: plain, Header: bearer("wrong"), JSON: `{}`, Status: 401},
			{Do: fmt.Sprintf("POST /projects/%d/archive", id), As: alice, Status: 201},
			{Name: "archived", Do: strings.Replace(below(s, secondURL), "/watched/", "/moved/", 1), Header: bearer(secondToken), JSON: `{}`, Status: 403},
		})
	})
}

// TestAlerts sends payloads and checks the alerts that they create.
func TestAlerts(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		devID, dev := s.User(t, "dev")
		guestID, _ := s.User(t, "guest")
		id := newProject(t, s, alice, "p", "")
		enlist(t, s, id, devID, project.Developer)
		enlist(t, s, id, guestID, project.Guest)
		_, url, token := integration(t, s, alice, id, `{"name":"w","payload_example":{"what":{"name":"x"},"at":["h"]},"payload_attribute_mappings":[{"field_name":"title","path":["what","name"]},{"field_name":"hosts","path":["at"]}]}`)
		in, at := below(s, url), fmt.Sprintf("/projects/%d/alert_management_alerts", id)
		send := func(name, body, want string) apptest.Call {
			return apptest.Call{Name: name, Do: in, Header: bearer(token), JSON: body, Status: 200, Want: want}
		}
		element := func(title, more string) string { return `{"labels":{"alertname":"` + title + `"}` + more + `}` }
		batch := func(status string, elements ...string) string {
			return `{"version":"4","groupKey":"g","status":"` + status + `","receiver":"r","groupLabels":{},"commonLabels":{},"commonAnnotations":{},"externalURL":"http://x","truncatedAlerts":0,"alerts":[` + strings.Join(elements, ",") + `]}`
		}
		s.Table(t, []apptest.Call{
			send("everything", `{"title":"Full","description":"d","start_time":"2024-05-06T07:08:09Z","service":"s","monitoring_tool":"m","hosts":["a","b"],"severity":"HIGH","fingerprint":["x","y"],"svc_environment_name":"prod","more":{"x":[1,null]}}`, `[{"iid":1,"title":"Full"}]`),
			{Name: "shown", Do: "GET " + at + "/1", As: dev, Status: 200, Want: fmt.Sprintf(`{"iid":1,"project_id":%d,"title":"Full","description":"d","severity":"high","status":"triggered","service":"s","monitoring_tool":"m","hosts":["a","b"],"environment":"prod",
				"started_at":"2024-05-06T07:08:09.000Z","ended_at":null,"event_count":1,"assignee":null,"assignees":[],"issue_iid":null,"web_url":"%s/alice/p/-/alert_management/1/details","payload":{"more":{"x":[1,null]}}}`, id, s.URL)},
			send("nothing", `{}`, `[{"iid":2,"title":"New: Alert"}]`),
			{Do: "GET " + at + "/2", As: dev, Status: 200, Want: `{"description":null,"severity":"critical","service":null,"hosts":[],"environment":null,"started_at":"<any>"}`},
			send("again", `{"hosts":"z","start_time":"2020-01-01 00:00:00"}`, `[{"iid":2}]`),
			{Do: "GET " + at + "/2", As: dev, Status: 200, Want: `{"event_count":2,"hosts":[]}`},
			send("by its fingerprint", `{"title":"Other","fingerprint":["x","y"]}`, `[{"iid":1,"title":"Full"}]`),
			send("over", `{"fingerprint":["x","y"],"end_time":"2024-05-06T08:00:00Z"}`, `[{"iid":1}]`),
			{Do: "GET " + at + "/1", As: dev, Status: 200, Want: `{"status":"resolved","ended_at":"2024-05-06T08:00:00.000Z","event_count":2}`},
			send("once more", `{"fingerprint":["x","y"]}`, `[{"iid":3,"title":"New: Alert"}]`),
			send("over what never was", `{"title":"Gone","end_time":"2024-05-06T08:00:00Z"}`, `[{"iid":4}]`),
			{Do: "GET " + at + "/4", As: dev, Status: 200, Want: `{"status":"resolved","started_at":"2024-05-06T08:00:00.000Z","ended_at":"2024-05-06T08:00:00.000Z"}`},
			send("mapped", `{"what":{"name":"Mapped"},"title":"not this","at":["h1","h2"],"severity":"warn"}`, `[{"iid":5,"title":"Mapped"}]`),
			{Do: "GET " + at + "/5", As: dev, Status: 200, Want: `{"hosts":["h1","h2"],"severity":"critical"}`},
			send("mapped again on other hosts", `{"what":{"name":"Mapped"},"title":"not this","at":["h3"],"severity":"warn"}`, `[{"iid":5}]`),
			send("without what is mapped", `{"title":"this"}`, `[{"iid":6,"title":"this"}]`),
			send("metrics", batch("firing",
				element("A", `,"startsAt":"2024-01-01T00:00:00Z","endsAt":"0001-01-01T00:00:00Z","status":"firing","annotations":{"title":"Title of A","description":"What","runbook":"http://run","owner":"me","svc_y_label":"y"},"generatorURL":"http://prom/graph?g0.expr=up+%3D%3D+0&g0.tab=1"`),
				element("B", ""), `"none"`,
				element("C", `,"startsAt":"2024-01-01T00:00:00Z","labels":{"alertname":"C","severity":"Warn","gitlab_environment_name":"stage"}`)), `[{"iid":7,"title":"Title of A"},{"iid":8,"title":"C"}]`),
			{Do: "GET " + at + "/7", As: dev, Status: 200, Want: `{"monitoring_tool":"Prometheus","description":"What","metric_query":"up == 0","y_label":"y","runbook":"http://run","annotations":{"owner":"me"},"severity":"critical","status":"triggered","format":"metrics"}`},
			{Do: "GET " + at + "/8", As: dev, Status: 200, Want: `{"severity":"low","environment":"stage","y_label":"C"}`},
			send("metrics over", batch("resolved", element("C", `,"status":"resolved","startsAt":"2024-01-01T00:00:00Z","endsAt":"2024-01-01T01:00:00Z","labels":{"alertname":"C","severity":"Warn","gitlab_environment_name":"stage"}`)), `[{"iid":8}]`),
			{Do: "GET " + at + "/8", As: dev, Status: 200, Want: `{"status":"resolved","ended_at":"2024-01-01T01:00:00.000Z"}`},
			{Name: "metrics with nothing in it", Do: in, Header: bearer(token), JSON: batch("firing", element("B", "")), Status: 400},

			{Name: "all", Do: "GET " + at + "?order_by=created_at&sort=asc", As: dev, Status: 200, Want: `[{"iid":1},{"iid":2},{"iid":3},{"iid":4},{"iid":5},{"iid":6},{"iid":7},{"iid":8}]`, WantHeader: map[string]string{"X-Total": "8"}, Not: []string{"payload"}},
			{Name: "by status", Do: "GET " + at + "?status=resolved,ignored&sort=asc", As: dev, Status: 200, Want: `[{"iid":8},{"iid":1},{"iid":4}]`},
			{Name: "by severity", Do: "GET " + at + "?severity=high,low", As: dev, Status: 200, Want: `[{"iid":1},{"iid":8}]`},
			{Name: "by words", Do: "GET " + at + "?search=title%20OF", As: dev, Status: 200, Want: `[{"iid":7}]`},
			{Name: "by tool", Do: "GET " + at + "?monitoring_tool=Prometheus&order_by=severity", As: dev, Status: 200, Want: `[{"iid":8},{"iid":7}]`},
			{Name: "the most", Do: "GET " + at + "?order_by=event_count&per_page=1&environment=prod", As: dev, Status: 200, Want: `[{"iid":1}]`},
			{Name: "a page", Do: "GET " + at + "?pagination=keyset&order_by=severity&sort=asc&per_page=7", As: dev, Status: 200, Want: `[{"iid":2},{"iid":3},{"iid":4},{"iid":5},{"iid":6},{"iid":7},{"iid":1}]`},
			{Name: "an unknown status", Do: "GET " + at + "?status=open", As: dev, Status: 400},

			{Name: "take", Do: "PUT " + at + "/2", As: dev, JSON: fmt.Sprintf(`{"status":"acknowledged","assignee_id":%d}`, devID), Status: 200, Want: `{"status":"acknowledged","assignee":{"username":"dev"},"assignees":[{"username":"dev"}]}`},
			{Name: "mine", Do: fmt.Sprintf("GET %s?assignee_id=%d", at, devID), As: dev, Status: 200, Want: `[{"iid":2}]`},
			{Name: "by name", Do: "GET " + at + "?assignee_username=DEV", As: dev, Status: 200, Want: `[{"iid":2}]`},
			{Name: "anybody's", Do: "GET " + at + "?assignee_id=Any", As: dev, Status: 200, Want: `[{"iid":2}]`},
			{Name: "unassigned", Do: "GET " + at + "?assignee_id=None&status=acknowledged", As: dev, Status: 200, Want: `[]`},
			{Name: "comes again", Do: in, Header: bearer(token), JSON: `{}`, Status: 200, Want: `[{"iid":2}]`},
			{Do: "GET " + at + "/2", As: dev, Status: 200, Want: `{"status":"acknowledged","event_count":3}`},
			{Name: "for one who does not see it", Do: "PUT " + at + "/2", As: dev, JSON: fmt.Sprintf(`{"assignee_id":%d}`, guestID), Status: 400, Want: `{"message":{"assignee_id":["is invalid"]}}`},
			{Name: "without an assignee", Do: "PUT " + at + "/2", As: dev, JSON: `{"assignee_ids":[]}`, Status: 200, Want: `{"assignee":null,"status":"acknowledged"}`},
			{Name: "by username", Do: "PUT " + at + "/2", As: dev, JSON: `{"assignee":"alice"}`, Status: 200, Want: `{"assignee":{"username":"alice"}}`},
			{Name: "by another", Do: "PUT " + at + "/2", As: dev, JSON: `{"assignee":"whoever"}`, Status: 400, Want: `{"message":{"assignee":["is invalid"]}}`},
			{Name: "by none", Do: "PUT " + at + "/2", As: dev, JSON: `{"assignee":null}`, Status: 200, Want: `{"assignee":null}`},
			{Name: "resolve", Do: "PUT " + at + "/3", As: dev, JSON: `{"status":"resolved"}`, Status: 200, Want: `{"status":"resolved","ended_at":"<any>"}`},
			{Name: "reopen", Do: "PUT " + at + "/3", As: dev, JSON: `{"status":"triggered"}`, Status: 200, Want: `{"status":"triggered","ended_at":null}`},
			{Name: "beside its like", Do: "PUT " + at + "/1", As: dev, JSON: `{"status":"triggered"}`, Status: 400, Want: `{"message":{"status":["can't be changed: an alert with the same fingerprint is already open"]}}`},
			{Name: "nothing to do", Do: "PUT " + at + "/1", As: dev, JSON: `{}`, Status: 400, Want: `{"error":"status, assignee_id, assignee_ids, assignee are missing, at least one parameter must be provided"}`},
			{Name: "another status", Do: "PUT " + at + "/1", As: dev, JSON: `{"status":"open"}`, Status: 400},
			{Name: "no such alert", Do: "GET " + at + "/99", As: dev, Status: 404, Want: `{"message":"404 Alert Not Found"}`},
		})
	})
}

// TestManyAlerts sends the same alert 50 times concurrently, and one payload with
// 1000 alerts.
func TestManyAlerts(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id := newProject(t, s, alice, "p", "")
		_, url, token := integration(t, s, alice, id, `{"name":"w"}`)
		at := fmt.Sprintf("/projects/%d/alert_management_alerts", id)
		send := func(body string) apptest.Answer {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer "+token)
			return s.Exchange(t, r)
		}
		const crowd = 50
		var wait sync.WaitGroup
		for range crowd {
			wait.Go(func() {
				if a := send(`{"title":"Same","x":1}`); a.Status != 200 {
					t.Errorf("status %d: %s", a.Status, a.Body)
				}
			})
		}
		wait.Wait()
		s.Check(t, apptest.Call{Do: "GET " + at, As: alice, Status: 200, Want: fmt.Sprintf(`[{"iid":1,"title":"Same","event_count":%d}]`, crowd)})

		const many = 1000
		elements := make([]string, many)
		for i := range elements {
			elements[i] = fmt.Sprintf(`{"startsAt":"2024-01-01T00:00:00Z","labels":{"alertname":"Many","n":"%d"}}`, i)
		}
		batch := `{"version":"4","groupKey":"g","status":"firing","receiver":"r","groupLabels":{},"commonLabels":{},"commonAnnotations":{},"externalURL":"","alerts":[` + strings.Join(elements, ",") + `]}`
		// The IID of the last alert is already used, so that none of them is
		// created.
		if _, err := s.DB.ExecContext(t.Context(), `UPDATE alerts SET iid = ? WHERE project_id = ?`, many+1, id); err != nil {
			t.Fatal(err)
		}
		if a := send(batch); a.Status != 500 {
			t.Errorf("status %d: %s", a.Status, a.Body)
		}
		s.Check(t, apptest.Call{Do: "GET " + at, As: alice, Status: 200, WantHeader: map[string]string{"X-Total": "1"}})
		if _, err := s.DB.ExecContext(t.Context(), `UPDATE alerts SET iid = 1 WHERE project_id = ?`, id); err != nil {
			t.Fatal(err)
		}
		var taken []struct{ IID int64 }
		answer := send(batch)
		answer.JSON(t, &taken)
		if len(taken) != many || taken[0].IID != 2 || taken[many-1].IID != many+1 {
			t.Errorf("%d alerts were taken", len(taken))
		}
		s.Check(t, apptest.Call{Do: "GET " + at, As: alice, Status: 200, WantHeader: map[string]string{"X-Total": fmt.Sprint(many + 1)}})
		send(strings.Replace(batch, "firing", "resolved", 1))
		s.Check(t, apptest.Call{Do: "GET " + at + "?status=resolved", As: alice, Status: 200, WantHeader: map[string]string{"X-Total": fmt.Sprint(many)}})
	})
}

// eventually repeats a call until done returns true for the response, because
// background jobs change it.
func eventually(t *testing.T, s *apptest.Server, c apptest.Call, done func(body []byte) bool) {
	t.Helper()
	waittest.For(t, c.Do, func() bool { return done(s.Send(t, c).Body) })
	s.Check(t, c)
}

// TestIncidents opens issues for alerts and closes them.
func TestIncidents(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		s.User(t, "alert-bot") // the bot user needs another name
		id := newProject(t, s, alice, "p", "")
		_, url, token := integration(t, s, alice, id, `{"name":"w"}`)
		in, at, issues := below(s, url), fmt.Sprintf("/projects/%d/alert_management", id), fmt.Sprintf("/projects/%d/issues", id)
		element := func(name, status, more string) string {
			return `{"version":"4","groupKey":"g","status":"` + status + `","receiver":"r","groupLabels":{},"commonLabels":{},"commonAnnotations":{},"externalURL":"","alerts":[{"status":"` + status + `","startsAt":"2024-01-01T00:00:00Z","labels":{"alertname":"` + name + `"}` + more + `}]}`
		}
		more := `,"annotations":{"note":"a ` + "`@root`" + ` b","svc_incident_markdown":"**look** at it"}`
		has := func(words ...string) func([]byte) bool {
			return func(body []byte) bool {
				for _, word := range words {
					if !strings.Contains(string(body), word) {
						return false
					}
				}
				return true
			}
		}
		s.Table(t, []apptest.Call{
			{Name: "as it is", Do: "GET " + at + "/settings", As: alice, Status: 200, Want: `{"create_issue":false,"auto_close_incident":true,"send_email":true}`},
			{Name: "without", Do: in, Header: bearer(token), JSON: `{"title":"before"}`, Status: 200},
			{Name: "turned on", Do: "PUT " + at + "/settings", As: alice, JSON: `{"create_issue":true,"send_email":false}`, Status: 200, Want: `{"create_issue":true,"auto_close_incident":true,"send_email":false}`},
			{Name: "recorded", Do: fmt.Sprintf("GET /projects/%d/audit_events?per_page=2", id), As: root, Status: 200,
				Want: `[{"event_type":"alert_settings_updated","details":{"change":"send_email"}},{"event_type":"alert_settings_updated","details":{"change":"create_issue","from":"false","to":"true"}}]`},
			{Name: "fires", Do: in, Header: bearer(token), JSON: element("Down", "firing", more), Status: 200, Want: `[{"iid":2}]`},
		})
		eventually(t, s, apptest.Call{Do: "GET " + at + "_alerts/2", As: alice, Status: 200, Want: `{"issue_iid":1}`}, has(`"issue_iid":1`))
		answer := s.Check(t, apptest.Call{Do: "GET " + issues, As: alice, Status: 200,
			Want: `[{"iid":1,"title":"Down","issue_type":"incident","labels":["incident"],"state":"opened","author":{"username":"alert-bot1","name":"Svc Alert Bot"}}]`})
		var list []struct{ Description string }
		answer.JSON(t, &list)
		for _, want := range []string{"**look** at it", "`` a `@root` b ``", "/alice/p/-/alert_management/2/details", "**Severity:** `critical`"} {
			if !strings.Contains(list[0].Description, want) {
				t.Errorf("the description lacks %q: %s", want, list[0].Description)
			}
		}
		s.Check(t, apptest.Call{Name: "over", Do: in, Header: bearer(token), JSON: element("Down", "resolved", more), Status: 200, Want: `[{"iid":2}]`})
		closed := `{"state":"closed","closed_by":{"username":"alert-bot1"}}`
		eventually(t, s, apptest.Call{Do: "GET " + issues + "/1", As: alice, Status: 200, Want: closed}, has(`"state":"closed"`))
		s.Check(t, apptest.Call{Do: "GET " + issues + "/1/notes", As: alice, Status: 200, Want: `[{"body":"closed via alert 2","system":true}]`})

		// An alert that is resolved at once gets no incident. If auto-close is
		// disabled, an incident stays open.
		s.Table(t, []apptest.Call{
			{Do: "PUT " + at + "/settings", As: alice, JSON: `{"auto_close_incident":false}`, Status: 200},
			{Do: in, Header: bearer(token), JSON: element("Past", "resolved", ""), Status: 200, Want: `[{"iid":3}]`},
			{Do: in, Header: bearer(token), JSON: element("Stays", "firing", ""), Status: 200, Want: `[{"iid":4}]`},
		})
		eventually(t, s, apptest.Call{Do: "GET " + at + "_alerts/4", As: alice, Status: 200, Want: `{"issue_iid":2}`}, has(`"issue_iid":2`))
		s.Table(t, []apptest.Call{
			{Do: in, Header: bearer(token), JSON: element("Stays", "resolved", ""), Status: 200},
			{Do: in, Header: bearer(token), JSON: element("Marker", "firing", `,"annotations":{"note":"`+strings.Repeat("x", 1<<20-1000)+`"}`), Status: 200},
		})
		eventually(t, s, apptest.Call{Do: "GET " + at + "_alerts/5", As: alice, Status: 200, Want: `{"issue_iid":3}`}, has(`"issue_iid":3`))
		s.Check(t, apptest.Call{Do: "GET " + issues + "?state=opened&sort=asc", As: alice, Status: 200, Want: `[{"iid":2,"title":"Stays"},{"iid":3,"title":"Marker"}]`})
		s.Check(t, apptest.Call{Do: "GET " + at + "_alerts/3", As: alice, Status: 200, Want: `{"issue_iid":null}`})
	})
}

// TestAlertBounds checks the rate limit of integrations and the deletion of old
// alerts.
func TestAlertBounds(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id := newProject(t, s, alice, "p", "")
		_, url, token := integration(t, s, alice, id, `{"name":"w"}`)
		_, secondURL, secondToken := integration(t, s, alice, id, `{"name":"v"}`)
		in, alerts := below(s, url), fmt.Sprintf("/projects/%d/alert_management_alerts", id)
		payload := func(name, body string, status int) apptest.Call {
			return apptest.Call{Name: name, Do: in, Header: bearer(token), JSON: body, Status: status}
		}
		s.Clock.Stop()
		limited := payload("one too many", `{"title":"c"}`, 429)
		limited.Want = `{"message":{"error":"This endpoint has been requested too many times. Try again later."}}`
		limited.WantHeader = map[string]string{"Retry-After": "30", "RateLimit-Name": "alerts", "RateLimit-Limit": "2"}
		s.Table(t, []apptest.Call{
			{Name: "wrong settings", Do: "PUT /application/settings", As: root, JSON: `{"alert_payloads_per_minute":-1,"alert_retention_days":40000}`, Status: 400},
			{Name: "set", Do: "PUT /application/settings", As: root, JSON: `{"alert_payloads_per_minute":2}`, Status: 200, Want: `{"alert_payloads_per_minute":2,"alert_retention_days":365}`},
			payload("the first", `{"title":"a"}`, 200), payload("one that is refused counts", `{`, 400), limited,
			{Name: "by the address of the project", Do: "POST //alice/p/alerts/notify.json", Header: bearer(token), JSON: `{"title":"c"}`, Status: 429},
			{Name: "not revealed", Do: in, JSON: `{}`, Status: 401},
			{Name: "another integration", Do: below(s, secondURL), Header: bearer(secondToken), JSON: `{"title":"b"}`, Status: 200},
			{Name: "nothing of it was kept", Do: "GET " + alerts + "?sort=asc", As: alice, Status: 200, Want: `[{"title":"a"},{"title":"b"}]`},
		})
		s.Clock.Move(30 * time.Second)
		s.Table(t, []apptest.Call{
			payload("half a minute later", `{"title":"c"}`, 200), payload("and no more", `{"title":"d"}`, 429),
			{Name: "no limit", Do: "PUT /application/settings", As: root, JSON: `{"alert_payloads_per_minute":0}`, Status: 200},
			payload("at once", `{"title":"d"}`, 200),
			{Do: "PUT " + alerts + "/1", As: alice, JSON: `{"status":"resolved"}`, Status: 200},
			{Do: "PUT " + alerts + "/2", As: alice, JSON: `{"status":"ignored"}`, Status: 200},
			{Do: "PUT " + alerts + "/3", As: alice, JSON: `{"status":"acknowledged"}`, Status: 200},
		})
		incident, err := s.Alerts.CreateIncident(t.Context(), actorOf(t, s, alice), project.RefTo(id), 1)
		if err != nil {
			t.Fatal(err)
		}
		kept := func(days int, want string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "PUT /application/settings", As: root, JSON: fmt.Sprintf(`{"alert_retention_days":%d}`, days), Status: 200})
			if err := s.Alerts.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.Check(t, apptest.Call{Do: "GET " + alerts + "?order_by=created_at&sort=asc", As: alice, Status: 200, Want: want})
		}
		all := `[{"title":"a"},{"title":"b"},{"title":"c"},{"title":"d"}]`
		s.Clock.Move(10 * 24 * time.Hour)
		kept(11, all)
		kept(0, all)
		kept(9, `[{"title":"c","status":"acknowledged"},{"title":"d","status":"triggered"}]`)
		s.Check(t, apptest.Call{Name: "the incident stays", Do: fmt.Sprintf("GET /projects/%d/issues/%d", id, incident.IssueIID), As: alice, Status: 200, Want: `{"title":"a"}`})
		var notes int
		if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM notes WHERE noteable_type = ? AND noteable_id = ?`, alert.NoteKind, incident.ID).Scan(&notes); err != nil || notes != 0 {
			t.Errorf("%d notes are left: %v", notes, err)
		}
	})
}

// TestAlertsOfFreeTier checks that the free tier allows one integration of each
// type, and only groups alerts with a fingerprint.
func TestAlertsOfFreeTier(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id := newProject(t, s, alice, "p", "")
		_, url, token := integration(t, s, alice, id, `{"name":"w","payload_example":{"a":"x"},"payload_attribute_mappings":[{"field_name":"title","path":["a"]}]}`)
		integration(t, s, alice, id, `{"name":"p","type":"prometheus"}`)
		in, at := below(s, url), fmt.Sprintf("/projects/%d/alert_management_alerts", id)
		var first json.RawMessage
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/alert_management/http_integrations", id), As: alice, Status: 200, Want: `[{"payload_example":null,"payload_attribute_mappings":[]},{}]`}).JSON(t, &first)
		s.Table(t, []apptest.Call{
			{Name: "a second one", Do: fmt.Sprintf("POST /projects/%d/alert_management/http_integrations", id), As: alice, JSON: `{"name":"v"}`, Status: 400},
			{Name: "no mapping", Do: in, Header: bearer(token), JSON: `{"a":"mapped"}`, Status: 200, Want: `[{"iid":1,"title":"New: Alert"}]`},
			{Name: "the same", Do: in, Header: bearer(token), JSON: `{"a":"mapped"}`, Status: 200, Want: `[{"iid":2}]`},
			{Name: "over", Do: in, Header: bearer(token), JSON: `{"a":"mapped","end_time":"2024-01-01T00:00:00Z"}`, Status: 200, Want: `[{"iid":1},{"iid":2}]`},
			{Name: "with a fingerprint", Do: in, Header: bearer(token), JSON: `{"fingerprint":"f"}`, Status: 200, Want: `[{"iid":3}]`},
			{Name: "again", Do: in, Header: bearer(token), JSON: `{"fingerprint":"f"}`, Status: 200, Want: `[{"iid":3}]`},
			{Name: "not counted", Do: "GET " + at + "/3", As: alice, Status: 200, Want: `{"event_count":1}`},
		})
	}, apptest.Tier("free"))
}
