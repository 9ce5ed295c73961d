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

// purpose is what a ticket is good for.
type purpose string

const (
	setPasswordTicket purpose = "password"
	unlockTicket      purpose = "unlock"
)

// ticketLife is how long a ticket works.
const ticketLife = 6 * time.Hour

// AskPasswordReset sends the owner of a login a letter by which he can set a
// new password. Anybody may ask; the answer does not tell whether there is
// such an account, nor does the time that it takes.
func (s *Service) AskPasswordReset(ctx context.Context, login string) error {
	return s.ask(ctx, emailWork{Login: login, About: string(setPasswordTicket)})
}

// AskUnlock sends the owner of a locked account a letter by which he can
// unlock it. Like AskPasswordReset it tells nothing.
func (s *Service) AskUnlock(ctx context.Context, login string) error {
	return s.ask(ctx, emailWork{Login: login, About: string(unlockTicket)})
}

// AskConfirmation sends another letter to an address that waits to be
// confirmed. Like AskPasswordReset it tells nothing.
func (s *Service) AskConfirmation(ctx context.Context, address string) error {
	return s.ask(ctx, emailWork{Login: address, About: confirmation})
}

const confirmation = "confirmation"

// emailWork finds out whether there is somebody to write to, away from the
// request that asks for it.
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
		return fmt.Errorf("ask for a letter: %w", err)
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
		return err // NotFound: nobody to write to
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
		return s.postReset(ctx, tx, u, "Somebody, hopefully you, asked for a new password for your account "+u.Username+".",
			"If that was not you, nothing needs to be done: your password stays as it is.")
	})
}

// postReset writes the letter by which a user sets a password.
func (s *Service) postReset(ctx context.Context, tx *db.Tx, u *User, why, otherwise string) error {
	token, err := s.addTicket(ctx, tx, u.ID, setPasswordTicket)
	if err != nil {
		return err
	}
	return s.Mail.Post(ctx, tx, mail.Email{
		To: u.Email, Name: u.Name, Subject: "Set your password", Lines: []string{why},
		Action: "Set a new password", Path: "/users/password/edit?reset_password_token=" + url.QueryEscape(token),
		After: []string{"The link works once, for six hours.", otherwise},
	})
}

// postUnlock writes the letter by which a user unlocks his account.
func (s *Service) postUnlock(ctx context.Context, tx *db.Tx, u *User) error {
	token, err := s.addTicket(ctx, tx, u.ID, unlockTicket)
	if err != nil {
		return err
	}
	return s.Mail.Post(ctx, tx, mail.Email{
		To: u.Email, Name: u.Name, Subject: "Your account is locked",
		Lines:  []string{"Your account " + u.Username + " was locked after too many failed sign-ins. It opens by itself after a while, or at once by this link."},
		Action: "Unlock my account", Path: "/users/unlock?unlock_token=" + url.QueryEscape(token),
		After: []string{"If it was not you who tried to sign in, consider a longer password and two-factor authentication."},
	})
}

// postConfirmation writes the letter by which an address is confirmed.
func (s *Service) postConfirmation(ctx context.Context, tx *db.Tx, name, address, token string) error {
	return s.Mail.Post(ctx, tx, mail.Email{
		To: address, Name: name, Subject: "Confirm your email address",
		Lines:  []string{"This address was given for an account. Please confirm that it is yours."},
		Action: "Confirm the address", Path: "/users/confirmation?confirmation_token=" + url.QueryEscape(token),
		After: []string{"If you know nothing of it, leave this letter unanswered."},
	})
}

// confirmAgain gives an address that waits a new token and sends it.
func (s *Service) confirmAgain(ctx context.Context, address string) error {
	token := secret.Token("")
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		userID, stored, confirmed, err := findAddress(ctx, tx, address)
		if err != nil {
			return notFound(err, "Email")
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

// TakeReset sets the password of the account that a reset letter was sent to.
// Whoever has its token may; it works once. All sessions end, the account is
// unlocked, and the address that the letter reached counts as confirmed.
// Invalid when the token is not good any more, or the password is refused.
func (s *Service) TakeReset(ctx context.Context, token, password, ip string) (*User, error) {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, err
	}
	// The token first: a hash is dear, and strangers may send anything.
	id, err := s.ticketOwner(ctx, s.DB, setPasswordTicket, token)
	if err != nil {
		return nil, err
	}
	wrong := map[string][]string{}
	checkPassword(wrong, password, settings.MinimumPasswordLength)
	if err := invalid(wrong); err != nil {
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
		return s.confirmPrimary(ctx, tx, by, u)
	})
}

// confirmPrimary notes that the user reads the letters to his address.
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

// TakeUnlock unlocks the account that an unlock letter was sent to. Whoever
// has its token may, once. Invalid when it is not good any more.
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

// CheckReset tells whether the token of a reset letter is still good: Invalid
// when it is not.
func (s *Service) CheckReset(ctx context.Context, token string) error {
	_, err := s.ticketOwner(ctx, s.DB, setPasswordTicket, token)
	return err
}

func errOldTicket() error {
	return errs.Invalid("The link was used before, or is too old. Please ask for a new one.")
}
