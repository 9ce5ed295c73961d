package web

import (
	"html/template"
	"strings"

	"svc/internal/errs"
	"svc/internal/user"
)

func (w *Web) securityPages() {
	w.page("GET /-/user_settings/password/edit", unfinished, w.passwordForm)
	w.page("POST /-/user_settings/password", unfinished, w.changePassword)
	w.page("GET /-/user_settings/two_factor", signedIn, w.twoFactorPage)
	w.page("POST /-/user_settings/two_factor/start", signedIn, w.startTwoFactor)
	w.page("POST /-/user_settings/two_factor/enable", signedIn, w.enableTwoFactor)
	w.page("POST /-/user_settings/two_factor/disable", signedIn, w.disableTwoFactor)
	w.page("POST /-/user_settings/two_factor/codes", signedIn, w.renewCodes)
	w.page("GET /-/user_settings/active_sessions", signedIn, w.sessionsPage)
	w.page("POST /-/user_settings/active_sessions/{id}/revoke", signedIn, w.revokeSession)
	w.page("POST /-/user_settings/active_sessions/revoke", signedIn, w.revokeOthers)
}

type passwordPage struct {
	Form   form
	Least  int
	Forced bool
}

func (passwordPage) view() string  { return "user/settings_password" }
func (passwordPage) title() string { return "Password" }

func (w *Web) passwordForm(v *visit) error { return w.showPassword(v, filled()) }

func (w *Web) showPassword(v *visit, f form) error {
	settings, err := w.Settings.Current(v)
	if err != nil {
		return err
	}
	p := passwordPage{Form: f, Least: settings.MinimumPasswordLength, Forced: v.session.User.MustChangePassword}
	return v.showForm(p, f)
}

func (w *Web) changePassword(v *visit) error {
	if err := v.throttle("password", v.actor.Username); err != nil {
		return err
	}
	f := filled()
	password := v.r.PostForm.Get("password")
	if password != v.r.PostForm.Get("password_confirmation") {
		f.Errors = map[string][]string{"password_confirmation": {"does not match"}}
		return w.showPassword(v, f)
	}
	err := w.Users.ChangePassword(v, v.actor, v.r.PostForm.Get("current_password"), password, v.session.ID)
	if err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showPassword(v, f)
	}
	return v.done("Your password was changed. Your other sessions were ended.", "/")
}

const twoFactorPath = "/-/user_settings/two_factor"

type twoFactorPage struct {
	Form    form
	Enabled bool
	Left    int           // number of recovery codes that are left
	Secret  string        // during the setup
	QR      template.HTML // during the setup
	Codes   []string      // shown once
}

func (twoFactorPage) view() string  { return "user/settings_two_factor" }
func (twoFactorPage) title() string { return "Two-factor authentication" }

func (w *Web) twoFactorPage(v *visit) error { return w.showTwoFactor(v, filled()) }

func (w *Web) showTwoFactor(v *visit, f form) error {
	p := twoFactorPage{Form: f, Enabled: v.session.User.TwoFactorEnabled}
	var err error
	if p.Enabled {
		if p.Left, err = w.Users.RecoveryCodesLeft(v, v.actor); err != nil {
			return err
		}
	}
	return v.showForm(p, f)
}

// startTwoFactor shows a new secret, only in this response. A person who has it can lock
// the user out, so the user must be present.
func (w *Web) startTwoFactor(v *visit) error {
	if ok, err := v.confirmSelf(twoFactorPath); !ok {
		return err
	}
	e, err := w.Users.StartTwoFactor(v, v.actor, w.Site.Name)
	if err != nil {
		return err
	}
	return w.showEnrollment(v, filled(), e)
}

func (w *Web) showEnrollment(v *visit, f form, e *user.Enrollment) error {
	p := twoFactorPage{Form: f, Secret: spaced(e.Secret)}
	var err error
	if p.QR, err = drawQR(e.URL); err != nil {
		return err
	}
	return v.showForm(p, f)
}

// spaced divides a secret into groups, which are easier to type.
func spaced(text string) string {
	var groups []string
	for len(text) > 4 {
		groups, text = append(groups, text[:4]), text[4:]
	}
	return strings.Join(append(groups, text), " ")
}

func (w *Web) enableTwoFactor(v *visit) error {
	if err := v.throttle("two_factor", v.actor.Username); err != nil {
		return err
	}
	codes, err := w.Users.EnableTwoFactor(v, v.actor, v.text("code"))
	if errs.Is(err, errs.KindInvalid) {
		if w.Users.NeedsConfirmation(v.session) {
			v.setFlash("bad", "The code was wrong. Remove the entry from your authenticator app and start again.")
			return v.redirect(twoFactorPath)
		}
		// The secret is not shown twice. The code may be wrong because the
		// authenticator app does not have the secret, so a new one is created.
		e, err := w.Users.StartTwoFactor(v, v.actor, w.Site.Name)
		if err != nil {
			return err
		}
		f := filled()
		f.Errors = map[string][]string{"code": {"was wrong. Remove the entry from your authenticator app and scan this new code"}}
		return w.showEnrollment(v, f, e)
	}
	if err != nil {
		return err
	}
	return v.show(twoFactorPage{Form: filled(), Enabled: true, Left: len(codes), Codes: codes})
}

func (w *Web) disableTwoFactor(v *visit) error {
	if err := v.throttle("password", v.actor.Username); err != nil {
		return err
	}
	if err := w.Users.DisableOwnTwoFactor(v, v.actor, v.r.PostForm.Get("current_password")); err != nil {
		f := filled()
		if err := f.refused(err); err != nil {
			return err
		}
		f.only()
		return w.showTwoFactor(v, f)
	}
	return v.done("Two-factor authentication was disabled.", twoFactorPath)
}

func (w *Web) renewCodes(v *visit) error {
	if err := v.throttle("password", v.actor.Username); err != nil {
		return err
	}
	codes, err := w.Users.RenewRecoveryCodes(v, v.actor, v.r.PostForm.Get("current_password"))
	if err != nil {
		f := filled()
		if err := f.refused(err); err != nil {
			return err
		}
		f.only()
		return w.showTwoFactor(v, f)
	}
	return v.show(twoFactorPage{Form: filled(), Enabled: true, Left: len(codes), Codes: codes})
}

type sessionsPage struct {
	Sessions []sessionRow
	SignIns  []signInRow
}

// signInRow is a sign-in of the user.
type signInRow struct {
	user.SignIn
	Browser string
}

type sessionRow struct {
	user.Session
	Browser string
	Phone   bool
	Current bool
}

func (sessionsPage) view() string  { return "user/settings_sessions" }
func (sessionsPage) title() string { return "Active sessions" }

func (w *Web) sessionsPage(v *visit) error {
	list, err := w.Users.Sessions(v, v.actor)
	if err != nil {
		return err
	}
	var p sessionsPage
	for _, s := range list {
		name, phone := browserOf(s.UserAgent)
		p.Sessions = append(p.Sessions, sessionRow{Session: s, Browser: name, Phone: phone, Current: s.ID == v.session.ID})
	}
	signIns, err := w.Users.SignIns(v, v.actor)
	if err != nil {
		return err
	}
	for _, s := range signIns {
		name, _ := browserOf(s.UserAgent)
		p.SignIns = append(p.SignIns, signInRow{s, name})
	}
	return v.show(p)
}

// browserOf recognizes common browsers and systems: their User-Agent headers
// name several.
func browserOf(agent string) (name string, phone bool) {
	browser, system := "Unknown browser", ""
	for _, b := range [][2]string{{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"}} {
		if strings.Contains(agent, b[0]) {
			browser = b[1]
			break
		}
	}
	for _, s := range [][2]string{{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Mac OS", "macOS"}, {"Linux", "Linux"}} {
		if strings.Contains(agent, s[0]) {
			system = " on " + s[1]
			break
		}
	}
	return browser + system, strings.Contains(agent, "Mobile") || strings.Contains(agent, "Android") || strings.Contains(agent, "iPhone")
}

func (w *Web) revokeSession(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	if err := w.Users.RevokeSession(v, v.actor, id); err != nil {
		return err
	}
	return v.done("The session was revoked.", "/-/user_settings/active_sessions")
}

func (w *Web) revokeOthers(v *visit) error {
	if err := w.Users.RevokeOtherSessions(v, v.actor, v.session.ID); err != nil {
		return err
	}
	return v.done("All other sessions were revoked.", "/-/user_settings/active_sessions")
}
