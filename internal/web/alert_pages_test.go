package web_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// TestAlertPages creates an integration, sends alerts to it and manages them on
// pages; then it repeats the requests as each role.
func TestAlertPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st := newPlanProject(t, s)
		b, settings := st.b, "/g/p/-/settings/alerts"
		b.get("/g/p").want(200, ">Monitor<")
		b.get("/g/p/-/error_tracking").want(200, `href="/g/p/-/alert_management"`)
		b.get("/g/p/-/alert_management").want(200, "No alerts", `href="/g/p/-/settings/alerts"`)
		b.get(settings).want(200, "No integrations", `name="auto_close_incident" value="1" checked`)
		b.submit(settings, settings, "name", " ", "type", "http").want(422, "can&#39;t be blank")
		at := b.submit(settings, settings, "name", "Watch <b>", "type", "http").header.Get("Location")
		page := b.get(at).want(200, "Watch &lt;b&gt;", "/g/p/alerts/notify/watch-b/", `data-copy="key"`, "Sample payload").not("Payload field").body
		token := regexp.MustCompile(`<code id="key">([A-Z2-7]+)</code>`).FindStringSubmatch(page)[1]
		example := `{"event":{"name":"Disk <i>full","sev":"high"},"other":"x"}`
		b.submit(at, at, "name", "Watch", "active", "1", "payload_example", "{").want(422, "must be a JSON object")
		b.submit(at, at, "name", "Watch", "active", "1", "payload_example", example).leads(at)
		b.get(at).want(200, "Payload field", "event / name", `value="[&#34;event&#34;,&#34;sev&#34;]"`)
		b.submit(at, at, "name", "Watch", "active", "1", "payload_example", example, "path_start_time_0", `["other"]`).want(422, "does not suit it")
		b.submit(at, at, "name", "Watch", "active", "1", "payload_example", example, "path_title_0", `["event","name"]`, "path_severity_0", `["gone"]`, "path_severity_1", `["event","sev"]`).leads(at)
		b.get(at).want(200, `<option value="[&#34;event&#34;,&#34;name&#34;]" selected>`, `<option value="[&#34;gone&#34;]" selected>`)
		b.submit(at, at+"/test", "payload", "nothing").want(422, "the payload is not valid JSON")
		one := b.submit(at, at+"/test").header.Get("Location")
		if one != "/g/p/-/alert_management/1/details" {
			t.Fatalf("the test alert is at %s", one)
		}
		b.get(one).want(200, "Disk &lt;i&gt;full", ">High<", ">Triggered<", "event/sev", "No activity yet")
		send := func(body string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "POST //g/p/alerts/notify.json", Header: map[string]string{"Authorization": "Bearer " + token}, JSON: body, Status: 200})
		}
		send(`{"version":"4","groupKey":"g","status":"firing","receiver":"r","groupLabels":{},"commonLabels":{},"commonAnnotations":{},"externalURL":"","alerts":[{"startsAt":"2024-01-01T00:00:00Z",
			"labels":{"alertname":"Slow","severity":"warn"},"annotations":{"runbook":"javascript:alert(1)","owner":"<script>alert(2)</script>","dashboard":"http://d"},"generatorURL":"javascript:alert(3)?g0.expr=up"}]}`)
		send(example)
		b.get("/g/p/-/alert_management").want(200, "Slow", "Disk &lt;i&gt;full", `title="Event count"`, `Open <span class="count">2</span>`)
		b.get("/g/p/-/alert_management?search=slo&severity=low&sort=severity_asc&assignee_username=None").want(200, "Slow").not("Disk")
		b.get("/g/p/-/alert_management?search=zzz").want(200, "No results found")
		b.get("/g/p/-/alert_management?status=resolved").want(200, "No alerts")
		two := "/g/p/-/alert_management/2/details"
		b.get(two).want(200, "Annotations", "&lt;script&gt;alert(2)", "<code>up</code>", "javascript:alert(1)").not(`href="javascript`, "<script>alert")

		b.submit(two, "/g/p/-/alert_management/2/status", "status", "acknowledged").leads(two)
		b.submit(two, "/g/p/-/alert_management/2/status", "status", "gone").leads(two)
		b.get(two).want(200, "is not included in the list")
		b.submit(two, "/g/p/-/alert_management/2/assignee", "username", "@ada").leads(two)
		b.submit(two, "/g/p/-/alert_management/2/assignee", "username", "whoever").leads(two)
		b.get(two).want(200, "is not an existing username", "changed the status to <strong>Acknowledged</strong>", "assigned to", `value="ada"`)

		// Metric images, for users who can see the alert.
		var picture bytes.Buffer
		if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
			t.Fatal(err)
		}
		const images = "/g/p/-/alert_management/2/images"
		b.uploadAs(t, images, b.get(two).token(), "a graph.png", picture.String(), "url", "https://graph.example.org", "url_text", "The <b>graph").leads(two)
		shown := regexp.MustCompile(`/uploads/-/system/alert_metric_image/file/\d+/[^"]+`).FindString(b.get(two).want(200, "The image was uploaded.", "The &lt;b&gt;graph", `href="https://graph.example.org"`).body)
		if got := b.get(shown).want(200); got.header.Get("Content-Type") != "image/png" {
			t.Errorf("image is served as %q", got.header.Get("Content-Type"))
		}
		newBrowser(t, s).get(shown).want(303)
		b.get(shown + "x").want(404)
		b.uploadAs(t, images, b.get(two).token(), "x.png", "no image").leads(two)
		b.get(two).want(200, "is not an image that is supported")
		b.submit(two, images+"/"+strings.Split(shown, "/")[6]+"/delete").leads(two)
		b.get(two).want(200, "The image was deleted.").not(shown)
		b.submit(two, "/g/p/-/alert_management/2/incident").leads(two)
		b.submit(two, "/g/p/-/alert_management/2/incident").leads(two)
		b.get(two).want(200, "The alert already has an incident", "Incident #1").not("Create incident")
		b.get("/g/p/-/issues/1").want(200, "Slow", "incident").not("<script>alert")
		b.submit(settings, settings+"/incidents", "create_issue", "1").leads(settings)
		b.get(settings).want(200, `name="create_issue" value="1" checked`, `name="send_email" value="1">`)
		b.submit(at, at+"/reset").leads(at)
		b.get(at).want(200).not(token)

		// The other roles. The last role with the permission does what can be done
		// only once.
		browsers := map[string]*browser{"nobody": newBrowser(t, s)}
		for who, level := range map[string]string{"stranger": "", "guest": "10", "reporter": "20", "developer": "30", "maintainer": "40"} {
			id, _ := s.User(t, who)
			browsers[who] = newBrowser(t, s).signIn(who, password)
			if level != "" {
				s.Check(t, apptest.Call{Do: "POST /groups/g/members", As: st.token, Form: url.Values{"user_id": {fmt.Sprint(id)}, "access_level": {level}}, Status: 201})
			}
		}
		order := []string{"nobody", "stranger", "guest", "reporter", "developer", "maintainer"}
		for _, visibility := range []string{"public", "private"} {
			s.Check(t, apptest.Call{Do: "PUT /projects/g%2Fp", As: st.token, Form: url.Values{"visibility": {visibility}}, Status: 200})
			outside := map[string]string{"public": "403", "private": "404"}[visibility]
			for page, want := range map[string]string{
				"/g/p/-/alert_management": "303 " + outside + " 403 403 200 200", one: "303 " + outside + " 403 403 200 200", "/g/p/-/alert_management/99/details": "303 " + outside + " 403 403 404 404",
				settings: "303 " + outside + " 403 403 403 200", at: "303 " + outside + " 403 403 403 200", settings + "/999999": "303 " + outside + " 403 403 403 404",
			} {
				for i, status := range strings.Fields(want) {
					if got := browsers[order[i]].get(page); fmt.Sprint(got.status) != status {
						t.Errorf("%s: %s gets %d for %s, want %s", visibility, order[i], got.status, page, status)
					}
				}
			}
			for _, c := range []struct{ page, want string }{
				{"/g/p/-/alert_management/1/status?status=ignored", outside + " 403 403 303 303"},
				{"/g/p/-/alert_management/1/assignee?username=", outside + " 403 403 303 303"},
				{"/g/p/-/alert_management/1/incident", outside + " 403 403 303 303"},
				{at + "/test", outside + " 403 403 303 303"},
				{settings + "?name=x&type=http", outside + " 403 403 403 303"},
				{settings + "/incidents", outside + " 403 403 403 303"},
				{at + "?name=Watch&active=1", outside + " 403 403 403 303"},
				{at + "/reset", outside + " 403 403 403 303"},
				{settings + "/999999/delete", outside + " 403 403 403 404"},
			} {
				path, query, _ := strings.Cut(c.page, "?")
				form, err := url.ParseQuery(query)
				if err != nil {
					t.Fatal(err)
				}
				for i, status := range strings.Fields(c.want) {
					who := order[i+1]
					form.Set("authenticity_token", browsers[who].get("/").token())
					if got := browsers[who].post(path, form); fmt.Sprint(got.status) != status {
						t.Errorf("%s: %s gets %d for POST %s, want %s: %s", visibility, who, got.status, c.page, status, got.body)
					}
				}
			}
		}
		browsers["guest"].get("/g/p").want(200).not("alert_management")
		browsers["developer"].get("/g/p/-/alert_management").want(200).not("/settings/alerts")
		b.submit(at, at+"/delete").leads(settings)
		b.get(at).want(404)
	})
}
