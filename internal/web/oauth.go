package web

import (
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"svc/internal/oauth"
	"svc/internal/user"
)

func (w *Web) oauthPages() {
	w.page("GET /oauth/authorize", anyone, w.consentPage)
	w.page("POST /oauth/authorize", signedIn, w.consent)
}

// consentPage asks a user whether an application may act for them.
type consentPage struct {
	App    *oauth.Application
	Owner  *user.User // nil for the instance
	Scopes []oauth.Scope
	To     string     // URL of the redirect, as text
	Fields []hidden   // the request, which the form repeats
	User   *user.User // the user who is asked
}

type hidden struct{ Name, Value string }

func (consentPage) view() string    { return "user/oauth_consent" }
func (p consentPage) title() string { return "Authorize " + p.App.Name }

// consentPage answers an authorization request. Errors go to the application by
// redirect only if client and redirect URI are registered, and only after the
// user has signed in, so that a link to the instance does not lead visitors
// elsewhere at once. The prompt none of applications of the instance is the
// exception: see oauth.Request.Unattended.
func (w *Web) consentPage(v *visit) error {
	values, err := url.ParseQuery(v.r.URL.RawQuery)
	if err != nil {
		v.problem(http.StatusBadRequest, "Invalid authorization request", "Go back to the application and try again.")
		return nil
	}
	r, err := w.OAuth.Begin(v, values)
	if refused, ok := errors.AsType[*oauth.Error](err); ok && refused.Redirect != "" && v.session == nil && !refused.Silent {
		return v.askToSignIn()
	}
	if err != nil {
		return v.refuseApplication(err)
	}
	if v.session == nil {
		if r.Unattended() {
			return v.leave(r.NoLogin().Redirect)
		}
		return v.askToSignIn()
	}
	ask, err := w.OAuth.Ask(v, v.actor, v.session.CreatedAt, r)
	if err != nil {
		return v.refuseApplication(err)
	}
	if !ask {
		to, err := w.OAuth.Approve(v, v.actor, v.session.CreatedAt, r)
		if err != nil {
			return v.refuseApplication(err)
		}
		return v.leave(to)
	}
	return w.askConsent(v, r, values)
}

func (w *Web) askConsent(v *visit, r *oauth.Request, values url.Values) error {
	p := consentPage{App: r.Application, To: place(r.RedirectURI), User: v.session.User}
	for _, s := range oauth.Scopes() {
		if slices.Contains(r.Scopes, s.Name) {
			p.Scopes = append(p.Scopes, s)
		}
	}
	for name, list := range values {
		p.Fields = append(p.Fields, hidden{name, list[0]})
	}
	slices.SortFunc(p.Fields, func(a, b hidden) int { return strings.Compare(a.Name, b.Name) })
	if owner := r.Application.OwnerID; owner != nil {
		found, err := w.Users.FindAll(v, []int64{*owner})
		if err != nil {
			return err
		}
		p.Owner = found[*owner]
	}
	// Browsers apply the policy to the redirect after the form as well.
	h := v.w.Header()
	h.Set("Content-Security-Policy", strings.Replace(h.Get("Content-Security-Policy"), "form-action 'self'", "form-action 'self' "+source(r.RedirectURI), 1))
	return v.show(p)
}

// place returns the host of a URL, as text.
func place(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" {
		scheme, _, _ := strings.Cut(uri, ":")
		return "the application " + scheme + " on your device"
	}
	return u.Host
}

// source returns a URL as a source of a Content-Security-Policy. Sources have no
// syntax for IPv6 addresses and custom schemes of apps: for those it returns the
// scheme.
func source(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return ""
	}
	if u.Scheme != "http" && u.Scheme != "https" || strings.Contains(u.Host, "[") {
		return u.Scheme + ":"
	}
	return u.Scheme + "://" + u.Host
}

// consent handles the answer of the user.
func (w *Web) consent(v *visit) error {
	values := url.Values{}
	for name, list := range v.r.PostForm {
		if name != "authenticity_token" && name != "decision" {
			values[name] = list
		}
	}
	r, err := w.OAuth.Begin(v, values)
	if err != nil {
		return v.refuseApplication(err)
	}
	if v.text("decision") != "allow" {
		return v.leave(r.Deny())
	}
	to, err := w.OAuth.Approve(v, v.actor, v.session.CreatedAt, r)
	if err != nil {
		return v.refuseApplication(err)
	}
	return v.leave(to)
}

// refuseApplication shows a refusal: by a redirect to the application if that
// is allowed, otherwise on a page.
func (v *visit) refuseApplication(err error) error {
	refused, ok := errors.AsType[*oauth.Error](err)
	if !ok {
		return err
	}
	if refused.Redirect != "" {
		return v.leave(refused.Redirect)
	}
	v.problem(http.StatusBadRequest, "The application cannot be authorized", refused.Description)
	return nil
}

// leavingPage has a link to an application.
type leavingPage struct {
	To    template.URL // one that its application has registered
	Place string
}

func (leavingPage) view() string  { return "user/oauth_leaving" }
func (leavingPage) title() string { return "Signed in" }

// leave redirects the browser to an application. The policy of the sign-in page
// allows its form to lead only to this site, so after a sign-in a page with a
// link is shown instead of a redirect.
func (v *visit) leave(to string) error {
	v.w.Header().Set("Referrer-Policy", "no-referrer")
	from, err := url.Parse(v.r.Referer())
	if err == nil && v.r.Method == http.MethodGet && from.Host == v.r.Host && strings.HasPrefix(from.Path, "/users/") {
		return v.show(leavingPage{To: template.URL(to), Place: place(to)})
	}
	return v.redirect(to)
}
