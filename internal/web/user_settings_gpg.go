package web

import (
	"svc/internal/user"
)

func (w *Web) gpgKeyPages() {
	w.page("GET /-/user_settings/gpg_keys", signedIn, w.gpgKeysPage)
	w.page("POST /-/user_settings/gpg_keys", signedIn, w.addGPGKey)
	w.page("POST /-/user_settings/gpg_keys/{id}/delete", signedIn, w.deleteGPGKey)
}

// gpgKeyRow is a GPG key with its email addresses and subkeys.
type gpgKeyRow struct {
	user.GPGKey
	Emails  []user.GPGEmail
	Subkeys []string // key IDs
	Revoked bool
}

type gpgKeysPage struct {
	Form form
	Keys []gpgKeyRow
}

func (gpgKeysPage) view() string  { return "user/settings_gpg_keys" }
func (gpgKeysPage) title() string { return "GPG keys" }

func (w *Web) gpgKeysPage(v *visit) error { return w.showGPGKeys(v, filled()) }

func (w *Web) showGPGKeys(v *visit, f form) error {
	page, err := w.Users.OwnGPGKeys(v, v.actor, allOf())
	if err != nil {
		return err
	}
	f.only("key")
	p := gpgKeysPage{Form: f}
	for _, k := range page.Items {
		row := gpgKeyRow{GPGKey: k}
		if row.Emails, err = w.Users.GPGEmails(v, &k); err != nil {
			return err
		}
		parsed, err := k.Parse()
		if err != nil {
			return err
		}
		row.Revoked = parsed.Revoked()
		for _, part := range parsed.Parts[1:] {
			row.Subkeys = append(row.Subkeys, part.ID)
		}
		p.Keys = append(p.Keys, row)
	}
	return v.showForm(p, f)
}

func (w *Web) addGPGKey(v *visit) error {
	f := v.sent()
	if _, err := w.Users.AddOwnGPGKey(v, v.actor, v.text("key")); err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showGPGKeys(v, f)
	}
	return v.done("The key was added.", "/-/user_settings/gpg_keys")
}

func (w *Web) deleteGPGKey(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	if err := w.Users.DeleteOwnGPGKey(v, v.actor, id); err != nil {
		return err
	}
	return v.done("The key was removed.", "/-/user_settings/gpg_keys")
}
