package web

import (
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"svc/internal/errs"
	"svc/internal/signin"
	"svc/internal/user"
)

// directoryPage asks for the username and the password at an LDAP directory.
type directoryPage struct {
	Form     form
	Label    string
	Action   string
	Linking  bool // to the account of the user who is signed in
	Confirm  bool // the password of this account is needed as well
	ReturnTo string
}

func (directoryPage) view() string { return "user/directory" }
func (p directoryPage) title() string {
	if p.Linking {
		return "Link " + p.Label
	}
	return "Sign in with " + p.Label
}

func (w *Web) newDirectory(v *visit, f form, returnTo string) (directoryPage, error) {
	name := chi.URLParam(v.r, "provider")
	links := w.SignIn.Buttons()
	i := slices.IndexFunc(links, func(l signin.Link) bool { return l.Name == name && l.Form })
	if i < 0 {
		return directoryPage{}, errs.NotFound("")
	}
	p := directoryPage{Form: f, Label: links[i].Label, Action: "/users/auth/" + name, ReturnTo: returnTo}
	if v.session != nil {
		p.Linking, p.Action = true, identitiesPath+"/"+name+"/link"
		p.Confirm = w.Users.NeedsConfirmation(v.session)
	}
	return p, nil
}

func (w *Web) directoryForm(v *visit) error {
	f := filled()
	if v.session != nil {
		if _, err := v.confirm(&f); err != nil {
			return v.redirectWithFlash(err, "", identitiesPath)
		}
	}
	p, err := w.newDirectory(v, f, local(v.param("return_to")))
	if err != nil {
		return err
	}
	return v.show(p)
}

// enterDirectory signs a user in with an LDAP directory, or links their entry. All
// refusals look the same in the browser: the log has the reasons.
func (w *Web) enterDirectory(v *visit) error {
	username := v.text("username")
	if err := v.throttle("sign_in", username); err != nil {
		return err
	}
	to := local(v.text("return_to"))
	if v.session != nil {
		f := v.sent()
		ok, err := v.confirm(&f)
		if err != nil {
			return v.redirectWithFlash(err, "", identitiesPath)
		}
		if !ok {
			p, err := w.newDirectory(v, f, to)
			if err != nil {
				return err
			}
			return v.again(p)
		}
	}
	session, err := w.SignIn.Authenticate(v, signin.Credentials{
		Provider: chi.URLParam(v.r, "provider"), Username: username, Password: v.r.PostForm.Get("password"), Remember: v.text("remember_me") != "",
		IP: v.ip(), Agent: v.r.UserAgent(), By: v.actor,
	})
	if half, ok := errors.AsType[user.TwoFactorRequired](err); ok {
		v.setCookie(w.halfwayCookie(), half.Ticket, "/users", 10*time.Minute)
		return v.redirect("/users/sign_in/code?return_to=" + url.QueryEscape(to))
	}
	if text := directoryRefusal(err); text != "" {
		f := v.sent()
		f.Error = text
		p, fault := w.newDirectory(v, f, to)
		if fault != nil {
			return fault
		}
		return v.again(p)
	}
	if err != nil {
		return err
	}
	if session == nil {
		return v.done("Your account is linked.", identitiesPath)
	}
	if err := v.enter(session); err != nil {
		return err
	}
	return v.redirect(to)
}

// directoryRefusal is the message for a user who was refused; empty for another
// error.
func directoryRefusal(err error) string {
	if refused, ok := errors.AsType[*signin.Refused](err); ok {
		switch {
		case refused.Pending:
			return "Your account is pending approval by an administrator."
		case refused.Link:
			return "The account could not be linked. Check username and password, or contact an administrator."
		}
		return "You could not be signed in. Check username and password, or contact an administrator."
	}
	if e, ok := errors.AsType[*errs.Error](err); ok && e.Kind == errs.KindUnavailable && e.Text != "" {
		return e.Text
	}
	return ""
}
