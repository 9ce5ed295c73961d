package web

import (
	"errors"
	"net/http"
	"strings"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/picture"
	"svc/internal/user"
)

func (w *Web) profilePages() {
	w.page("GET /-/user_settings", signedIn, func(v *visit) error { return v.redirect("/-/user_settings/profile") })
	w.page("GET /-/user_settings/profile", signedIn, w.profileForm)
	w.page("POST /-/user_settings/profile", signedIn, w.saveProfile)
	w.page("POST /-/user_settings/avatar", signedIn, w.saveAvatar)
	w.page("POST /-/user_settings/avatar/delete", signedIn, w.removeAvatar)
	w.page("GET /-/user_settings/emails", signedIn, w.emailsPage)
	w.page("POST /-/user_settings/emails", signedIn, w.addEmail)
	w.page("POST /-/user_settings/emails/{id}/primary", signedIn, w.primaryEmail)
	w.page("POST /-/user_settings/emails/{id}/delete", signedIn, w.deleteEmail)
	w.page("POST /-/user_settings/emails/{id}/resend", signedIn, w.resendEmail)
	w.page("POST /-/user_settings/confirmation", signedIn, w.resendOwn)
}

// allOf returns paging for a list that is always short.
func allOf() db.Paging { return db.Paging{Limit: 200} }

type profilePage struct {
	Form   form
	User   *user.User
	Emails []string // confirmed

	CommitEmails []option
}

func (profilePage) view() string  { return "user/settings_profile" }
func (profilePage) title() string { return "Profile" }

// profileFields are the fields of the form.
func profileFields() []string {
	return []string{"name", "pronouns", "bio", "location", "job_title", "organization", "website_url", "linkedin", "twitter", "discord",
		"public_email", "commit_email", "private_profile"}
}

func (w *Web) profileForm(v *visit) error {
	u := v.session.User
	private := ""
	if u.PrivateProfile {
		private = "1"
	}
	return w.showProfile(v, filled("name", u.Name, "pronouns", u.Pronouns, "bio", u.Bio, "location", u.Location, "job_title", u.JobTitle,
		"organization", u.Organization, "website_url", u.WebsiteURL, "linkedin", u.LinkedIn, "twitter", u.Twitter, "discord", u.Discord,
		"public_email", u.PublicEmail, "commit_email", u.CommitEmail, "private_profile", private))
}

func (w *Web) showProfile(v *visit, f form) error {
	page, err := w.Users.OwnEmails(v, v.actor, allOf())
	if err != nil {
		return err
	}
	p := profilePage{Form: f, User: v.session.User}
	if p.User.ConfirmedAt != nil {
		p.Emails = append(p.Emails, p.User.Email)
	}
	for _, e := range page.Items {
		if e.ConfirmedAt != nil {
			p.Emails = append(p.Emails, e.Address)
		}
	}
	p.CommitEmails = []option{{"", "Use primary email"}, {user.PrivateCommitEmail, "Use a private email"}}
	for _, address := range p.Emails {
		p.CommitEmails = append(p.CommitEmails, option{address, address})
	}
	return v.showForm(p, f)
}

func (w *Web) saveProfile(v *visit) error {
	at := func(name string) *string {
		text := v.text(name)
		return &text
	}
	private := v.text("private_profile") != ""
	_, err := w.Users.UpdateSelf(v, v.actor, user.SelfChange{
		Name: at("name"), Pronouns: at("pronouns"), Bio: at("bio"), Location: at("location"), JobTitle: at("job_title"),
		Organization: at("organization"), WebsiteURL: at("website_url"), LinkedIn: at("linkedin"), Twitter: at("twitter"),
		Discord: at("discord"), PublicEmail: at("public_email"), CommitEmail: at("commit_email"), PrivateProfile: &private,
	})
	if err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		f.only(profileFields()...)
		return w.showProfile(v, f)
	}
	return v.done("Your profile was saved.", "/-/user_settings/profile")
}

func (w *Web) saveAvatar(v *visit) error {
	file, head, err := v.r.FormFile("avatar")
	if errors.Is(err, http.ErrMissingFile) || errors.Is(err, http.ErrNotMultipart) {
		v.setFlash("bad", "Select an image first.")
		return v.redirect("/-/user_settings/profile")
	}
	if err != nil {
		return errs.Invalid("The image cannot be read.").Because(err)
	}
	defer file.Close()
	_, err = w.Users.SetAvatar(v, v.actor, v.actor.ID, &picture.File{Name: head.Filename, Data: file})
	if refused, ok := errors.AsType[*errs.Error](err); ok && refused.Kind == errs.KindInvalid {
		v.setFlash("bad", strings.TrimPrefix(sentence(refused), "Avatar "))
		return v.redirect("/-/user_settings/profile")
	}
	if err != nil {
		return err
	}
	return v.done("Your avatar was updated.", "/-/user_settings/profile")
}

func (w *Web) removeAvatar(v *visit) error {
	if _, err := w.Users.RemoveAvatar(v, v.actor, v.actor.ID); err != nil {
		return err
	}
	return v.done("Your avatar was removed.", "/-/user_settings/profile")
}

type emailsPage struct {
	Form   form
	User   *user.User
	Emails []user.Email
}

func (emailsPage) view() string  { return "user/settings_emails" }
func (emailsPage) title() string { return "Emails" }

func (w *Web) emailsPage(v *visit) error { return w.showEmails(v, filled()) }

func (w *Web) showEmails(v *visit, f form) error {
	page, err := w.Users.OwnEmails(v, v.actor, allOf())
	if err != nil {
		return err
	}
	p := emailsPage{Form: f, User: v.session.User, Emails: page.Items}
	return v.showForm(p, f)
}

func (w *Web) addEmail(v *visit) error {
	if _, err := w.Users.AddOwnEmail(v, v.actor, v.text("email")); err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showEmails(v, f)
	}
	text := "The email address was added. A confirmation email was sent to it."
	if !w.Mail.Enabled() {
		text = "The email address was added. It cannot be confirmed because this instance cannot send email."
	}
	return v.done(text, "/-/user_settings/emails")
}

func (w *Web) primaryEmail(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	if ok, err := v.confirmSelf("/-/user_settings/emails"); !ok {
		return err
	}
	if _, err := w.Users.SetOwnPrimary(v, v.actor, id); err != nil {
		return err
	}
	return v.done("The email address is now your primary email.", "/-/user_settings/emails")
}

func (w *Web) deleteEmail(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	if err := w.Users.DeleteOwnEmail(v, v.actor, id); err != nil {
		return err
	}
	return v.done("The email address was removed.", "/-/user_settings/emails")
}

func (w *Web) resendEmail(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	e, err := w.Users.OwnEmail(v, v.actor, id)
	if err != nil {
		return err
	}
	return w.resend(v, e.Address)
}

func (w *Web) resendOwn(v *visit) error { return w.resend(v, v.session.User.Email) }

func (w *Web) resend(v *visit, address string) error {
	if err := v.throttle("confirmation_email", address); err != nil {
		return err
	}
	if err := w.Users.AskConfirmation(v, address); err != nil {
		return err
	}
	if !w.Mail.Enabled() {
		v.setFlash("bad", "This instance cannot send email. Contact an administrator.")
		return v.redirect("/-/user_settings/emails")
	}
	return v.done("A confirmation email was sent to "+address+".", "/-/user_settings/emails")
}
