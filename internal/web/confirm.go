package web

import (
	"errors"

	"svc/internal/user"
)

// confirmPage asks for the password before a button of the settings takes effect.
type confirmPage struct {
	Form   form
	Action string // of the button
	Back   string
}

func (confirmPage) view() string  { return "user/confirm" }
func (confirmPage) title() string { return "Confirm your password" }

// confirmSelf checks that the user is present: see user.ConfirmSelf. If not, it responds
// with a page that asks for the password, or redirects to back, and returns false.
func (v *visit) confirmSelf(back string) (bool, error) {
	f := filled()
	ok, err := v.confirm(&f)
	if ok {
		return true, nil
	}
	if err != nil {
		return false, v.redirectWithFlash(err, "", back)
	}
	return false, v.showForm(confirmPage{Form: f, Action: v.r.URL.Path, Back: back}, f)
}

// confirm checks the password in the form, if the session needs one. It returns false
// if it is missing or wrong, which f then says. Forbidden for a user who must sign in
// again.
func (v *visit) confirm(f *form) (bool, error) {
	password := v.r.PostForm.Get("current_password")
	if password != "" {
		if err := v.throttle("password", v.actor.Username); err != nil {
			return false, err
		}
	}
	err := v.web.Users.ConfirmSelf(v, v.actor, v.session, password)
	if err == nil {
		return true, nil
	}
	if _, ok := errors.AsType[user.PasswordRequired](err); ok {
		return false, nil
	}
	return false, f.refused(err)
}
