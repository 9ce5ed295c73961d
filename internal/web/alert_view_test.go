package web

import (
	"time"

	"svc/internal/alert"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/user"
)

// alertContents are the pages of alerts, with data and empty.
func alertContents() []content {
	now := time.Unix(1e9, 0)
	ada := &user.User{ID: 1, Username: "ada", Name: "Ada"}
	in := &project.Project{ID: 1, Path: "p", FullPath: "g/p", Name: "P", Namespace: project.Namespace{Name: "G", FullPath: "g"}}
	h := head{Project: in, Issues: true, SeesErrors: true, SeesAlerts: true, MaySet: true, SignedIn: true, Tab: "monitor", Open: "0"}
	whole := &alert.Alert{
		ID: 1, IID: 1, Status: alert.Triggered, Severity: alert.High, StartedAt: now, EndedAt: &now, CreatedAt: now, Events: 3, Title: "Down", Description: "d", Service: "s", Tool: "t",
		Environment: "e", Hosts: []string{"h"}, IssueIID: 2, Integration: "i", Assignee: ada, Fingerprint: "f",
	}
	details := alert.Details{Query: "up", YLabel: "y", Runbook: "http://run", Generator: "http://prom", Annotations: []alert.Leaf{{Path: alert.Path{"a"}, Value: "b"}}, Facts: []alert.Leaf{{Path: alert.Path{"a", "b"}, Value: "c"}}}
	bad := form{Values: map[string][]string{}, Errors: map[string][]string{"name": {"is wrong"}, "status": {"is wrong"}}, Error: "no"}
	set := setup{P: &h, Base: "/g/p/-/settings/"}
	integration := &alert.Integration{ID: 1, Name: "Watch", Type: alert.HTTP, Active: true, URL: "http://x", Token: "t"}
	off := &alert.Integration{ID: 2, Name: "P", Type: alert.Prometheus}
	statuses := []option{{"triggered", "Triggered"}}
	return []content{
		alertsPage{head: h, Tabs: alertTabs(), Query: alertQuery{Status: "open"}, Alerts: []*alert.Alert{whole, {Severity: alert.Info, Status: alert.Ignored}}, Any: true},
		alertsPage{head: h, Tabs: alertTabs(), Query: alertQuery{Search: "x"}, Any: true}, alertsPage{head: h, Query: alertQuery{Status: "open"}, Any: true}, alertsPage{head: h},
		alertPage{head: h, Alert: whole, Details: details, Images: []*alert.MetricImage{{ID: 1, Name: "a.png", URL: "https://example.org", URLText: "x"}, {ID: 2, Name: "b.png"}}, Notes: []alertNote{{&plan.Note{Author: ada}, "<p>x</p>"}}, Statuses: statuses, Changes: true, Form: bad},
		alertPage{head: h, Alert: &alert.Alert{Title: "x"}, Details: alert.Details{Runbook: "ask Ada"}}, alertPage{head: h, Alert: &alert.Alert{Title: "x"}, Changes: true},
		alertSettingsPage{setup: set, Form: bad, Incidents: filled("create_issue", "1"), Integrations: []*alert.Integration{integration, off}}, alertSettingsPage{setup: set},
		alertIntegrationPage{
			setup: set, Integration: integration, Form: bad, Test: bad, Maps: true, Leaves: []option{{`["a"]`, "a"}},
			Fields: []alertField{{Field: alert.TitleField, Label: "Title", Mine: "title", Paths: [2]string{`["a"]`, `["b"]`}}},
		},
		alertIntegrationPage{setup: set, Integration: off, Form: filled("name", "P"), Test: filled("payload", "")},
	}
}
