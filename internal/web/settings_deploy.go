package web

import (
	"time"

	"svc/internal/project"
)

func (w *Web) deployPages() {
	w.settingsPage("GET settings/deploy_tokens", w.deployTokens)
	w.settingsPage("POST settings/deploy_tokens", w.createDeployToken)
	w.settingsPage("POST settings/deploy_tokens/{id}/delete", w.deleteDeployToken)
	w.projectPage("GET settings/deploy_keys", signedIn, ofProject(w.deployKeys))
	w.projectPage("POST settings/deploy_keys", signedIn, ofProject(w.addDeployKey))
	w.projectPage("POST settings/deploy_keys/{id}/enable", signedIn, ofProject(w.enableDeployKey))
	w.projectPage("POST settings/deploy_keys/{id}/push", signedIn, ofProject(w.changeDeployKey))
	w.projectPage("POST settings/deploy_keys/{id}/delete", signedIn, ofProject(w.removeDeployKey))
}

type deployTokensPage struct {
	setup
	Form   form
	Tokens []project.DeployToken
	Scopes []scope
	Made   *project.DeployToken // with its secret if it was just created
	Pager  pager
}

func (deployTokensPage) view() string    { return "shared/settings_deploy_tokens" }
func (p deployTokensPage) title() string { return "Deploy tokens · " + p.Name() }

// deployScopes are the supported scopes of deploy tokens.
func deployScopes() []scope {
	return []scope{{project.ReadRepository, "Read-only access to the repository over HTTP."}}
}

func (w *Web) deployTokens(v *visit, in project.Place) error {
	return w.showDeployTokens(v, in, filled("scopes", project.ReadRepository), nil)
}

func (w *Web) showDeployTokens(v *visit, in project.Place, f form, made *project.DeployToken) error {
	s, err := w.setup(v, in, "deploy_tokens")
	if err != nil {
		return err
	}
	active := true
	page, err := w.Projects.DeployTokens(v, v.actor, in, &active, v.paging())
	if err != nil {
		return err
	}
	f.only("name", "username", "expires_at", "scopes")
	p := deployTokensPage{setup: s, Form: f, Tokens: page.Items, Made: made, Scopes: deployScopes(), Pager: v.pager(page.More)}
	return v.showForm(p, f)
}

// day reads a date of a form; nil if it is empty.
func (v *visit) day(f *form, name string) *time.Time {
	text := v.text(name)
	if text == "" {
		return nil
	}
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		f.wrong(name, "is not a date")
		return nil
	}
	return &at
}

func (w *Web) createDeployToken(v *visit, in project.Place) error {
	f := v.sent()
	n := project.NewDeployToken{Name: v.text("name"), Username: v.text("username"), Scopes: v.r.PostForm["scopes"], ExpiresAt: v.day(&f, "expires_at")}
	if f.bad() {
		return w.showDeployTokens(v, in, f, nil)
	}
	made, err := w.Projects.CreateDeployToken(v, v.actor, in, n)
	if err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showDeployTokens(v, in, f, nil)
	}
	return w.showDeployTokens(v, in, filled("scopes", project.ReadRepository), made)
}

func (w *Web) deleteDeployToken(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(w.Projects.DeleteDeployToken(v, v.actor, in, id), "The token was revoked.", settingsOf(in, "deploy_tokens"))
}

type deployKeysPage struct {
	setup
	Form   form
	Keys   []project.DeployKey
	Public []project.DeployKey // that could be enabled
	Pager  pager
}

func (deployKeysPage) view() string    { return "project/settings_deploy_keys" }
func (p deployKeysPage) title() string { return "Deploy keys · " + p.Name() }

func (w *Web) deployKeys(v *visit, in project.Place) error { return w.showDeployKeys(v, in, form{}) }

func (w *Web) showDeployKeys(v *visit, in project.Place, f form) error {
	s, err := w.setup(v, in, "deploy_keys")
	if err != nil {
		return err
	}
	page, err := w.Projects.DeployKeys(v, v.actor, in.Ref, v.paging())
	if err != nil {
		return err
	}
	f.only("title", "key", "expires_at")
	p := deployKeysPage{setup: s, Form: f, Keys: page.Items, Pager: v.pager(page.More)}
	if p.Public, err = w.Projects.OfferedDeployKeys(v, v.actor, in.Ref); err != nil {
		return err
	}
	return v.showForm(p, f)
}

func (w *Web) addDeployKey(v *visit, in project.Place) error {
	f := v.sent()
	n := project.NewDeployKey{Title: v.text("title"), Key: v.text("key"), CanPush: v.ticked("can_push"), ExpiresAt: v.day(&f, "expires_at")}
	if f.bad() {
		return w.showDeployKeys(v, in, f)
	}
	if _, err := w.Projects.AddDeployKey(v, v.actor, in.Ref, n); err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showDeployKeys(v, in, f)
	}
	return v.done("The key was added.", settingsOf(in, "deploy_keys"))
}

func (w *Web) enableDeployKey(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	_, err = w.Projects.EnableDeployKey(v, v.actor, in.Ref, id)
	return v.redirectWithFlash(err, "The key was enabled for this project.", settingsOf(in, "deploy_keys"))
}

func (w *Web) changeDeployKey(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	push := v.ticked("can_push")
	_, err = w.Projects.UpdateDeployKey(v, v.actor, in.Ref, id, project.DeployKeyChange{CanPush: &push})
	return v.redirectWithFlash(err, "The key was updated.", settingsOf(in, "deploy_keys"))
}

func (w *Web) removeDeployKey(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(w.Projects.RemoveDeployKey(v, v.actor, in.Ref, id), "The key was removed from this project.", settingsOf(in, "deploy_keys"))
}
