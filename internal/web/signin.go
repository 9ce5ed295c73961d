package web

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"svc/internal/errs"
	"svc/internal/limit"
	"svc/internal/secret"
	"svc/internal/signin"
	"svc/internal/user"
)

func (w *Web) signInPages() {
	w.page("GET /users/sign_in", visitor, w.signInForm)
	w.page("POST /users/sign_in", visitor, w.signIn)
	w.page("GET /users/sign_in/code", visitor, w.codeForm)
	w.page("POST /users/sign_in/code", visitor, w.code)
	w.page("POST /users/sign_out", unfinished, w.signOut)
}

// throttle refuses a request if its address has made too many attempts, with one
// login or with all logins.
func (v *visit) throttle(name, login string) error {
	settings, err := v.web.Settings.Current(v)
	if err != nil {
		return err
	}
	address := limit.AddressKey(v.ip())
	one := v.web.Limits.Allow(address+" "+strings.ToLower(login), limit.Rate{Name: name, Requests: settings.SignInsPerMinute, Period: time.Minute})
	one.Headers(v.w.Header())
	if !one.OK {
		return limit.Refused{Decision: one}
	}
	all := v.web.Limits.Allow(address, limit.Rate{Name: name + "_address", Requests: settings.FailedPasswordsPerMinute, Period: time.Minute})
	if !all.OK {
		return limit.Refused{Decision: all}
	}
	return nil
}

type signInPage struct {
	Form      form
	ReturnTo  string
	Resend    bool // the address may not be confirmed
	Passwords bool
	Providers []signin.Link
}

func (signInPage) view() string  { return "user/sign_in" }
func (signInPage) title() string { return "Sign in" }

func (w *Web) signInForm(v *visit) error {
	p, err := w.newSignIn(v, filled(), local(v.param("return_to")))
	if err != nil {
		return err
	}
	return v.show(p)
}

// newSignIn is the sign-in page with the ways to sign in.
func (w *Web) newSignIn(v *visit, f form, returnTo string) (signInPage, error) {
	settings, err := w.Settings.Current(v)
	return signInPage{Form: f, ReturnTo: returnTo, Passwords: settings.PasswordForWeb, Providers: w.SignIn.Buttons()}, err
}

func (w *Web) signIn(v *visit) error {
	login := v.text("login")
	if err := v.throttle("sign_in", login); err != nil {
		return err
	}
	to := local(v.text("return_to"))
	session, _, err := w.Users.SignIn(v, user.SignInRequest{
		Login: login, Password: v.r.PostForm.Get("password"), IP: v.ip(), UserAgent: v.r.UserAgent(), Remember: v.text("remember_me") != "",
	})
	if half, ok := errors.AsType[user.TwoFactorRequired](err); ok {
		v.setCookie(w.halfwayCookie(), half.Ticket, "/users", 10*time.Minute)
		return v.redirect("/users/sign_in/code?return_to=" + url.QueryEscape(to))
	}
	if refusal := entryRefusal(err); refusal != "" {
		f := v.sent()
		f.Error = refusal
		p, fault := w.newSignIn(v, f, to)
		if fault != nil {
			return fault
		}
		p.Resend = p.Passwords && (strings.Contains(login, "@") || errs.Is(err, errs.KindForbidden))
		return v.again(p)
	}
	if err != nil {
		return err
	}
	if err := v.enter(session); err != nil {
		return err
	}
	return v.redirect(to)
}

// entryRefusal is the message for a user who cannot sign in; empty for an error
// of another kind.
func entryRefusal(err error) string {
	e, ok := errors.AsType[*errs.Error](err)
	if ok && (e.Kind == errs.KindUnauthorized || e.Kind == errs.KindForbidden) {
		return e.Text
	}
	return ""
}

type codePage struct {
	Form     form
	ReturnTo string
}

func (codePage) view() string  { return "user/code" }
func (codePage) title() string { return "Two-factor authentication" }

func (w *Web) codeForm(v *visit) error {
	if v.cookie(w.halfwayCookie()) == "" {
		return v.redirect("/users/sign_in")
	}
	return v.show(codePage{Form: filled(), ReturnTo: local(v.param("return_to"))})
}

func (w *Web) code(v *visit) error {
	ticket := v.cookie(w.halfwayCookie())
	if err := v.throttle("sign_in_code", secret.Digest(ticket)); err != nil {
		return err
	}
	to := local(v.text("return_to"))
	session, _, err := w.Users.FinishSignIn(v, ticket, user.SignInRequest{Code: v.text("code"), IP: v.ip(), UserAgent: v.r.UserAgent()})
	if errs.Is(err, errs.KindGone) {
		v.setCookie(w.halfwayCookie(), "", "/users", -time.Second)
		v.setFlash("bad", "The sign-in has expired. Sign in again.")
		return v.redirect("/users/sign_in?return_to=" + url.QueryEscape(to))
	}
	if refusal := entryRefusal(err); refusal != "" {
		f := filled()
		f.Errors = map[string][]string{"code": {strings.TrimSuffix(refusal, ".")}}
		return v.again(codePage{Form: f, ReturnTo: to})
	}
	if err != nil {
		return err
	}
	if err := v.enter(session); err != nil {
		return err
	}
	return v.redirect(to)
}

func (w *Web) signOut(v *visit) error {
	if err := w.Users.SignOut(v, v.cookie(w.sessionCookie())); err != nil {
		return err
	}
	v.setCookie(w.sessionCookie(), "", "/", -time.Second)
	return v.done("You signed out.", "/users/sign_in")
}
