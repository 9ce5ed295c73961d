package user

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
)

// SelfChange are changes of a user to their own profile. A nil field keeps the
// current value.
type SelfChange struct {
	Name *string

	Bio, Location, PublicEmail, CommitEmail *string
	LinkedIn, Twitter, Discord, WebsiteURL  *string
	Organization, JobTitle, Pronouns        *string
	PrivateProfile                          *bool
}

// UpdateSelf changes the profile of the actor. Invalid.
func (s *Service) UpdateSelf(ctx context.Context, by actor.Actor, c SelfChange) (*User, error) {
	if err := by.RequireHuman("change their profile"); err != nil {
		return nil, err
	}
	wrong := errs.Fields{}
	if c.Name != nil {
		checkName(wrong, *c.Name)
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	return s.change(ctx, by.ID, func(tx *db.Tx, u *User) error {
		was := *u
		patch.Set(&u.Name, c.Name)
		err := s.apply(ctx, tx, u, Fields{
			Bio: c.Bio, Location: c.Location, PublicEmail: c.PublicEmail, CommitEmail: c.CommitEmail,
			LinkedIn: c.LinkedIn, Twitter: c.Twitter, Discord: c.Discord, WebsiteURL: c.WebsiteURL,
			Organization: c.Organization, JobTitle: c.JobTitle, Pronouns: c.Pronouns, PrivateProfile: c.PrivateProfile,
		})
		if err != nil {
			return err
		}
		return s.recordChanges(ctx, tx, by, &was, u)
	})
}

// SetOwnPrimary makes a confirmed address of the actor the primary one, and notifies
// the former one. NotFound; Invalid if it is not confirmed.
func (s *Service) SetOwnPrimary(ctx context.Context, by actor.Actor, emailID int64) (*User, error) {
	if err := by.RequireHuman("change their email address"); err != nil {
		return nil, err
	}
	return s.change(ctx, by.ID, func(tx *db.Tx, u *User) error {
		e, err := findEmail(ctx, tx, u.ID, emailID)
		if err != nil {
			return err
		}
		if e.ConfirmedAt == nil {
			return errs.InvalidField("email", "must be confirmed first")
		}
		was := *u
		if err := setAddress(ctx, tx, u, e.Address, e.ConfirmedAt); err != nil {
			return err
		}
		if err := s.postEmailChanged(ctx, tx, &was, u); err != nil {
			return err
		}
		return s.recordChanges(ctx, tx, by, &was, u)
	})
}

// ChangePassword changes the password of the actor. It requires the current one.
// All other sessions of the actor end. Invalid if the current password is wrong,
// which counts like a failed sign-in, or the new one is not accepted.
func (s *Service) ChangePassword(ctx context.Context, by actor.Actor, present, password string, keepSession int64) error {
	if err := by.RequireHuman("change their password"); err != nil {
		return err
	}
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return err
	}
	wrong := errs.Fields{}
	checkPassword(wrong, password, settings.MinimumPasswordLength)
	if password != "" && password == present {
		wrong.Set("password", "must differ from the present one")
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	if err := s.checkOwn(ctx, by, present); err != nil {
		return err
	}
	hash, err := s.Hasher.Hash(ctx, password)
	if err != nil {
		return fmt.Errorf("change password: %w", err)
	}
	_, err = s.change(ctx, by.ID, func(tx *db.Tx, u *User) error {
		if err := savePassword(ctx, tx, u.ID, hash); err != nil {
			return err
		}
		u.MustChangePassword = false
		if err := s.revokeSessions(ctx, tx, u.ID, keepSession); err != nil {
			return err
		}
		if err := dropTickets(ctx, tx, u.ID, setPasswordTicket); err != nil {
			return err
		}
		return s.record(ctx, tx, by, u, "user_password_updated", audit.Details{Change: "password"})
	})
	return err
}

// checkOwn checks the password of the actor. Invalid.
func (s *Service) checkOwn(ctx context.Context, by actor.Actor, password string) error {
	_, err := s.checkLogin(ctx, by.Username, password, by.IP)
	if errs.Is(err, errs.KindUnauthorized) {
		return errs.InvalidField("current_password", "is wrong").Because(err)
	}
	return err
}

// Reauthenticate checks the password of the actor before a sensitive operation.
// Unauthorized; failures count as failed sign-ins, but a missing password does not:
// it is not a guess.
func (s *Service) Reauthenticate(ctx context.Context, by actor.Actor, password string) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	if password == "" {
		return errs.Unauthorized("")
	}
	_, err := s.checkLogin(ctx, by.Username, password, by.IP)
	return err
}

// RevokeOtherSessions ends all sessions of the actor except one.
func (s *Service) RevokeOtherSessions(ctx context.Context, by actor.Actor, keep int64) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error { return s.revokeSessions(ctx, tx, by.ID, keep) })
}

// adminScopes are the scopes that only administrators may request. They have no
// effect for others.
func adminScopes() []string { return []string{"sudo", "admin_mode"} }

// OwnScopes returns the scopes that tokens of the actor may have.
func OwnScopes(by actor.Actor) []string {
	if by.Admin {
		return Scopes()
	}
	return slices.DeleteFunc(Scopes(), func(scope string) bool { return slices.Contains(adminScopes(), scope) })
}

// CreatePersonalToken creates a token for the actor. It requires a session:
// Forbidden with a token. Invalid if the actor may not use a scope.
func (s *Service) CreatePersonalToken(ctx context.Context, by actor.Actor, n NewToken) (*Token, error) {
	if err := by.RequireSession(); err != nil {
		return nil, err
	}
	for _, scope := range n.Scopes {
		if !slices.Contains(OwnScopes(by), scope) {
			return nil, errs.InvalidField("scopes", "can only contain available scopes")
		}
	}
	return s.createToken(ctx, by, by.ID, Personal, n)
}

// RenewRecoveryCodes returns new recovery codes for the actor; the old ones become
// invalid. It requires the password. Invalid if the password is wrong or
// two-factor authentication is off.
func (s *Service) RenewRecoveryCodes(ctx context.Context, by actor.Actor, password string) ([]string, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	if err := s.checkOwn(ctx, by, password); err != nil {
		return nil, err
	}
	var codes []string
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		u, err := lockUser(ctx, tx, by.ID)
		if err != nil {
			return err
		}
		if !u.TwoFactorEnabled {
			return errs.Invalid("Two-factor authentication is not enabled for this user")
		}
		if codes, err = s.newCodes(ctx, tx, u.ID); err != nil {
			return err
		}
		return s.record(ctx, tx, by, u, "user_recovery_codes_generated", audit.Details{Message: "Generated new recovery codes"})
	})
	if err != nil {
		return nil, fmt.Errorf("renew recovery codes: %w", err)
	}
	return codes, nil
}

// RecoveryCodesLeft counts the actor's recovery codes that were not used.
func (s *Service) RecoveryCodesLeft(ctx context.Context, by actor.Actor) (int, error) {
	if err := by.RequireUser(); err != nil {
		return 0, err
	}
	return countRecoveryCodes(ctx, s.DB, by.ID)
}
