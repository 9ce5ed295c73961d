package web

import (
	"svc/internal/db"
	"svc/internal/errortrack"
	"svc/internal/errs"
	"svc/internal/project"
)

// errorSetupPage has the settings and client keys of error tracking.
type errorSetupPage struct {
	setup
	Form       form
	Active     bool
	Integrated bool
	HasToken   bool
	Keys       []errorKey
}

// errorKey is a client key with its DSN.
type errorKey struct {
	*errortrack.Key
	DSN string
}

func (errorSetupPage) view() string    { return "project/settings_errors" }
func (p errorSetupPage) title() string { return "Error tracking · " + p.Name() }

// DSN returns the DSN of an active key, for the examples.
func (p errorSetupPage) DSN() string {
	for _, k := range p.Keys {
		if k.Active {
			return k.DSN
		}
	}
	return ""
}

func (w *Web) errorSetup(v *visit, in project.Place) error { return w.showErrorSetup(v, in, nil) }

func (w *Web) showErrorSetup(v *visit, in project.Place, refused *form) error {
	s, err := w.setup(v, in, "error_tracking")
	if err != nil {
		return err
	}
	p := errorSetupPage{setup: s, Form: filled()}
	found, err := w.Errors.Setup(v, v.actor, in.Ref)
	switch {
	case err == nil:
		p.Active, p.Integrated, p.HasToken = found.Active, found.Integrated, found.HasToken()
		p.Form = filled("project_name", found.External.ProjectName, "external_url", found.External.URL, "api_url", found.External.APIURL)
	case !errs.Is(err, errs.KindNotFound):
		return err
	}
	keys, err := w.Errors.ClientKeys(v, v.actor, in.Ref, db.Paging{Limit: 100})
	if err != nil {
		return err
	}
	for _, k := range keys.Items {
		p.Keys = append(p.Keys, errorKey{k, w.Errors.DSN(k)})
	}
	if refused != nil {
		p.Form = *refused
	}
	p.Form.only("project_name", "external_url", "api_url")
	return v.showForm(p, p.Form)
}

func (w *Web) saveErrorSetup(v *visit, in project.Place) error {
	backend := v.text("backend")
	active, integrated := backend != "off", backend == "integrated"
	change := errortrack.SetupChange{Active: &active}
	if active { // the setting is kept while error tracking is disabled
		change.Integrated = &integrated
	}
	_, err := w.Errors.Configure(v, v.actor, in.Ref, change)
	return v.redirectWithFlash(err, "The settings were saved.", settingsOf(in, "error_tracking"))
}

func (w *Web) saveErrorService(v *visit, in project.Place) error {
	change := errortrack.SetupChange{External: &errortrack.External{ProjectName: v.text("project_name"), URL: v.text("external_url"), APIURL: v.text("api_url")}}
	token := v.text("token")
	if token != "" || v.ticked("forget") {
		change.ExternalToken = &token
	}
	if _, err := w.Errors.Configure(v, v.actor, in.Ref, change); err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showErrorSetup(v, in, &f)
	}
	return v.done("The external service was saved.", settingsOf(in, "error_tracking"))
}

func (w *Web) createErrorKey(v *visit, in project.Place) error {
	_, err := w.Errors.CreateKey(v, v.actor, in.Ref)
	return v.redirectWithFlash(err, "The client key was created.", settingsOf(in, "error_tracking"))
}

func (w *Web) turnErrorKey(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	on, done := v.ticked("active"), "The client key was disabled."
	if on {
		done = "The client key was enabled."
	}
	return v.redirectWithFlash(w.Errors.TurnKey(v, v.actor, in.Ref, id, on), done, settingsOf(in, "error_tracking"))
}

func (w *Web) deleteErrorKey(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(w.Errors.DeleteKey(v, v.actor, in.Ref, id), "The client key was deleted.", settingsOf(in, "error_tracking"))
}
