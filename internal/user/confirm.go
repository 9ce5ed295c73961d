package user

import (
	"context"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/mail"
)

// confirmedFor is how long a sign-in confirms that the user of a session is present.
const confirmedFor = 10 * time.Minute

// PasswordRequired is the error if the password is needed to confirm an operation.
type PasswordRequired struct{}

func (PasswordRequired) Error() string { return "password required" }

// ConfirmSelf checks that the actor is present, before an operation after which their
// account could be opened in another way: their session may be stolen. A sign-in in
// the last ten minutes suffices; otherwise the password is needed: PasswordRequired if it
// is empty, Invalid if it is wrong, which counts like a failed sign-in. Forbidden if
// the actor has no password and must sign in again.
func (s *Service) ConfirmSelf(ctx context.Context, by actor.Actor, session *Session, password string) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	if !s.NeedsConfirmation(session) {
		return nil
	}
	if by.Impersonator != nil {
		by = *by.Impersonator // whose session it is
	}
	has, err := s.HasPassword(ctx, by)
	switch {
	case err != nil:
		return err
	case !has:
		return errs.Forbidden("Sign in again first. Your last sign-in is more than 10 minutes ago.")
	case password == "":
		return PasswordRequired{}
	}
	return s.checkOwn(ctx, by, password)
}

// NeedsConfirmation reports whether the sign-in of a session is too long ago for
// ConfirmSelf.
func (s *Service) NeedsConfirmation(session *Session) bool {
	return s.Now().Sub(session.CreatedAt) > confirmedFor
}

// postEmailChanged informs the former primary address of a user that there is another
// one now, if it was confirmed.
func (s *Service) postEmailChanged(ctx context.Context, tx *db.Tx, was, now *User) error {
	if was.ConfirmedAt == nil || strings.EqualFold(was.Email, now.Email) {
		return nil
	}
	return s.Mail.Post(ctx, tx, mail.Email{
		To: was.Email, Name: now.Name, Subject: "Your primary email address was changed",
		Lines: []string{"The primary email address of your account " + now.Username + " was changed to " + now.Email + "."},
		After: []string{"If you did not request this, contact an administrator."},
	})
}
