package user

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"strconv"
	"strings"
	"time"
	"unicode"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/limit"
	"svc/internal/secret"
)

// Email is a secondary email address of a user.
type Email struct {
	ID          int64
	UserID      int64
	Address     string
	ConfirmedAt *time.Time
	CreatedAt   time.Time

	// Token is the token for ConfirmEmail, which is sent to the address. It is only
	// set when the address is added; the database stores its digest.
	Token string
}

// NewEmail is an address to add.
type NewEmail struct {
	Address          string
	SkipConfirmation bool // treat it as confirmed
}

// OwnEmails lists the secondary addresses of the actor, oldest first.
func (s *Service) OwnEmails(ctx context.Context, by actor.Actor, p db.Paging) (db.Page[Email], error) {
	if err := by.RequireUser(); err != nil {
		return db.Page[Email]{}, err
	}
	return listEmails(ctx, s.DB, by.ID, p)
}

// OwnEmail returns a secondary address of the actor. NotFound.
func (s *Service) OwnEmail(ctx context.Context, by actor.Actor, id int64) (*Email, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	return findEmail(ctx, s.DB, by.ID, id)
}

// AddOwnEmail adds a secondary address to the actor's account. It must be
// confirmed with ConfirmEmail. Invalid, also if the address is taken; Forbidden
// for bot users; limit.Refused after too many confirmation emails.
func (s *Service) AddOwnEmail(ctx context.Context, by actor.Actor, address string) (*Email, error) {
	if err := by.RequireHuman("add email addresses"); err != nil {
		return nil, err
	}
	if !validEmail(address) {
		return nil, errs.InvalidField("email", "is invalid")
	}
	if err := s.mayConfirm(ctx, by, address); err != nil {
		return nil, err
	}
	return s.addEmail(ctx, by, by.ID, NewEmail{Address: address})
}

// mayConfirm counts a confirmation email. It returns limit.Refused if the actor has
// requested too many, for one address or for all: an address can be deleted and added
// again.
func (s *Service) mayConfirm(ctx context.Context, by actor.Actor, address string) error {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return err
	}
	id := strconv.FormatInt(by.ID, 10)
	for _, r := range []guessRate{
		{id + " " + strings.ToLower(address), limit.Rate{Name: "confirmation_emails", Requests: settings.SignInsPerMinute, Period: time.Minute}},
		{id, limit.Rate{Name: "user_confirmation_emails", Requests: settings.FailedPasswordsPerMinute, Period: time.Minute}},
	} {
		if d := s.limits.Allow(r.key, r.rate); !d.OK {
			return limit.Refused{Decision: d}
		}
	}
	return nil
}

// DeleteOwnEmail deletes a secondary address of the actor; see DeleteEmail.
func (s *Service) DeleteOwnEmail(ctx context.Context, by actor.Actor, id int64) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	return s.deleteEmail(ctx, by, by.ID, id)
}

// Emails lists the secondary addresses of a user, oldest first. Requires an
// administrator. NotFound.
func (s *Service) Emails(ctx context.Context, by actor.Actor, userID int64, p db.Paging) (db.Page[Email], error) {
	if err := by.RequireAdmin(); err != nil {
		return db.Page[Email]{}, err
	}
	if _, err := findUser(ctx, s.DB, userID); err != nil {
		return db.Page[Email]{}, err
	}
	return listEmails(ctx, s.DB, userID, p)
}

// AddEmail adds a secondary address to a user. Requires an administrator.
// NotFound; Invalid, also if the address is taken.
func (s *Service) AddEmail(ctx context.Context, by actor.Actor, userID int64, n NewEmail) (*Email, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	return s.addEmail(ctx, by, userID, n)
}

// DeleteEmail deletes a secondary address of a user, also from the profile.
// Requires an administrator. NotFound, also for the primary address.
func (s *Service) DeleteEmail(ctx context.Context, by actor.Actor, userID, id int64) error {
	if err := by.RequireAdmin(); err != nil {
		return err
	}
	return s.deleteEmail(ctx, by, userID, id)
}

const (
	// maxEmails is the maximum number of addresses of a user, unless an administrator
	// adds them: each gets an email.
	maxEmails = 20
	// reservedFor is how long no other user can use a secondary address that is not
	// confirmed.
	reservedFor = 3 * 24 * time.Hour
)

func (s *Service) addEmail(ctx context.Context, by actor.Actor, userID int64, n NewEmail) (*Email, error) {
	if !validEmail(n.Address) {
		return nil, errs.InvalidField("email", "is invalid")
	}
	e := &Email{UserID: userID, Address: n.Address, CreatedAt: s.Now()}
	digest := ""
	if n.SkipConfirmation {
		e.ConfirmedAt = &e.CreatedAt
	} else {
		e.Token = secret.Token("")
		digest = secret.Digest(e.Token)
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "users", userID); err != nil {
			return err
		}
		u, err := findUser(ctx, tx, userID)
		if err != nil {
			return err
		}
		if n, err := countEmails(ctx, tx, userID); err != nil {
			return err
		} else if n >= maxEmails && !by.Admin {
			return errs.InvalidField("email", "cannot be added: you have %d addresses already", n)
		}
		if err := freeAddress(ctx, tx, e.Address, s.Now().Add(-reservedFor)); err != nil {
			return err
		}
		e.ID, err = insertEmail(ctx, tx, userID, e.Address, e.ConfirmedAt, digest, e.CreatedAt)
		if db.IsUnique(err, "emails_email") {
			return errs.InvalidField("email", "has already been taken").Because(err)
		}
		if err != nil {
			return err
		}
		if e.Token != "" {
			if err := s.postConfirmation(ctx, tx, u.Name, e.Address, e.Token); err != nil {
				return err
			}
		}
		return s.recordOf(ctx, tx, by, u, "email_created", e.target(), audit.Details{Add: "email", Message: "Email created"})
	})
	if err != nil {
		return nil, fmt.Errorf("add email of user %d: %w", userID, err)
	}
	return e, nil
}

func (s *Service) deleteEmail(ctx context.Context, by actor.Actor, userID, id int64) error {
	_, err := s.change(ctx, userID, func(tx *db.Tx, u *User) error {
		e, err := findEmail(ctx, tx, userID, id)
		if err != nil {
			return err
		}
		if err := deleteEmail(ctx, tx, id); err != nil {
			return err
		}
		if strings.EqualFold(u.PublicEmail, e.Address) {
			u.PublicEmail = ""
		}
		if strings.EqualFold(u.CommitEmail, e.Address) {
			u.CommitEmail = ""
		}
		return s.recordOf(ctx, tx, by, u, "email_destroyed", e.target(), audit.Details{Remove: "email", Message: "Email destroyed"})
	})
	return err
}

// HasConfirmed reports whether a user has confirmed an address.
func (s *Service) HasConfirmed(ctx context.Context, userID int64, address string) (bool, error) {
	return hasConfirmed(ctx, s.DB, userID, address)
}

// ByPublicEmail returns the user with this public email. No permissions are
// required. NotFound.
func (s *Service) ByPublicEmail(ctx context.Context, by actor.Actor, address string) (*User, error) {
	u, err := findByPublicEmail(ctx, s.DB, address)
	if err != nil {
		return nil, err
	}
	if !visible(by, u) {
		return nil, errs.NotFound("User")
	}
	return u, nil
}

// ConfirmEmail confirms the address that a token was sent to. The token is the
// permission. Invalid if it is unknown or was used before.
func (s *Service) ConfirmEmail(ctx context.Context, token string) (*User, error) {
	e, err := findUnconfirmed(ctx, s.DB, secret.Digest(token))
	if errors.Is(err, db.ErrNoRows) {
		return nil, errs.Invalid("Confirmation token is invalid")
	}
	if err != nil {
		return nil, fmt.Errorf("confirm email: %w", err)
	}
	return s.change(ctx, e.UserID, func(tx *db.Tx, u *User) error {
		now := s.Now()
		err := confirmEmail(ctx, tx, e.ID, secret.Digest(token), now)
		if errors.Is(err, db.ErrNoRows) {
			return errs.Invalid("Confirmation token is invalid")
		}
		if err != nil {
			return err
		}
		if strings.EqualFold(u.Email, e.Address) {
			u.ConfirmedAt = &now
		}
		return s.recordOf(ctx, tx, s.toActor(u, ""), u, "email_confirmed", e.target(), audit.Details{Message: "Email confirmed"})
	})
}

func (e *Email) target() audit.Target {
	return audit.Target{Type: "Email", ID: e.ID, Details: e.Address}
}

// recordOf adds an audit event about an object that belongs to a user.
func (s *Service) recordOf(ctx context.Context, tx *db.Tx, by actor.Actor, u *User, kind string, of audit.Target, d audit.Details) error {
	if err := audit.Record(ctx, tx, by, s.Now(), audit.Event{Type: kind, Entity: u.entity(), Target: of, Details: d}); err != nil {
		return err
	}
	return s.Events.Recorded.Publish(ctx, tx, Recorded{User: u, Kind: kind, Target: of, Detail: d})
}

// maxEmail is the maximum length of an email address.
const maxEmail = 254

// validEmail reports whether a string is an address without display name or
// comment. A host without a dot is allowed, because instances may be in a private
// network.
func validEmail(address string) bool {
	if len(address) > maxEmail || strings.ContainsFunc(address, unicode.IsControl) {
		return false
	}
	a, err := mail.ParseAddress(address)
	return err == nil && a.Name == "" && a.Address == address
}
