package web

import (
	"io"
	"slices"
	"strings"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/user"
)

// maxUserKeys is the maximum number of keys that userKeys shows.
const maxUserKeys = 1000

// userKeys shows the public keys of a user as text, for tools that copy them to
// servers: ada.keys has the SSH keys, ada.gpg the verified GPG keys. The keys of
// private profiles are public too. NotFound.
func (w *Web) userKeys(v *visit, name string) error {
	var list []string
	all := db.Paging{Limit: maxUserKeys}
	username, gpg := strings.CutSuffix(name, ".gpg")
	username = strings.TrimSuffix(username, ".keys")
	u, err := w.Users.Find(v, v.actor, user.Ref(username))
	if err != nil {
		return err
	}
	if !strings.EqualFold(u.Username, username) { // an ID
		return errs.NotFound("User")
	}
	if !gpg {
		keys, err := w.Users.KeysOf(v, v.actor, user.Ref(u.Username), all)
		if err != nil {
			return err
		}
		for _, k := range keys.Items {
			list = append(list, k.Key)
		}
	} else {
		keys, err := w.Users.GPGKeysOf(v, v.actor, user.Ref(u.Username), all)
		if err != nil {
			return err
		}
		for _, k := range keys.Items {
			emails, err := w.Users.GPGEmails(v, &k)
			if err != nil {
				return err
			}
			if slices.ContainsFunc(emails, func(e user.GPGEmail) bool { return e.Verified }) {
				list = append(list, k.Key)
			}
		}
	}
	return v.sendText(func(out io.Writer) error {
		for _, key := range list {
			if _, err := io.WriteString(out, strings.TrimSuffix(key, "\n")+"\n"); err != nil {
				return err
			}
		}
		return nil
	})
}
