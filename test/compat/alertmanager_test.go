package compat

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// request sends JSON as root and decodes the response.
func request(t *testing.T, method, url, body string, status int, into any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("PRIVATE-TOKEN", rootToken)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != status {
		t.Fatalf("%s %s: status %d, want %d: %s", method, url, res.StatusCode, status, text)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatalf("%s %s: %v: %s", method, url, err, text)
		}
	}
}

// alertmanager starts Debian's Alertmanager with a webhook receiver, and returns its
// address.
func alertmanager(t *testing.T, receivers string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(file, []byte(receivers), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	log := &output{}
	cmd := exec.Command("prometheus-alertmanager", "--config.file="+file, "--storage.path="+dir, "--web.listen-address="+address, "--cluster.listen-address=")
	cmd.Stdout, cmd.Stderr = log, log
	p := run(t, cmd)
	t.Cleanup(func() {
		_ = p.Process.Signal(syscall.SIGTERM)
		<-p.ended
		if t.Failed() {
			t.Logf("Alertmanager says:\n%s", log.last(30))
		}
	})
	url := "http://" + address
	waitFor(t, "Alertmanager is ready", func() bool {
		res, err := http.Get(url + "/-/ready")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return url
}

// alertRow is an alert in the API of the server.
type alertRow struct {
	IID         int64
	Title       string
	Description string
	Severity    string
	Status      string
	Tool        string `json:"monitoring_tool"`
	Environment string
	StartedAt   time.Time  `json:"started_at"`
	EndedAt     *time.Time `json:"ended_at"`
	Events      int64      `json:"event_count"`
	IssueIID    int64      `json:"issue_iid"`
	Query       string     `json:"metric_query"`
	Runbook     string
	Annotations map[string]string
}

// TestAlertmanager checks that alerts of Debian's Alertmanager are created and
// resolved, with a bearer token and with a password.
func TestAlertmanager(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		api := s.url + "/api/v4"
		request(t, "POST", api+"/projects", `{"path":"watched"}`, 201, nil)
		project := api + "/projects/root%2Fwatched"
		var bearer, basic struct{ URL, Token string }
		request(t, "POST", project+"/alert_management/http_integrations", `{"name":"Alertmanager","type":"prometheus"}`, 201, &bearer)
		request(t, "POST", project+"/alert_management/http_integrations", `{"name":"Any","type":"http"}`, 201, &basic)
		request(t, "PUT", project+"/alert_management/settings", `{"create_issue":true}`, 200, nil)
		url := alertmanager(t, fmt.Sprintf(`
route:
  receiver: bearer
  group_by: [alertname]
  group_wait: 50ms
  group_interval: 200ms
  repeat_interval: 1h
  routes:
    - matchers: [by="basic"]
      receiver: basic
      group_by: [by]
      group_wait: 50ms
      group_interval: 200ms
receivers:
  - name: bearer
    webhook_configs:
      - url: %s
        send_resolved: true
        http_config: {authorization: {credentials: %q}}
  - name: basic
    webhook_configs:
      - url: %s
        send_resolved: true
        http_config: {basic_auth: {username: "", password: %q}}
`, bearer.URL, bearer.Token, basic.URL, basic.Token))

		began := time.Now().UTC().Add(-time.Minute).Truncate(time.Second)
		post := func(labels, ends string) {
			t.Helper()
			request(t, "POST", url+"/api/v2/alerts", fmt.Sprintf(`[{"startsAt":%q%s,"generatorURL":"http://prometheus.example/graph?g0.expr=up+%%3D%%3D+0&g0.tab=1","labels":{%s},
				"annotations":{"title":"Node is down","description":"It does not answer.","runbook":"https://example.org/run","team":"a"}}]`, began.Format(time.RFC3339), ends, labels), 200, nil)
		}
		one, other := `"alertname":"Down","instance":"a","severity":"warning","svc_environment_name":"production"`, `"alertname":"Slow","by":"basic"`
		post(one, "")
		post(other, "")
		var list []alertRow
		waitFor(t, "both alerts have come", func() bool {
			request(t, "GET", project+"/alert_management_alerts", "", 200, &list)
			return len(list) == 2
		})
		find := func(severity string) alertRow {
			t.Helper()
			for _, a := range list {
				if a.Severity == severity {
					var found alertRow
					request(t, "GET", fmt.Sprintf("%s/alert_management_alerts/%d", project, a.IID), "", 200, &found)
					return found
				}
			}
			t.Fatalf("no alert is %s: %+v", severity, list)
			return alertRow{}
		}
		first, second := find("low"), find("critical")
		same(t, "title", first.Title, "Node is down")
		same(t, "description", first.Description, "It does not answer.")
		same(t, "status", first.Status, "triggered")
		same(t, "tool", first.Tool, "Prometheus")
		same(t, "environment", first.Environment, "production")
		same(t, "start", first.StartedAt.UTC(), began)
		same(t, "end", first.EndedAt == nil, true)
		same(t, "query", first.Query, "up == 0")
		same(t, "runbook", first.Runbook, "https://example.org/run")
		same(t, "annotation", first.Annotations["team"], "a")
		same(t, "status of the other", second.Status, "triggered")
		waitFor(t, "there are incidents", func() bool { return find("low").IssueIID > 0 && find("critical").IssueIID > 0 })

		ended := time.Now().UTC().Add(-time.Second).Truncate(time.Second)
		post(one, fmt.Sprintf(`,"endsAt":%q`, ended.Format(time.RFC3339)))
		waitFor(t, "the alert is over", func() bool { return find("low").Status == "resolved" })
		done := find("low")
		same(t, "end", done.EndedAt.UTC(), ended)
		same(t, "status of the other", find("critical").Status, "triggered")
		waitFor(t, "the incident is closed", func() bool {
			var issue struct{ State, Type string }
			request(t, "GET", fmt.Sprintf("%s/issues/%d", project, done.IssueIID), "", 200, &issue)
			same(t, "type", issue.Type, "INCIDENT")
			return issue.State == "closed"
		})

		// An alert that fires again after it was resolved is a new alert.
		began = time.Now().UTC().Truncate(time.Second)
		post(one, "")
		waitFor(t, "it fires again", func() bool {
			request(t, "GET", project+"/alert_management_alerts?severity=low", "", 200, &list)
			return len(list) == 2
		})
	})
}
