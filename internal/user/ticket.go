package user

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/mail"
	"svc/internal/queue"
	"svc/internal/secret"
)

// purpose is the purpose of a ticket.
type purpose string

const (
	setPasswordTicket purpose = "password"
	unlockTicket      purpose = "unlock"
)

// ticketLife is how long a ticket is valid.
const ticketLife = 6 * time.Hour

// AskPasswordReset sends the owner of a login an email with a link to set a new
// password. No permissions are required; neither the result nor the response time
// reveals whether the account exists.
func (s *Service) AskPasswordReset(ctx context.Context, login string) error {
	return s.ask(ctx, emailWork{Login: login, About: string(setPasswordTicket)})
}

// AskUnlock sends the owner of a locked account an email with a link to unlock it.
// Like AskPasswordReset it does not reveal whether the account exists.
func (s *Service) AskUnlock(ctx context.Context, login string) error {
	return s.ask(ctx, emailWork{Login: login, About: string(unlockTicket)})
}

// AskConfirmation sends another confirmation email to an unconfirmed address. Like
// AskPasswordReset it does not reveal whether the account exists.
func (s *Service) AskConfirmation(ctx context.Context, address string) error {
	return s.ask(ctx, emailWork{Login: address, About: confirmation})
}

const confirmation = "confirmation"

// emailWork is the background job that looks up the account and sends the email,
// so that the response time of the request does not depend on it.
type emailWork struct {
	Login string `json:"login"`
	About string `json:"about"`
}

// Kind implements queue.Work.
func (emailWork) Kind() string { return "user.letter" }

func (s *Service) ask(ctx context.Context, w emailWork) error {
	w.Login = clip(w.Login, maxEmail+1)
	err := s.DB.Tx(ctx, func(tx *db.Tx) error { return s.Queue.Add(ctx, tx, w, queue.Unique()) })
	if err != nil {
		return fmt.Errorf("request an email: %w", err)
	}
	return nil
}

func (s *Service) sendEmail(ctx context.Context, w emailWork) error {
	if w.About == confirmation {
		return s.confirmAgain(ctx, w.Login)
	}
	find := findByUsername
	if strings.Contains(w.Login, "@") {
		find = findByAnyEmail
	}
	u, err := find(ctx, s.DB, w.Login)
	if err != nil {
		return err // NotFound: no such account
	}
	if u.Kind != Human || u.mayEnter() != nil {
		return nil
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		if purpose(w.About) == unlockTicket {
			if !u.Locked(s.Now()) {
				return nil
			}
			return s.postUnlock(ctx, tx, u)
		}
		// The email goes to the address that is primary in this transaction: a change of
		// the address drops the tickets.
		if u, err = lockUser(ctx, tx, u.ID); err != nil {
			return err
		}
		return s.postReset(ctx, tx, u, "Reset your password", "A password reset was requested for your account "+u.Username+".",
			"If you did not request it, you can ignore this email. Your password has not changed.")
	})
}

// postReset sends the email with the link to set a password.
func (s *Service) postReset(ctx context.Context, tx *db.Tx, u *User, subject, why, otherwise string) error {
	token, err := s.addTicket(ctx, tx, u.ID, setPasswordTicket)
	if err != nil {
		return err
	}
	return s.Mail.Post(ctx, tx, mail.Email{
		To: u.Email, Name: u.Name, Subject: subject, Lines: []string{why},
		Action: "Set a new password", Path: "/users/password/edit?reset_password_token=" + url.QueryEscape(token),
		After: []string{"The link expires in six hours and can be used once.", otherwise},
	})
}

// postUnlock sends the email with the link to unlock an account.
func (s *Service) postUnlock(ctx context.Context, tx *db.Tx, u *User) error {
	token, err := s.addTicket(ctx, tx, u.ID, unlockTicket)
	if err != nil {
		return err
	}
	return s.Mail.Post(ctx, tx, mail.Email{
		To: u.Email, Name: u.Name, Subject: "Your account is locked",
		Lines:  []string{"Your account " + u.Username + " was locked after too many failed sign-in attempts. It unlocks automatically after a while. Use this link to unlock it now."},
		Action: "Unlock my account", Path: "/users/unlock?unlock_token=" + url.QueryEscape(token),
		After: []string{"If you did not try to sign in, choose a stronger password and turn on two-factor authentication."},
	})
}

// postConfirmation sends the email with the link to confirm an address.
func (s *Service) postConfirmation(ctx context.Context, tx *db.Tx, name, address, token string) error {
	return s.Mail.Post(ctx, tx, mail.Email{
		To: address, Name: name, Subject: "Confirm your email address",
		Lines:  []string{"This email address was added to an account. Confirm that it is yours."},
		Action: "Confirm your email address", Path: "/users/confirmation?confirmation_token=" + url.QueryEscape(token),
		After: []string{"If you did not request this, you can ignore this email."},
	})
}

// confirmAgain sends a new confirmation token to an unconfirmed address.
func (s *Service) confirmAgain(ctx context.Context, address string) error {
	token := secret.Token("")
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		userID, stored, confirmed, err := findAddress(ctx, tx, address)
		if err != nil {
			return db.NotFound(err, "Email")
		}
		if confirmed != nil {
			return nil
		}
		u, err := findUser(ctx, tx, userID)
		if err != nil {
			return err
		}
		if err := renewConfirmation(ctx, tx, address, secret.Digest(token)); err != nil {
			return err
		}
		return s.postConfirmation(ctx, tx, u.Name, stored, token)
	})
}

// TakeReset sets the password of the account that a reset email was sent to. The
// token is the permission and can be used once. All sessions end, the account is
// unlocked, and the address is confirmed. If it was not confirmed before, the account
// may have been created by someone else: all other credentials are removed, see
// reclaim. Invalid if the token has expired or the password is not accepted.
func (s *Service) TakeReset(ctx context.Context, token, password, ip string) (*User, error) {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, err
	}
	// The token is checked before the password is hashed, because hashing is
	// expensive.
	id, err := s.ticketOwner(ctx, s.DB, setPasswordTicket, token)
	if err != nil {
		return nil, err
	}
	wrong := errs.Fields{}
	checkPassword(wrong, password, settings.MinimumPasswordLength)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	hash, err := s.Hasher.Hash(ctx, password)
	if err != nil {
		return nil, fmt.Errorf("set password: %w", err)
	}
	return s.change(ctx, id, func(tx *db.Tx, u *User) error {
		if err := s.useTicket(ctx, tx, setPasswordTicket, token, u.ID); err != nil {
			return err
		}
		by := s.toActor(u, ip)
		if err := s.setPassword(ctx, tx, by, u, hash); err != nil {
			return err
		}
		if err := forgiveFailures(ctx, tx, u.ID); err != nil {
			return err
		}
		u.LockedUntil = nil
		// Administrators add credentials for the users that they create.
		if u.ConfirmedAt == nil && u.CreatedBy == nil {
			if err := s.reclaim(ctx, tx, by, u); err != nil {
				return err
			}
		}
		return s.confirmPrimary(ctx, tx, by, u)
	})
}

// reclaim removes all credentials of a user except the password, for the owner of an
// address with which someone else may have signed up: access tokens, keys, OAuth
// grants, identities, secondary addresses and two-factor authentication.
func (s *Service) reclaim(ctx context.Context, tx *db.Tx, by actor.Actor, u *User) error {
	if err := revokeTokens(ctx, tx, u.ID, s.Now()); err != nil {
		return err
	}
	if err := deleteKeys(ctx, tx, u.ID); err != nil {
		return err
	}
	if err := deleteGPGKeys(ctx, tx, u.ID); err != nil {
		return err
	}
	if err := deleteIdentities(ctx, tx, u.ID); err != nil {
		return err
	}
	if err := deleteSecondaryEmails(ctx, tx, u.ID, u.Email); err != nil {
		return err
	}
	u.PublicEmail, u.CommitEmail = "", ""
	if err := saveOTP(ctx, tx, u.ID, "", nil, 0); err != nil {
		return err
	}
	if err := deleteRecoveryCodes(ctx, tx, u.ID); err != nil {
		return err
	}
	if err := s.Events.Reclaimed.Publish(ctx, tx, Reclaim{UserID: u.ID}); err != nil {
		return err
	}
	return s.record(ctx, tx, by, u, "user_credentials_revoked", audit.Details{Message: "Revoked all credentials: a password reset confirmed the email address for the first time"})
}

// confirmPrimary confirms the primary address of a user.
func (s *Service) confirmPrimary(ctx context.Context, tx *db.Tx, by actor.Actor, u *User) error {
	if u.ConfirmedAt != nil {
		return nil
	}
	now := s.Now()
	u.ConfirmedAt = &now
	if err := confirmAddress(ctx, tx, u.Email, now); err != nil {
		return err
	}
	return s.record(ctx, tx, by, u, "email_confirmed", audit.Details{Message: "Email confirmed"})
}

// TakeUnlock unlocks the account that an unlock email was sent to. The token is
// the permission and can be used once. Invalid if it has expired.
func (s *Service) TakeUnlock(ctx context.Context, token, ip string) error {
	id, err := s.ticketOwner(ctx, s.DB, unlockTicket, token)
	if err != nil {
		return err
	}
	_, err = s.change(ctx, id, func(tx *db.Tx, u *User) error {
		if err := s.useTicket(ctx, tx, unlockTicket, token, u.ID); err != nil {
			return err
		}
		if err := forgiveFailures(ctx, tx, u.ID); err != nil {
			return err
		}
		return s.record(ctx, tx, s.toActor(u, ip), u, "user_access_unlocked", audit.Details{Message: "User access unlocked"})
	})
	return err
}

// CheckReset returns Invalid if the token of a password reset email is not valid.
func (s *Service) CheckReset(ctx context.Context, token string) error {
	_, err := s.ticketOwner(ctx, s.DB, setPasswordTicket, token)
	return err
}

func errOldTicket() error {
	return errs.Invalid("The link was used before or has expired. Please request a new one.")
}
