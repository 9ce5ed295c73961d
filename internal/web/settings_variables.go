package web

import (
	"net/url"

	"svc/internal/ci/variable"
	"svc/internal/db"
	"svc/internal/project"
)

func (w *Web) variablePages() {
	for page, do := range map[string]func(*visit, variableOwner) error{
		"GET %s": w.variables, "POST %s": w.createVariable, "POST %s/update": w.updateVariable, "POST %s/delete": w.deleteVariable,
	} {
		w.settingsPage(fill(page, "settings/variables"), func(v *visit, in project.Place) error {
			s, err := w.setup(v, in, "variables")
			if err != nil {
				return err
			}
			return do(v, placeVariables{w, s})
		})
		w.page(fill(page, "/admin/variables"), admins, func(v *visit) error { return do(v, instanceVariables{w}) })
	}
}

// variableOwner is where variables are stored: a project, a group or the instance.
type variableOwner interface {
	setup() setup // empty for the instance
	at() string
	list(v *visit, p db.Paging) (db.Page[variable.Variable], error)
	one(v *visit, key, scope string) (*variable.Variable, error)
	create(v *visit, key string, c variable.Change) error
	update(v *visit, key, scope string, c variable.Change) error
	delete(v *visit, key, scope string) error
}

type placeVariables struct {
	w *Web
	s setup
}

func (d placeVariables) setup() setup { return d.s }
func (d placeVariables) at() string   { return d.s.Base + "variables" }
func (d placeVariables) list(v *visit, p db.Paging) (db.Page[variable.Variable], error) {
	return d.w.CI.Variables.List(v, v.actor, d.s.Place, p)
}
func (d placeVariables) one(v *visit, key, scope string) (*variable.Variable, error) {
	return d.w.CI.Variables.Get(v, v.actor, d.s.Place, key, &scope)
}
func (d placeVariables) create(v *visit, key string, c variable.Change) error {
	_, err := d.w.CI.Variables.Create(v, v.actor, d.s.Place, key, c)
	return err
}
func (d placeVariables) update(v *visit, key, scope string, c variable.Change) error {
	_, err := d.w.CI.Variables.Update(v, v.actor, d.s.Place, key, &scope, c)
	return err
}
func (d placeVariables) delete(v *visit, key, scope string) error {
	return d.w.CI.Variables.Delete(v, v.actor, d.s.Place, key, &scope, nil)
}

type instanceVariables struct{ w *Web }

func (d instanceVariables) setup() setup { return setup{} }
func (d instanceVariables) at() string   { return "/admin/variables" }
func (d instanceVariables) list(v *visit, p db.Paging) (db.Page[variable.Variable], error) {
	return d.w.CI.Variables.ListInstance(v, v.actor, p)
}
func (d instanceVariables) one(v *visit, key, _ string) (*variable.Variable, error) {
	return d.w.CI.Variables.GetInstance(v, v.actor, key)
}
func (d instanceVariables) create(v *visit, key string, c variable.Change) error {
	c.Scope, c.Hidden = nil, nil
	_, err := d.w.CI.Variables.CreateInstance(v, v.actor, key, c)
	return err
}
func (d instanceVariables) update(v *visit, key, _ string, c variable.Change) error {
	c.Scope, c.Hidden = nil, nil
	_, err := d.w.CI.Variables.UpdateInstance(v, v.actor, key, c)
	return err
}
func (d instanceVariables) delete(v *visit, key, _ string) error {
	return d.w.CI.Variables.DeleteInstance(v, v.actor, key, nil)
}

type variablesPage struct {
	setup
	Admin     bool
	At        string
	Form      form
	Variables []variableRow
	Types     []option
	Edit      *variable.Variable // the variable that is shown with its value
	Pager     pager
}

type variableRow struct {
	variable.Variable
	Open string // URL of the page that shows its value
}

func (variablesPage) view() string { return "shared/settings_variables" }
func (p variablesPage) title() string {
	if p.Admin {
		return "Variables · Admin area"
	}
	return "Variables · " + p.Name()
}

// variables lists the variables without their values. A requested one is shown with
// its value in the form that changes it.
func (w *Web) variables(v *visit, d variableOwner) error {
	key := v.param("key")
	if key == "" {
		return w.showVariables(v, d, filled("environment_scope", "*"), nil)
	}
	one, err := d.one(v, key, v.param("scope"))
	if err != nil {
		return err
	}
	f := filled("key", one.Key, "value", one.Value, "variable_type", string(one.Type), "environment_scope", one.Scope,
		"protected", on(one.Protected), "masked", on(one.Masked), "raw", on(one.Raw))
	if one.Hidden {
		f.Values.Del("value")
	}
	if one.Description != nil {
		f.Values.Set("description", *one.Description)
	}
	return w.showVariables(v, d, f, one)
}

func (w *Web) showVariables(v *visit, d variableOwner, f form, edit *variable.Variable) error {
	page, err := d.list(v, v.paging())
	if err != nil {
		return err
	}
	f.only("key", "value", "variable_type", "environment_scope", "description")
	s := d.setup()
	p := variablesPage{setup: s, Admin: s.Base == "", At: d.at(), Form: f, Edit: edit, Pager: v.pager(page.More),
		Types: []option{{string(variable.EnvVar), "Variable"}, {string(variable.File), "File (the variable is the path of a file with the value)"}}}
	for _, one := range page.Items {
		open := url.Values{"key": {one.Key}, "scope": {one.Scope}}
		one.Value = "" // the list shows no values
		p.Variables = append(p.Variables, variableRow{one, p.At + "?" + open.Encode()})
	}
	return v.showForm(p, f)
}

// variableChange returns the submitted change.
func (v *visit) variableChange() variable.Change {
	kind, scope, description := variable.Type(v.text("variable_type")), v.text("environment_scope"), v.text("description")
	protected, masked, raw, hidden := v.ticked("protected"), v.ticked("masked"), v.ticked("raw"), v.ticked("hidden")
	value := v.r.PostForm.Get("value")
	return variable.Change{
		Value: &value, Type: &kind, Scope: &scope, Description: &description, Protected: &protected, Masked: &masked, Raw: &raw, Hidden: &hidden,
	}
}

func (w *Web) createVariable(v *visit, d variableOwner) error {
	if err := d.create(v, v.text("key"), v.variableChange()); err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showVariables(v, d, f, nil)
	}
	return v.done("The variable "+v.text("key")+" was added.", d.at())
}

func (w *Web) updateVariable(v *visit, d variableOwner) error {
	key, scope := v.text("key"), v.text("scope")
	one, err := d.one(v, key, scope)
	if err != nil {
		return err
	}
	c := v.variableChange()
	if one.Hidden { // it stays hidden, and an empty field keeps the value
		masked := true
		c.Masked = &masked
		if *c.Value == "" {
			c.Value = nil
		}
	}
	if err := d.update(v, key, scope, c); err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showVariables(v, d, f, one)
	}
	return v.done("The variable "+key+" was saved.", d.at())
}

func (w *Web) deleteVariable(v *visit, d variableOwner) error {
	return v.redirectWithFlash(d.delete(v, v.text("key"), v.text("scope")), "The variable "+v.text("key")+" was removed.", d.at())
}
