package web

import (
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"

	"svc/internal/errs"
	"svc/internal/limit"
	"svc/internal/signin"
	"svc/internal/user"
)

func (w *Web) providerPages() {
	w.page("GET /users/auth/{provider}", visitor, w.directoryForm)
	w.page("POST /users/auth/{provider}", visitor, w.startProvider)
	w.page("GET /users/auth/{provider}/callback", anyone, w.finishProvider)
	w.page("POST /users/auth/{provider}/callback", poster, w.acceptAnswer)
	w.page("GET /users/auth/{provider}/metadata", anyone, w.providerMetadata)
	w.page("GET "+identitiesPath, signedIn, w.identitiesPage)
	w.page("GET "+identitiesPath+"/{provider}/link", signedIn, w.directoryForm)
	w.page("POST "+identitiesPath+"/{provider}/link", signedIn, w.linkProvider)
	w.page("POST "+identitiesPath+"/{provider}/unlink", signedIn, w.unlinkProvider)
}

const identitiesPath = "/-/user_settings/identities"

// attemptCookie holds the attempt to sign in with a provider.
func (w *Web) attemptCookie(provider string) string {
	return "_" + w.Site.Cookies + "_auth_" + provider
}

// throttleProvider refuses an address that starts or finishes too many sign-ins with
// providers. The login is not known, so all users of an address share the limit.
func (v *visit) throttleProvider() error {
	settings, err := v.web.Settings.Current(v)
	if err != nil {
		return err
	}
	d := v.web.Limits.Allow(limit.AddressKey(v.ip()), limit.Rate{Name: "sign_in_provider", Requests: settings.FailedPasswordsPerMinute, Period: time.Minute})
	if !d.OK {
		return limit.Refused{Decision: d}
	}
	return nil
}

// toProviderPage sends the browser to an identity provider. A redirect is not
// possible: the policy of the page with the form allows it to lead only to this
// site.
type toProviderPage struct {
	To    template.URL // of a provider that the operator has configured
	Place string
}

func (toProviderPage) view() string  { return "user/oauth_leaving" }
func (toProviderPage) title() string { return "Sign in" }

func (w *Web) startProvider(v *visit) error {
	if w.SignIn.TakesForm(chi.URLParam(v.r, "provider")) {
		return w.enterDirectory(v)
	}
	return w.toProvider(v, signin.StartRequest{ReturnTo: local(v.text("return_to"))}, "/users/sign_in")
}

func (w *Web) linkProvider(v *visit) error {
	if w.SignIn.TakesForm(chi.URLParam(v.r, "provider")) {
		return w.enterDirectory(v)
	}
	if ok, err := v.confirmSelf(identitiesPath); !ok {
		return err
	}
	return w.toProvider(v, signin.StartRequest{ReturnTo: identitiesPath, By: v.actor, Session: v.session.ID}, identitiesPath)
}

func (w *Web) toProvider(v *visit, r signin.StartRequest, back string) error {
	if err := v.throttleProvider(); err != nil {
		return err
	}
	r.Provider = chi.URLParam(v.r, "provider")
	address, cookie, err := w.SignIn.Start(v, r)
	if errs.Is(err, errs.KindUnavailable) {
		v.setFlash("bad", "The identity provider does not respond. Try again later.")
		return v.redirect(back)
	}
	if err != nil {
		return err
	}
	v.setCookie(w.attemptCookie(r.Provider), cookie, signin.CallbackPath(r.Provider), signin.AttemptLife)
	v.w.Header().Set("Referrer-Policy", "no-referrer")
	return v.show(toProviderPage{To: template.URL(address), Place: place(address)}) // #nosec G203: the address of a configured provider
}

// acceptAnswer receives the form that a SAML provider sends through the browser. The
// form comes from another site and therefore without cookies of this site; the
// browser sends them with the request that acceptAnswer redirects to.
func (w *Web) acceptAnswer(v *visit) error {
	if err := v.throttleProvider(); err != nil {
		return err
	}
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	if err := v.r.ParseForm(); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return errs.TooLarge("The form is larger than the limit of %d MiB.", maxForm>>20)
		}
		return errs.Invalid("The form cannot be read.").Because(err)
	}
	v.w.Header().Set("Referrer-Policy", "no-referrer")
	to, err := w.SignIn.Accept(v, signin.Posted{Provider: chi.URLParam(v.r, "provider"), Response: v.r.PostForm.Get("SAMLResponse"), IP: v.ip()})
	if err != nil {
		return err
	}
	return v.redirect(to)
}

// providerMetadata describes this instance to a SAML provider.
func (w *Web) providerMetadata(v *visit) error {
	text, err := w.SignIn.Metadata(chi.URLParam(v.r, "provider"))
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "application/samlmetadata+xml")
	v.w.Header().Set("Content-Disposition", disposition("attachment", "metadata.xml"))
	_, err = v.w.Write(text)
	return err
}

// finishProvider handles the response of an identity provider. All refusals
// look the same in the browser; the log has the reasons.
func (w *Web) finishProvider(v *visit) error {
	if err := v.throttleProvider(); err != nil {
		return err
	}
	name := chi.URLParam(v.r, "provider")
	v.w.Header().Set("Referrer-Policy", "no-referrer")
	in := signin.Answer{
		Provider: name, Query: v.r.URL.Query(), Cookie: v.cookie(w.attemptCookie(name)), Session: v.session, By: v.actor, IP: v.ip(), Agent: v.r.UserAgent(),
	}
	result, err := w.SignIn.Finish(v, in)
	if !errs.Is(err, errs.KindNotFound) {
		v.setCookie(w.attemptCookie(name), "", signin.CallbackPath(name), -time.Second)
	}
	if half, ok := errors.AsType[user.TwoFactorRequired](err); ok && result != nil {
		v.setCookie(w.halfwayCookie(), half.Ticket, "/users", 10*time.Minute)
		return v.redirect("/users/sign_in/code?return_to=" + url.QueryEscape(local(result.ReturnTo)))
	}
	if refused, ok := errors.AsType[*signin.Refused](err); ok {
		return v.refuseProvider(refused)
	}
	if err != nil {
		return err
	}
	if result.Session == nil {
		return v.done("Your account is linked to "+result.Label+".", identitiesPath)
	}
	if err := v.enter(result.Session); err != nil {
		return err
	}
	return v.redirect(local(result.ReturnTo))
}

func (v *visit) refuseProvider(r *signin.Refused) error {
	text, to := "You could not be signed in. Try again, or contact an administrator.", "/users/sign_in"
	switch {
	case r.Link:
		text, to = "The account could not be linked. Try again, or contact an administrator.", identitiesPath
	case r.Pending:
		text = "Your account is pending approval by an administrator."
	}
	v.setFlash("bad", text)
	return v.redirect(to)
}

type identitiesPage struct {
	Links    []signin.Link
	Password bool // the user has one, and can sign in with it
}

func (identitiesPage) view() string  { return "user/settings_identities" }
func (identitiesPage) title() string { return "Linked accounts" }

func (w *Web) identitiesPage(v *visit) error {
	links, err := w.SignIn.Links(v, v.actor)
	if err != nil {
		return err
	}
	has, err := w.Users.HasPassword(v, v.actor)
	if err != nil {
		return err
	}
	settings, err := w.Settings.Current(v)
	if err != nil {
		return err
	}
	return v.show(identitiesPage{Links: links, Password: has && settings.PasswordForWeb})
}

func (w *Web) unlinkProvider(v *visit) error {
	err := w.SignIn.Unlink(v, v.actor, chi.URLParam(v.r, "provider"))
	if e, ok := errs.As(err); ok && e.Kind == errs.KindForbidden && e.Text != "" {
		v.setFlash("bad", e.Text)
		return v.redirect(identitiesPath)
	}
	if err != nil {
		return err
	}
	return v.done("The account was unlinked.", identitiesPath)
}
