package web

import (
	"context"

	"svc/internal/errs"
	"svc/internal/setting"
	"svc/internal/user"
)

func (w *Web) passwordPages() {
	w.page("GET /users/password/new", visitor, w.forgotForm)
	w.page("POST /users/password", visitor, w.forgot)
	w.page("GET /users/password/edit", visitor, w.resetForm)
	w.page("POST /users/password/edit", visitor, w.reset)
	w.page("GET /users/unlock/new", visitor, w.lockedForm)
	w.page("POST /users/unlock/new", visitor, w.locked)
	w.page("GET /users/unlock", anyone, w.unlockForm)
	w.page("POST /users/unlock", anyone, w.unlock)
	w.page("GET /users/confirmation/new", anyone, w.unconfirmedForm)
	w.page("POST /users/confirmation/new", anyone, w.unconfirmed)
	w.page("GET /users/confirmation", anyone, w.confirmForm)
	w.page("POST /users/confirmation", anyone, w.confirm)
}

// askPage is a form for a username or an email address, to which an email is sent.
type askPage struct {
	Form               form
	Head, Text, Button string
	Label, Action      string
	Auto               string
}

func (askPage) view() string    { return "user/ask" }
func (p askPage) title() string { return p.Head }

func forgotPage(f form) askPage {
	return askPage{
		Form: f, Head: "Forgot your password?", Text: "Enter your username or email address to get a link to set a new password.",
		Button: "Send link", Label: "Username or email", Action: "/users/password", Auto: "username",
	}
}

func lockedPage(f form) askPage {
	return askPage{
		Form: f, Head: "Unlock your account", Text: "An account is locked for some time after too many failed sign-in attempts. Enter your username or email address to get a link to unlock it now.",
		Button: "Send link", Label: "Username or email", Action: "/users/unlock/new", Auto: "username",
	}
}

func unconfirmedPage(f form) askPage {
	return askPage{
		Form: f, Head: "Confirm your email address", Text: "Enter your email address to get a new confirmation link.",
		Button: "Send link", Label: "Email", Action: "/users/confirmation/new", Auto: "email",
	}
}

func (w *Web) forgotForm(v *visit) error { return v.show(forgotPage(filled())) }
func (w *Web) lockedForm(v *visit) error { return v.show(lockedPage(filled())) }
func (w *Web) unconfirmedForm(v *visit) error {
	return v.show(unconfirmedPage(filled("login", v.param("email"))))
}

func (w *Web) forgot(v *visit) error { return w.ask(v, forgotPage, w.Users.AskPasswordReset) }
func (w *Web) locked(v *visit) error { return w.ask(v, lockedPage, w.Users.AskUnlock) }
func (w *Web) unconfirmed(v *visit) error {
	return w.ask(v, unconfirmedPage, w.Users.AskConfirmation)
}

// ask sends an email if there is such a user. The response does not reveal
// whether there is one.
func (w *Web) ask(v *visit, page func(form) askPage, send func(ctx context.Context, login string) error) error {
	login := v.text("login")
	if err := v.throttle("email", login); err != nil {
		return err
	}
	if login == "" {
		f := v.sent()
		f.Errors = map[string][]string{"login": {"can't be blank"}}
		return v.again(page(f))
	}
	if err := send(v, login); err != nil {
		return err
	}
	if !w.Mail.Enabled() {
		v.setFlash("bad", "This instance cannot send email. Contact an administrator.")
		return v.redirect("/users/sign_in")
	}
	return v.done("If the account exists, an email was sent. Check your inbox.", "/users/sign_in")
}

type resetPage struct {
	Form  form
	Token string
	Least int
}

func (resetPage) view() string  { return "user/reset" }
func (resetPage) title() string { return "Set a new password" }

func (w *Web) resetForm(v *visit) error {
	token := v.param("reset_password_token")
	if err := w.Users.CheckReset(v, token); err != nil {
		return w.oldLink(v, err, "/users/password/new")
	}
	return w.showReset(v, filled(), token)
}

func (w *Web) showReset(v *visit, f form, token string) error {
	settings, err := w.Settings.Current(v)
	if err != nil {
		return err
	}
	p := resetPage{Form: f, Token: token, Least: settings.MinimumPasswordLength}
	return v.showForm(p, f)
}

// oldLink redirects from a link that has expired to the form that sends another.
func (w *Web) oldLink(v *visit, err error, to string) error {
	if !errs.Is(err, errs.KindInvalid) {
		return err
	}
	if err := w.Users.FailedToken(v, v.ip(), nil); err != nil {
		return err
	}
	v.setFlash("bad", "The link has expired or was already used. Request a new one.")
	return v.redirect(to)
}

func (w *Web) reset(v *visit) error {
	if err := v.throttle("reset", ""); err != nil {
		return err
	}
	token, password := v.text("reset_password_token"), v.r.PostForm.Get("password")
	f := filled()
	if password != v.r.PostForm.Get("password_confirmation") {
		f.Errors = map[string][]string{"password_confirmation": {"does not match"}}
		return w.showReset(v, f, token)
	}
	_, err := w.Users.TakeReset(v, token, password, v.ip())
	if err != nil {
		if refused := f.refused(err); refused != nil || len(f.Errors) == 0 {
			return w.oldLink(v, err, "/users/password/new")
		}
		return w.showReset(v, f, token)
	}
	return v.done("Your password was set. You can sign in now.", "/users/sign_in")
}

// pressPage has a button to confirm the action of a link in an email. Programs that
// scan email follow links but send no forms.
type pressPage struct {
	Head, Text, Button string
	Action, Name       string
	Token              string
}

func (pressPage) view() string    { return "user/press" }
func (p pressPage) title() string { return p.Head }

func (w *Web) unlockForm(v *visit) error {
	return v.show(pressPage{
		Head: "Unlock your account", Text: "Unlock your account, then sign in.", Button: "Unlock account",
		Action: "/users/unlock", Name: "unlock_token", Token: v.param("unlock_token"),
	})
}

func (w *Web) unlock(v *visit) error {
	if err := w.Users.TakeUnlock(v, v.text("unlock_token"), v.ip()); err != nil {
		return w.oldLink(v, err, "/users/unlock/new")
	}
	return v.done("Your account was unlocked. You can sign in now.", "/users/sign_in")
}

func (w *Web) confirmForm(v *visit) error {
	return v.show(pressPage{
		Head: "Confirm your email address", Text: "Select the button to confirm your address.", Button: "Confirm email address",
		Action: "/users/confirmation", Name: "confirmation_token", Token: v.param("confirmation_token"),
	})
}

func (w *Web) confirm(v *visit) error {
	if _, err := w.Users.ConfirmEmail(v, v.text("confirmation_token")); err != nil {
		return w.oldLink(v, err, "/users/confirmation/new")
	}
	to := "/users/sign_in"
	if v.session != nil {
		to = "/-/user_settings/emails"
	}
	return v.done("Your email address was confirmed.", to)
}

func (w *Web) registrationPages() {
	w.page("GET /users/sign_up", visitor, w.signUpForm)
	w.page("POST /users/sign_up", visitor, w.signUp)
}

type signUpPage struct {
	Form  form
	Least int
}

func (signUpPage) view() string  { return "user/sign_up" }
func (signUpPage) title() string { return "Sign up" }

func (w *Web) signUpForm(v *visit) error { return w.showSignUp(v, filled()) }

func (w *Web) showSignUp(v *visit, f form) error {
	settings, err := w.Settings.Current(v)
	if err != nil {
		return err
	}
	if !settings.SignUpEnabled || !settings.PasswordForWeb {
		return errs.NotFound("")
	}
	p := signUpPage{Form: f, Least: settings.MinimumPasswordLength}
	return v.showForm(p, f)
}

func (w *Web) signUp(v *visit) error {
	if err := v.throttle("sign_up", ""); err != nil {
		return err
	}
	u, err := w.Users.SignUp(v, user.NewUser{
		Name: v.text("name"), Username: v.text("username"), Email: v.text("email"), Password: v.r.PostForm.Get("password"),
	}, v.ip())
	if err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showSignUp(v, f)
	}
	settings, err := w.Settings.Current(v)
	if err != nil {
		return err
	}
	text := "Your account was created."
	switch {
	case u.State == user.PendingApproval:
		text += " An administrator must approve it before you can sign in."
	case settings.Confirmation != setting.ConfirmHard:
		text += " You can sign in now."
	}
	switch {
	case settings.Confirmation == setting.ConfirmHard:
		text += " Confirm your email address before you sign in."
	case w.Mail.Enabled():
		text += " A confirmation email was sent to your address."
	}
	return v.done(text, "/users/sign_in")
}
