package web

import (
	"strings"

	"github.com/go-chi/chi/v5"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

func (w *Web) invitePages() {
	w.page("GET /-/invites/{token}", signedIn, w.openInvitation)
}

// openInvitation opens the link in an invitation email. The user has signed in, so
// the invitation was accepted if it was sent to one of their addresses.
func (w *Web) openInvitation(v *visit) error {
	token := chi.URLParam(v.r, "token")
	if i, err := w.Invites.ByToken(v, token); err == nil {
		w.acceptInvites(v, v.session.User.ID)
		if _, err := w.Invites.ByToken(v, token); err == nil {
			return errs.Forbidden("This invitation is for %s. Sign in with a user whose confirmed email address it is.", i.Email)
		}
	} else if !errs.Is(err, errs.KindNotFound) {
		return err
	}
	return v.done("You accepted the invitation, or it is no longer valid.", "/dashboard/projects")
}

// acceptInvites accepts the invitations to the confirmed addresses of a user who
// signs in. An error does not prevent the sign-in.
func (w *Web) acceptInvites(v *visit, userID int64) {
	addresses, err := w.confirmedAddresses(v, userID)
	if err == nil && len(addresses) > 0 {
		err = w.Invites.AcceptAll(v, userID, addresses)
	}
	if err != nil {
		w.Log.WarnContext(v, "cannot accept invitations", "user_id", userID, "error", err)
	}
}

// confirmedAddresses returns the confirmed addresses of a user, in lower case.
func (w *Web) confirmedAddresses(v *visit, userID int64) ([]string, error) {
	u, err := w.Users.Get(v, actor.System(), userID, false)
	if err != nil {
		return nil, err
	}
	var addresses []string
	if u.ConfirmedAt != nil {
		addresses = append(addresses, strings.ToLower(u.Email))
	}
	more, err := w.Users.Emails(v, actor.System(), userID, db.Paging{Limit: 100})
	for _, e := range more.Items {
		if e.ConfirmedAt != nil {
			addresses = append(addresses, strings.ToLower(e.Address))
		}
	}
	return addresses, err
}

// inviteByEmail takes the form of a new member with an email address.
func (w *Web) inviteByEmail(v *visit, in project.Place) error {
	email := v.text("username")
	failed, err := w.Invites.Invite(v, v.actor, in, []string{email}, nil, v.sentLevel("access_level"), v.text("expires_at"))
	f := v.sent()
	if err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showMembers(v, in, f)
	}
	for _, text := range failed {
		f.Error = text
		return w.showMembers(v, in, f)
	}
	return v.done(email+" was invited.", settingsOf(in, "members"))
}

func (w *Web) revokeInvitation(v *visit, in project.Place) error {
	return v.redirectWithFlash(w.Invites.Revoke(v, v.actor, in, v.text("email")), "The invitation was revoked.", settingsOf(in, "members"))
}
