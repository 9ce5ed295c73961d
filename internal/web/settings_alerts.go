package web

import (
	"encoding/json"
	"fmt"
	"strings"

	"svc/internal/alert"
	"svc/internal/errs"
	"svc/internal/project"
)

func (w *Web) alertSettingsPages() {
	w.projectPage("GET settings/alerts", signedIn, ofProject(w.alertSettings))
	w.projectPage("POST settings/alerts", signedIn, ofProject(w.createAlertIntegration))
	w.projectPage("POST settings/alerts/incidents", signedIn, ofProject(w.saveAlertSettings))
	w.projectPage("GET settings/alerts/{id}", signedIn, ofProject(w.alertIntegration))
	w.projectPage("POST settings/alerts/{id}", signedIn, ofProject(w.saveAlertIntegration))
	w.projectPage("POST settings/alerts/{id}/reset", signedIn, ofProject(w.resetAlertToken))
	w.projectPage("POST settings/alerts/{id}/delete", signedIn, ofProject(w.deleteAlertIntegration))
	w.projectPage("POST settings/alerts/{id}/test", signedIn, ofProject(w.testAlertIntegration))
}

// alertSettingsPage has the alert settings and integrations of a project.
type alertSettingsPage struct {
	setup
	Form         form // of a new integration
	Incidents    form
	Types        []option
	Integrations []*alert.Integration
	Pager        pager
}

func (alertSettingsPage) view() string    { return "project/settings_alerts" }
func (p alertSettingsPage) title() string { return "Alerts · " + p.Name() }

func (w *Web) alertSettings(v *visit, in project.Place) error {
	return w.showAlertSettings(v, in, filled("type", string(alert.HTTP)))
}

func (w *Web) showAlertSettings(v *visit, in project.Place, f form) error {
	s, err := w.setup(v, in, "alerts")
	if err != nil {
		return err
	}
	settings, err := w.Alerts.Settings(v, v.actor, in.Ref)
	if err != nil {
		return err
	}
	page, err := w.Alerts.Integrations(v, v.actor, in.Ref, v.paging())
	if err != nil {
		return err
	}
	f.only("name", "type")
	return v.showForm(alertSettingsPage{
		setup: s, Form: f, Integrations: page.Items, Pager: v.pager(page.More),
		Types:     []option{{string(alert.HTTP), "HTTP endpoint"}, {string(alert.Prometheus), "Prometheus (Alertmanager)"}},
		Incidents: filled("create_issue", on(settings.CreateIssue), "auto_close_incident", on(settings.AutoClose), "send_email", on(settings.SendEmail)),
	}, f)
}

func (w *Web) saveAlertSettings(v *visit, in project.Place) error {
	create, closes, send := v.ticked("create_issue"), v.ticked("auto_close_incident"), v.ticked("send_email")
	_, err := w.Alerts.UpdateSettings(v, v.actor, in.Ref, alert.SettingFields{CreateIssue: &create, AutoClose: &closes, SendEmail: &send})
	return v.redirectWithFlash(err, "The settings were saved.", settingsOf(in, "alerts"))
}

func (w *Web) createAlertIntegration(v *visit, in project.Place) error {
	name, kind := v.text("name"), alert.Type(v.text("type"))
	made, err := w.Alerts.CreateIntegration(v, v.actor, in.Ref, alert.IntegrationFields{Name: &name, Type: &kind})
	if err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showAlertSettings(v, in, f)
	}
	return v.done("The integration was created. Its URL and token are below.", settingsOf(in, fmt.Sprintf("alerts/%d", made.ID)))
}

// alertIntegrationPage is one integration.
type alertIntegrationPage struct {
	setup
	*alert.Integration
	At     string // its own address
	Form   form
	Fields []alertField
	Leaves []option // of the sample
	Maps   bool     // it may have mappings
	Test   form
}

// alertField is a row of the form of mappings.
type alertField struct {
	Field alert.Field
	Label string
	Paths [2]string // as they are chosen: JSON, empty for none
	Mine  string    // the path that is used without a mapping
}

func (alertIntegrationPage) view() string    { return "project/settings_alert" }
func (p alertIntegrationPage) title() string { return p.Integration.Name + " · " + p.setup.Name() }

func (w *Web) alertIntegration(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return w.showAlertIntegration(v, in, id, form{}, form{})
}

func (w *Web) showAlertIntegration(v *visit, in project.Place, id int64, f, test form) error {
	s, err := w.setup(v, in, "alerts")
	if err != nil {
		return err
	}
	i, err := w.Alerts.Integration(v, v.actor, in.Ref, id)
	if err != nil {
		return err
	}
	p := alertIntegrationPage{setup: s, Integration: i, At: settingsOf(in, fmt.Sprintf("alerts/%d", id)), Form: f, Test: test, Maps: i.Type == alert.HTTP && w.Alerts.Site.Premium}
	if f.Values == nil {
		p.Form = filled("name", i.Name, "active", on(i.Active), "payload_example", i.Example)
		for _, m := range i.Mappings {
			for n, path := range m.Paths[:min(2, len(m.Paths))] {
				p.Form.Values.Set(pathField(m.Field, n), pathText(path))
			}
		}
	}
	for _, field := range alert.Fields() {
		line := alertField{Field: field, Label: words(string(field)), Mine: field.Name(w.Site.Name)}
		for n := range line.Paths {
			line.Paths[n] = p.Form.Get(pathField(field, n))
		}
		p.Fields = append(p.Fields, line)
	}
	if leaves, err := alert.Leaves(p.Form.Get("payload_example")); err == nil {
		for _, leaf := range leaves {
			p.Leaves = append(p.Leaves, option{pathText(leaf.Path), strings.Join(leaf.Path, " / ")})
		}
	}
	p.Form.only("name", "payload_example")
	if p.Test.Values == nil {
		p.Test = filled("payload", "")
	}
	return v.showForm(p, form{Errors: f.Errors, Error: f.Error + test.Error})
}

func pathField(f alert.Field, n int) string { return fmt.Sprintf("path_%s_%d", f, n) }

func pathText(p alert.Path) string {
	text, _ := json.Marshal(p) // strings always encode
	return string(text)
}

func (w *Web) saveAlertIntegration(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	f := v.sent()
	name, active := v.text("name"), v.ticked("active")
	fields := alert.IntegrationFields{Name: &name, Active: &active}
	if v.r.PostForm.Has("payload_example") {
		example, mappings := json.RawMessage(v.text("payload_example")), sentMappings(v, w.Site.Name)
		if len(example) == 0 {
			example, mappings = json.RawMessage("null"), json.RawMessage("[]")
		}
		fields.Example, fields.Mappings = &example, &mappings
	}
	if _, err := w.Alerts.UpdateIntegration(v, v.actor, in.Ref, id, fields); err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showAlertIntegration(v, in, id, f, form{})
	}
	return v.done("The integration was saved.", settingsOf(in, fmt.Sprintf("alerts/%d", id)))
}

// sentMappings returns the mappings of the form.
func sentMappings(v *visit, service string) json.RawMessage {
	type mapping struct {
		Field string            `json:"field_name"`
		Path  json.RawMessage   `json:"path"`
		More  []json.RawMessage `json:"fallback_paths,omitempty"`
	}
	list := []mapping{}
	for _, field := range alert.Fields() {
		var paths []json.RawMessage
		for n := range 2 {
			if text := v.text(pathField(field, n)); json.Valid([]byte(text)) {
				paths = append(paths, json.RawMessage(text))
			}
		}
		if len(paths) > 0 {
			list = append(list, mapping{field.Name(service), paths[0], paths[1:]})
		}
	}
	text, _ := json.Marshal(list) // it is made of JSON
	return text
}

func (w *Web) resetAlertToken(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	_, err = w.Alerts.ResetToken(v, v.actor, in.Ref, id)
	return v.redirectWithFlash(err, "The token was reset. The old token no longer works.", settingsOf(in, fmt.Sprintf("alerts/%d", id)))
}

func (w *Web) deleteAlertIntegration(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(w.Alerts.DeleteIntegration(v, v.actor, in.Ref, id, nil), "The integration was deleted.", settingsOf(in, "alerts"))
}

func (w *Web) testAlertIntegration(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	list, err := w.Alerts.Test(v, v.actor, in.Ref, id, []byte(v.text("payload")))
	if err != nil {
		f := v.sent()
		if e := f.refused(err); e != nil {
			if errs.Is(err, errs.KindForbidden) {
				return v.redirectWithFlash(err, "", settingsOf(in, fmt.Sprintf("alerts/%d", id)))
			}
			return e
		}
		return w.showAlertIntegration(v, in, id, form{}, f)
	}
	if len(list) != 1 {
		return v.done(fmt.Sprintf("The payload contained %d alerts.", len(list)), pathTo(string(in.Ref))+"/-/alert_management")
	}
	return v.done("The alert was received.", w.alertAt(v, in.Ref, list[0].IID))
}
