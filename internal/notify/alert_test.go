package notify_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/mail/mailtest"
)

// TestAlerts checks that Maintainers and Owners are notified once of each new alert.
func TestAlerts(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, m *mailtest.Server) {
		f := newFixture(t, s, m, "owner", "maint", "quiet", "dev")
		f.project = f.do("owner", "POST /projects", `{"name":"Shop","path":"shop"}`, 201)
		at := fmt.Sprintf("/projects/%d", f.project)
		for who, level := range map[string]int{"maint": 40, "quiet": 40, "dev": 30} {
			f.member("projects", f.project, who, level)
		}
		f.level("quiet", at, `{"level":"disabled"}`)
		var made struct{ Token string }
		s.Check(t, apptest.Call{Do: "POST " + at + "/alert_management/http_integrations", As: f.as["owner"], JSON: `{"name":"w"}`, Status: 201}).JSON(t, &made)
		send := func(json string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "POST //owner/shop/alerts/notify.json", Header: map[string]string{"Authorization": "Bearer " + made.Token}, JSON: json, Status: 200})
		}
		send(`{"title":"Disk full","description":"<b>now</b>"}`)
		l := f.notified("new", "maint watching, owner watching")["maint"]
		if l.Subject != "Shop | Alert: Disk full" || !strings.Contains(l.Text, "Disk full (critical)") || !strings.Contains(l.Text, "/owner/shop/-/alert_management/1/details") || strings.Contains(l.HTML, "<b>now") {
			t.Errorf("the email: %s %s %s", l.Subject, l.Text, l.HTML)
		}
		send(`{"title":"Disk full","description":"<b>now</b>"}`)
		send(`{"title":"Past","end_time":"2024-01-01T00:00:00Z"}`)
		f.notified("again, and what is over", "")
		elements := make([]string, 30)
		for i := range elements {
			elements[i] = fmt.Sprintf(`{"startsAt":"2024-01-01T00:00:00Z","labels":{"alertname":"Storm %d"}}`, i)
		}
		send(`{"version":"4","groupKey":"g","status":"firing","receiver":"r","groupLabels":{},"commonLabels":{},"commonAnnotations":{},"externalURL":"","alerts":[` + strings.Join(elements, ",") + `]}`)
		if l := f.notified("a storm", "maint watching, owner watching")["owner"]; !strings.Contains(l.Text, "30 new alerts") || !strings.Contains(l.Text, "Storm 19") || strings.Contains(l.Text, "Storm 20") || !strings.Contains(l.Text, "and 10 more") {
			t.Errorf("the email: %s", l.Text)
		}
		f.do("owner", "PUT "+at+"/alert_management/settings", `{"send_email":false}`, 200)
		send(`{"title":"Unheard"}`)
		f.notified("turned off", "")
	})
}
