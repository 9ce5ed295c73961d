package user

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
)

// Change are changes to an account by an administrator. A nil field keeps the
// current value.
type Change struct {
	Email    *string // one of the user's secondary addresses
	Name     *string
	Username *string
	Password *string

	SkipReconfirmation bool
	Fields
}

// Update changes an account. Requires an administrator. NotFound, also if the
// email or username is taken, as the specification requires.
func (s *Service) Update(ctx context.Context, by actor.Actor, id int64, c Change) (*User, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	if err := s.checkChange(ctx, c); err != nil {
		return nil, err
	}
	if err := c.Avatar.Check(); err != nil {
		return nil, err
	}
	hash := ""
	if c.Password != nil {
		var err error
		if hash, err = s.Hasher.Hash(ctx, *c.Password); err != nil {
			return nil, fmt.Errorf("update user %d: %w", id, err)
		}
	}
	_, err := s.change(ctx, id, func(tx *db.Tx, u *User) error {
		was := *u
		patch.Set(&u.Name, c.Name)
		patch.Set(&u.Username, c.Username)
		if c.Email != nil {
			if err := s.setPrimary(ctx, tx, u, *c.Email, c.SkipReconfirmation); err != nil {
				return err
			}
			if err := s.postEmailChanged(ctx, tx, &was, u); err != nil {
				return err
			}
		}
		if hash != "" {
			if err := s.setPassword(ctx, tx, by, u, hash); err != nil {
				return err
			}
		}
		if err := s.apply(ctx, tx, u, c.Fields); err != nil {
			return err
		}
		return s.recordChanges(ctx, tx, by, &was, u)
	})
	if errs.Is(err, errs.KindConflict) {
		return nil, errs.NotFound("User").Because(err)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case c.Avatar != nil:
		err = s.storeAvatar(ctx, by, id, c.Avatar)
	case c.RemoveAvatar:
		err = s.replaceAvatar(ctx, by, id, "")
	}
	if err != nil {
		return nil, err
	}
	return s.profile(ctx, by, id)
}

func (s *Service) checkChange(ctx context.Context, c Change) error {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return err
	}
	wrong := errs.Fields{}
	if c.Username != nil {
		checkUsername(wrong, *c.Username)
	}
	if c.Name != nil {
		checkName(wrong, *c.Name)
	}
	if c.Password != nil {
		checkPassword(wrong, *c.Password, settings.MinimumPasswordLength)
	}
	return wrong.Err()
}

// setPrimary makes a secondary address of the user the primary one.
func (s *Service) setPrimary(ctx context.Context, tx *db.Tx, u *User, address string, skipReconfirmation bool) error {
	owner, stored, confirmed, err := findAddress(ctx, tx, address)
	if err != nil || owner != u.ID {
		if err := db.NotFound(err, "User"); err != nil {
			return err
		}
		return errs.NotFound("User")
	}
	if confirmed == nil && skipReconfirmation {
		now := s.Now()
		confirmed = &now
		if err := confirmAddress(ctx, tx, address, now); err != nil {
			return err
		}
	}
	return setAddress(ctx, tx, u, stored, confirmed)
}

// setAddress sets the primary address of a user. Links to set a password that were sent
// to the former one become invalid.
func setAddress(ctx context.Context, tx *db.Tx, u *User, address string, confirmedAt *time.Time) error {
	u.Email, u.ConfirmedAt = address, confirmedAt
	return dropTickets(ctx, tx, u.ID, setPasswordTicket)
}

// setPassword sets a password that was chosen by an administrator. The user must
// change it at their next sign-in. Their sessions end, and links to set a password
// become invalid.
func (s *Service) setPassword(ctx context.Context, tx *db.Tx, by actor.Actor, u *User, hash string) error {
	if err := savePassword(ctx, tx, u.ID, hash); err != nil {
		return err
	}
	u.MustChangePassword = !by.Is(u.ID)
	if err := s.revokeSessions(ctx, tx, u.ID, 0); err != nil {
		return err
	}
	if err := dropTickets(ctx, tx, u.ID, setPasswordTicket); err != nil {
		return err
	}
	return s.record(ctx, tx, by, u, "user_password_updated", audit.Details{Change: "password"})
}

// recordChanges adds an audit event for each important attribute that changed.
func (s *Service) recordChanges(ctx context.Context, tx *db.Tx, by actor.Actor, was, now *User) error {
	for _, c := range []struct{ kind, what, from, to string }{
		{"user_username_updated", "username", was.Username, now.Username},
		{"user_name_updated", "name", was.Name, now.Name},
		{"user_email_updated", "email address", was.Email, now.Email},
		{"user_admin_status_updated", "admin status", strconv.FormatBool(was.Admin), strconv.FormatBool(now.Admin)},
		{"user_auditor_status_updated", "auditor status", strconv.FormatBool(was.Auditor), strconv.FormatBool(now.Auditor)},
		{"user_external_status_updated", "external status", strconv.FormatBool(was.External), strconv.FormatBool(now.External)},
		{"user_projects_limit_updated", "projects limit", strconv.FormatInt(was.ProjectsLimit, 10), strconv.FormatInt(now.ProjectsLimit, 10)},
		{"user_can_create_group_updated", "can create group", strconv.FormatBool(was.CanCreateGroup), strconv.FormatBool(now.CanCreateGroup)},
		{"user_note_updated", "note", was.Note, now.Note},
	} {
		if c.from == c.to {
			continue
		}
		if err := s.record(ctx, tx, by, now, c.kind, audit.Details{Change: c.what, From: c.from, To: c.to}); err != nil {
			return err
		}
	}
	return nil
}

// ResetPassword sets a password. Only the system may call it, for `svc admin`.
func (s *Service) ResetPassword(ctx context.Context, by actor.Actor, ref Ref, password string) (*User, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	u, err := findByRef(ctx, s.DB, ref)
	if err != nil {
		return nil, err
	}
	return s.Update(ctx, by, u.ID, Change{Password: &password})
}
