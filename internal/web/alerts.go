package web

import (
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"svc/internal/alert"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/plan/listing"
	"svc/internal/project"
)

func (w *Web) alertPages() {
	w.projectPage("GET alert_management", signedIn, w.alerts)
	w.projectPage("GET alert_management/{id}/details", signedIn, w.alert)
	w.projectPage("POST alert_management/{id}/status", signedIn, w.moveAlert)
	w.projectPage("POST alert_management/{id}/assignee", signedIn, w.assignAlert)
	w.projectPage("POST alert_management/{id}/incident", signedIn, w.createIncident)
	w.alertImagePages()
}

// alertsPage is the list of alerts.
type alertsPage struct {
	head
	Base   string // of the pages of alerts
	Query  alertQuery
	Tabs   []alertTab
	Alerts []*alert.Alert
	Any    bool // there are alerts, even if the filter matches none
	Pager  pager
}

func (alertsPage) view() string    { return "project/alerts" }
func (p alertsPage) title() string { return "Alerts · " + p.Project.FullName() }

// alertTab chooses alerts by their status.
type alertTab struct {
	Name, Label string
	Count       string // empty if there is no count
	statuses    []alert.Status
}

func alertTabs() []alertTab {
	return []alertTab{
		{Name: "open", Label: "Open", statuses: []alert.Status{alert.Triggered, alert.Acknowledged}},
		{Name: "triggered", Label: "Triggered", statuses: []alert.Status{alert.Triggered}},
		{Name: "acknowledged", Label: "Acknowledged", statuses: []alert.Status{alert.Acknowledged}},
		{Name: "resolved", Label: "Resolved", statuses: []alert.Status{alert.Resolved}},
		{Name: "ignored", Label: "Ignored", statuses: []alert.Status{alert.Ignored}},
		{Name: "all", Label: "All", statuses: alert.Statuses()},
	}
}

// alertQuery is the filter and the order of a list of alerts.
type alertQuery struct{ Status, Severity, Search, Assignee, Sort string }

// Narrow reports whether there may be more without the filter.
func (q alertQuery) Narrow() bool { return q.Severity != "" || q.Search != "" || q.Assignee != "" }

// With returns the URL of the list with another status.
func (q alertQuery) With(status string) string {
	values := url.Values{"status": {status}}
	for name, value := range map[string]string{"severity": q.Severity, "search": q.Search, "assignee_username": q.Assignee, "sort": q.Sort} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return "?" + values.Encode()
}

// Sorts are the orders of the list.
func (alertQuery) Sorts() []option {
	return []option{{"started_desc", "Last started"}, {"started_asc", "First started"}, {"severity_asc", "Severity"}, {"events_desc", "Most events"}, {"updated_desc", "Last updated"}}
}

// Severities are the severities that the list can be filtered by.
func (alertQuery) Severities() []alert.Severity { return alert.Severities() }

func (v *visit) alertQuery() alertQuery {
	q := alertQuery{Status: v.param("status"), Severity: v.param("severity"), Search: v.param("search"), Assignee: v.param("assignee_username"), Sort: v.param("sort")}
	if !slices.ContainsFunc(alertTabs(), func(t alertTab) bool { return t.Name == q.Status }) {
		q.Status = "open"
	}
	return q
}

func (q alertQuery) filter() (alert.Filter, alert.Order) {
	f := alert.Filter{Search: q.Search}
	if severity, ok := alert.ParseSeverity(q.Severity); ok {
		f.Severities = []alert.Severity{severity}
	}
	switch q.Assignee {
	case "":
	case listing.None:
		f.Unassigned = true
	case listing.Any:
		f.Assigned = true
	default:
		f.AssigneeUsername = strings.TrimPrefix(q.Assignee, "@")
	}
	order := alert.Order{By: "started_at", Desc: true}
	switch q.Sort {
	case "started_asc":
		order.Desc = false
	case "severity_asc":
		order = alert.Order{By: "severity"}
	case "events_desc":
		order.By = "event_count"
	case "updated_desc":
		order.By = "updated_at"
	}
	return f, order
}

func alertBase(in *project.Project) string { return pathTo(in.FullPath) + "/-/alert_management" }

func (w *Web) alerts(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "monitor")
	if err != nil {
		return err
	}
	p := alertsPage{head: h, Base: alertBase(h.Project), Query: v.alertQuery(), Tabs: alertTabs()}
	f, order := p.Query.filter()
	counts, err := w.Alerts.Counts(v, v.actor, h.in(), f)
	if err != nil {
		return err
	}
	for i := range p.Tabs {
		t := &p.Tabs[i]
		if t.Name == p.Query.Status {
			f.Statuses = t.statuses
		}
		n, over := 0, false
		for _, status := range t.statuses {
			n, over = n+counts[status].N, over || counts[status].Over
		}
		if t.Count = strconv.Itoa(n); over {
			t.Count = "10k+"
		}
		p.Any = p.Any || n > 0 || over
	}
	found, err := w.Alerts.Alerts(v, v.actor, h.in(), f, order, v.paging())
	if err != nil {
		return err
	}
	p.Alerts, p.Pager = found.Items, v.pager(found.More)
	return v.show(p)
}

// alertPage is an alert with its details.
type alertPage struct {
	head
	Base string
	*alert.Alert
	alert.Details
	Images   []*alert.MetricImage
	Notes    []alertNote
	Statuses []option
	Changes  bool // the visitor may change it
	Form     form
}

// alertNote is a change of an alert.
type alertNote struct {
	*plan.Note
	Text template.HTML
}

func (alertPage) view() string    { return "project/alert" }
func (p alertPage) title() string { return p.Alert.Title + " · " + p.Project.FullName() }

func (w *Web) alert(v *visit, ref project.Ref) error {
	iid, err := v.number("id")
	if err != nil {
		return err
	}
	return w.showAlert(v, ref, iid, form{})
}

func (w *Web) showAlert(v *visit, ref project.Ref, iid int64, f form) error {
	h, err := w.head(v, ref, "monitor")
	if err != nil {
		return err
	}
	p := alertPage{head: h, Base: alertBase(h.Project), Changes: w.Alerts.CanChange(v.actor, h.Project), Form: f}
	if p.Alert, err = w.Alerts.Alert(v, v.actor, h.in(), iid); err != nil {
		return err
	}
	p.Details = p.Alert.Details(w.Site.Name)
	images, err := w.Alerts.MetricImages(v, v.actor, h.in(), iid, db.Paging{Limit: 100})
	if err != nil {
		return err
	}
	p.Images = images.Items
	notes, err := w.Alerts.Notes(v, v.actor, h.in(), iid)
	if err != nil {
		return err
	}
	texts := make([]plan.Text, len(notes))
	for i, n := range notes {
		texts[i].Source = n.Body
	}
	html, err := w.renderAll(v, project.Place{Ref: h.in()}, texts...)
	if err != nil {
		return err
	}
	for i, n := range notes {
		p.Notes = append(p.Notes, alertNote{n, html[i]})
	}
	for _, s := range alert.Statuses() {
		p.Statuses = append(p.Statuses, option{string(s), words(string(s))})
	}
	if p.Form.Values == nil {
		p.Form = filled("status", string(p.Alert.Status), "username", "")
		if p.Alert.Assignee != nil {
			p.Form.Values.Set("username", p.Alert.Assignee.Username)
		}
	}
	return v.showForm(p, f)
}

func (w *Web) alertAt(v *visit, ref project.Ref, iid int64) string {
	return pathTo(string(ref)) + "/-/alert_management/" + strconv.FormatInt(iid, 10) + "/details"
}

func (w *Web) moveAlert(v *visit, ref project.Ref) error {
	iid, err := v.number("id")
	if err != nil {
		return err
	}
	status := alert.Status(v.text("status"))
	_, err = w.Alerts.Update(v, v.actor, ref, iid, alert.Change{Status: &status})
	return v.redirectWithFlash(err, "The status was changed.", w.alertAt(v, ref, iid))
}

func (w *Web) assignAlert(v *visit, ref project.Ref) error {
	iid, err := v.number("id")
	if err != nil {
		return err
	}
	var assignee *int64
	if name := v.text("username"); name != "" {
		id, err := w.named(v, name)
		if errs.Is(err, errs.KindInvalid) {
			return v.redirectWithFlash(err, "", w.alertAt(v, ref, iid))
		}
		if err != nil {
			return err
		}
		assignee = &id
	}
	_, err = w.Alerts.Update(v, v.actor, ref, iid, alert.Change{Assignee: &assignee})
	return v.redirectWithFlash(err, "The assignee was changed.", w.alertAt(v, ref, iid))
}

func (w *Web) createIncident(v *visit, ref project.Ref) error {
	iid, err := v.number("id")
	if err != nil {
		return err
	}
	_, err = w.Alerts.CreateIncident(v, v.actor, ref, iid)
	return v.redirectWithFlash(err, "The incident was created.", w.alertAt(v, ref, iid))
}
