package user

import (
	"context"
	"errors"
	"fmt"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/secret"
)

// Impersonate makes the session of an administrator act as another user, until
// StopImpersonating or the end of the session. Requires an administrator with a
// session. Forbidden if the settings do not allow it, for oneself, for bot users
// and for accounts that may not be used; NotFound.
func (s *Service) Impersonate(ctx context.Context, by actor.Actor, session *Session, userID int64) (*User, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case !settings.ImpersonationEnabled:
		return nil, errs.Forbidden("Impersonation is disabled.")
	case by.Impersonator != nil, !by.Is(session.UserID):
		return nil, errs.Forbidden("You are already impersonating a user.")
	case by.Is(userID):
		return nil, errs.Forbidden("You cannot impersonate yourself.")
	}
	u, err := s.find(ctx, s.DB, by, userID)
	if err != nil {
		return nil, err
	}
	if u.Kind != Human {
		return nil, errs.Forbidden("Bot users cannot be impersonated.")
	}
	if err := u.State.refusal(); err != nil {
		return nil, errs.Forbidden("This account cannot be impersonated in its current state.").Because(err)
	}
	return u, s.setActing(ctx, by, session, u, &u.ID, "Started Impersonation")
}

// StopImpersonating ends the impersonation of a session and returns the
// impersonated user. Conflict if there is none.
func (s *Service) StopImpersonating(ctx context.Context, by actor.Actor, session *Session) (*User, error) {
	if by.Impersonator == nil || session.Impersonator == nil {
		return nil, errs.Conflict("You are not impersonating a user.")
	}
	return session.User, s.setActing(ctx, *by.Impersonator, session, session.User, nil, "Stopped Impersonation")
}

func (s *Service) setActing(ctx context.Context, by actor.Actor, session *Session, u *User, as *int64, message string) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := saveActingAs(ctx, tx, session.ID, as); err != nil {
			return db.NotFound(err, "Session")
		}
		if err := s.dropActor(ctx, tx, session.UserID); err != nil {
			return err
		}
		return s.record(ctx, tx, by, u, "user_impersonation", audit.Details{Message: message})
	})
	if err != nil {
		return fmt.Errorf("impersonate: %w", err)
	}
	return nil
}

// actAs turns the session of an administrator into that of the impersonated user.
// If impersonation is no longer allowed, it ends. The CSRF token differs from that
// of the administrator, so that a form loaded as one of the two cannot be
// submitted as the other.
func (s *Service) actAs(ctx context.Context, session *Session, ip string) (actor.Actor, error) {
	owner := session.User
	by := s.toActor(owner, ip)
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return by, err
	}
	if !owner.Admin || !settings.ImpersonationEnabled {
		return by, s.endActing(ctx, session)
	}
	u, err := s.find(ctx, s.DB, by, *session.actingAs)
	if errs.Is(err, errs.KindNotFound) || err == nil && u.State.refusal() != nil {
		return by, s.endActing(ctx, session)
	}
	if err != nil {
		return by, err
	}
	session.User, session.Impersonator = u, owner
	session.CSRF = secret.Digest(fmt.Sprintf("%s as %d", session.CSRF, u.ID))
	as := s.toActor(u, ip)
	as.Impersonator = &by
	return as, nil
}

// endActing ends the impersonation of a session permanently, so that it does not
// resume when it is allowed again.
func (s *Service) endActing(ctx context.Context, session *Session) error {
	session.actingAs = nil
	err := saveActingAs(ctx, s.DB, session.ID, nil)
	if err != nil && !errors.Is(err, db.ErrNoRows) { // the session may have been revoked
		return fmt.Errorf("end impersonation: %w", err)
	}
	return nil
}
