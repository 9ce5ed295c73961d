package web

import (
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/oauth"
)

// The two owners of applications.
const (
	ownApplications   = "/-/user_settings/applications"
	adminApplications = "/admin/applications"
)

func (w *Web) applicationPages() {
	for _, base := range []string{ownApplications, adminApplications} {
		s := applicationOwner{w, base}
		who := signedIn
		if s.admin() {
			who = admins
		}
		w.page("GET "+base, who, s.list)
		w.page("POST "+base, who, s.create)
		w.page("GET "+base+"/{id}", who, s.one)
		w.page("POST "+base+"/{id}", who, s.update)
		w.page("POST "+base+"/{id}/renew", who, s.renew)
		w.page("POST "+base+"/{id}/delete", who, s.delete)
	}
	w.page("POST "+ownApplications+"/authorized/{id}/revoke", signedIn, w.revokeAuthorization)
}

// applicationOwner serves the applications of the user or of the instance.
type applicationOwner struct {
	*Web
	base string
}

func (s applicationOwner) admin() bool { return s.base == adminApplications }

type applicationsPage struct {
	Base       string
	Admin      bool
	Form       form
	Scopes     []scope
	Apps       []*oauth.Application
	Authorized []oauth.Authorization
	Pager      pager
}

func (applicationsPage) view() string  { return "shared/applications" }
func (applicationsPage) title() string { return "Applications" }

func (s applicationOwner) list(v *visit) error {
	return s.showList(v, filled("confidential", "1"))
}

func (s applicationOwner) showList(v *visit, f form) error {
	f.only("name", "redirect_uri", "scopes")
	p := applicationsPage{Base: s.base, Admin: s.admin(), Form: f, Scopes: applicationScopes()}
	var page db.Page[*oauth.Application]
	var err error
	if s.admin() {
		page, err = s.OAuth.Applications(v, v.actor, v.paging())
	} else if page, err = s.OAuth.OwnApplications(v, v.actor, v.paging()); err == nil {
		p.Authorized, err = s.OAuth.Authorizations(v, v.actor)
	}
	if err != nil {
		return err
	}
	p.Apps, p.Pager = page.Items, v.pager(page.More)
	return v.showForm(p, f)
}

func applicationScopes() []scope {
	var list []scope
	for _, s := range oauth.Scopes() {
		list = append(list, scope{s.Name, s.Text})
	}
	return list
}

func (s applicationOwner) create(v *visit) error {
	n := oauth.NewApplication{
		Name: v.text("name"), RedirectURIs: v.text("redirect_uri"), Scopes: v.r.PostForm["scopes"],
		Confidential: v.text("confidential") != "", Trusted: v.text("trusted") != "",
	}
	create := s.OAuth.CreateOwn
	if s.admin() {
		create = s.OAuth.Create
	}
	app, err := create(v, v.actor, n)
	if err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return s.showList(v, f)
	}
	return s.show(v, app, formOf(app))
}

type applicationPage struct {
	Base   string
	Admin  bool
	App    *oauth.Application // with its secret if that was just created
	Form   form
	Scopes []scope
}

func (applicationPage) view() string    { return "shared/application" }
func (p applicationPage) title() string { return p.App.Name }

// formOf returns a form with the values of an application.
func formOf(app *oauth.Application) form {
	f := filled("name", app.Name, "redirect_uri", strings.Join(app.RedirectURIs, "\n"))
	f.Values["scopes"] = app.Scopes
	for name, on := range map[string]bool{"confidential": app.Confidential, "trusted": app.Trusted, "disabled": app.Disabled} {
		if on {
			f.Values.Set(name, "1")
		}
	}
	return f
}

func (s applicationOwner) show(v *visit, app *oauth.Application, f form) error {
	f.only("name", "redirect_uri", "scopes")
	p := applicationPage{s.base, s.admin(), app, f, applicationScopes()}
	return v.showForm(p, f)
}

// find returns the application that the URL names, if it belongs to this owner.
func (s applicationOwner) find(v *visit) (*oauth.Application, error) {
	id, err := v.number("id")
	if err != nil {
		return nil, err
	}
	app, err := s.OAuth.Application(v, v.actor, id)
	if err == nil && s.admin() != (app.OwnerID == nil) {
		return nil, errs.NotFound("Application")
	}
	return app, err
}

func (s applicationOwner) one(v *visit) error {
	app, err := s.find(v)
	if err != nil {
		return err
	}
	return s.show(v, app, formOf(app))
}

func (s applicationOwner) update(v *visit) error {
	app, err := s.find(v)
	if err != nil {
		return err
	}
	name, redirects, confidential := v.text("name"), v.text("redirect_uri"), v.text("confidential") != ""
	c := oauth.Change{Name: &name, RedirectURIs: &redirects, Scopes: append([]string{}, v.r.PostForm["scopes"]...), Confidential: &confidential}
	if s.admin() {
		trusted, disabled := v.text("trusted") != "", v.text("disabled") != ""
		c.Trusted, c.Disabled = &trusted, &disabled
	}
	if _, err := s.OAuth.Update(v, v.actor, app.ID, c); err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return s.show(v, app, f)
	}
	return v.done("The application was saved.", s.base+"/"+strconv.FormatInt(app.ID, 10))
}

func (s applicationOwner) renew(v *visit) error {
	app, err := s.find(v)
	if err != nil {
		return err
	}
	if app, err = s.OAuth.RenewSecret(v, v.actor, app.ID); err != nil {
		return err
	}
	return s.show(v, app, formOf(app))
}

func (s applicationOwner) delete(v *visit) error {
	app, err := s.find(v)
	if err != nil {
		return err
	}
	if err := s.OAuth.Delete(v, v.actor, app.ID); err != nil {
		return err
	}
	return v.done("The application was deleted.", s.base)
}

func (w *Web) revokeAuthorization(v *visit) error {
	id, err := strconv.ParseInt(chi.URLParam(v.r, "id"), 10, 64) // 0 means applications that were authorized with the password
	if err != nil || id < 0 {
		return errs.NotFound("")
	}
	if err := w.OAuth.RevokeAuthorization(v, v.actor, id); err != nil {
		return err
	}
	return v.done("Access was revoked. The application can no longer use your account.", ownApplications)
}
