package user

import (
	"context"
	"slices"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
)

// next are the allowed transitions between states.
var next = map[State][]State{
	Active:          {Blocked, Banned, Deactivated},
	Blocked:         {Active},
	Banned:          {Active},
	Deactivated:     {Active, Blocked, Banned},
	PendingApproval: {Active, Blocked},
}

// dormantDays is how long a user must have been inactive before they can be
// deactivated.
const dormantDays = 90

// Block blocks a user. changed is false if they were blocked already. Requires an
// administrator. Forbidden for internal users and for oneself.
func (s *Service) Block(ctx context.Context, by actor.Actor, id int64) (changed bool, err error) {
	err = s.move(ctx, by, id, Blocked, "user_blocked", func(u *User) error {
		if u.Internal() {
			return errs.Forbidden("An internal user cannot be blocked")
		}
		if by.Is(u.ID) {
			return errs.Forbidden("You cannot block yourself")
		}
		changed = u.State != Blocked
		return nil
	})
	return changed && err == nil, err
}

// Unblock unblocks a user. Requires an administrator.
func (s *Service) Unblock(ctx context.Context, by actor.Actor, id int64) error {
	return s.move(ctx, by, id, Active, "user_unblocked", func(u *User) error {
		switch u.State {
		case Deactivated:
			return errs.Forbidden("Deactivated users cannot be unblocked by the API")
		case Banned:
			return errs.Forbidden("Banned users cannot be unblocked by the API")
		case PendingApproval:
			return errs.Forbidden("A user who waits for approval must be approved")
		}
		return nil
	})
}

// Deactivate deactivates a dormant user until they sign in again. Requires an
// administrator. Forbidden for internal, blocked and recently active users.
func (s *Service) Deactivate(ctx context.Context, by actor.Actor, id int64) error {
	since := s.Now().UTC().AddDate(0, 0, -dormantDays)
	return s.move(ctx, by, id, Deactivated, "user_deactivated", func(u *User) error {
		switch {
		case u.Internal():
			return errs.Forbidden("Internal users cannot be deactivated")
		case u.State == Blocked, u.State == Banned, u.State == PendingApproval:
			return errs.Forbidden("A blocked user cannot be deactivated by the API")
		case u.State == Active && u.LastActivityOn >= since.Format("2006-01-02"):
			return errs.Forbidden("The user you are trying to deactivate has been active in the past %d days and cannot be deactivated", dormantDays)
		}
		return nil
	})
}

// Activate activates a deactivated user. Requires an administrator.
func (s *Service) Activate(ctx context.Context, by actor.Actor, id int64) error {
	return s.move(ctx, by, id, Active, "user_activated", func(u *User) error {
		if u.State == Blocked || u.State == Banned || u.State == PendingApproval {
			return errs.Forbidden("A blocked user must be unblocked to be activated")
		}
		return nil
	})
}

// Ban blocks a user and hides them from others. Requires an administrator.
func (s *Service) Ban(ctx context.Context, by actor.Actor, id int64) error {
	return s.move(ctx, by, id, Banned, "user_banned", func(u *User) error {
		switch {
		case u.Internal() || by.Is(u.ID):
			return errs.Forbidden("You cannot ban %s users.", map[bool]string{true: "internal", false: "your own"}[u.Internal()])
		case u.State == Blocked || u.State == PendingApproval:
			return errs.Forbidden("You cannot ban %s users.", u.State)
		}
		return nil
	})
}

// Unban reverts a ban. Requires an administrator.
func (s *Service) Unban(ctx context.Context, by actor.Actor, id int64) error {
	return s.move(ctx, by, id, Active, "user_unbanned", func(u *User) error {
		if u.State != Banned {
			return errs.Forbidden("You cannot unban %s users.", u.State)
		}
		return nil
	})
}

// Approve approves a user who is pending approval. Requires an administrator.
// Conflict if they are not pending.
func (s *Service) Approve(ctx context.Context, by actor.Actor, id int64) error {
	return s.move(ctx, by, id, Active, "user_approved", func(u *User) error {
		switch u.State {
		case PendingApproval:
			return nil
		case Blocked:
			return errs.Forbidden("The user you are trying to approve is blocked")
		}
		return errs.Conflict("The user you are trying to approve is not pending approval")
	})
}

// Reject deletes a user who is pending approval. Requires an administrator.
// Conflict if they are not pending.
func (s *Service) Reject(ctx context.Context, by actor.Actor, id int64) error {
	if err := by.RequireAdmin(); err != nil {
		return err
	}
	u, err := s.find(ctx, s.DB, by, id)
	if err != nil {
		return err
	}
	if u.State != PendingApproval {
		return errs.Conflict("User does not have a pending request")
	}
	return s.delete(ctx, by, u, true, "user_rejected")
}

// Unlock unlocks an account that was locked after too many failed sign-ins.
// Requires an administrator. NotFound.
func (s *Service) Unlock(ctx context.Context, by actor.Actor, id int64) error {
	if err := by.RequireAdmin(); err != nil {
		return err
	}
	_, err := s.change(ctx, id, func(tx *db.Tx, u *User) error {
		if err := forgiveFailures(ctx, tx, u.ID); err != nil {
			return err
		}
		u.LockedUntil = nil
		return s.record(ctx, tx, by, u, "user_access_unlocked", audit.Details{Message: "User access unlocked"})
	})
	return err
}

// Confirm confirms the primary address of a user. Requires an administrator.
// NotFound.
func (s *Service) Confirm(ctx context.Context, by actor.Actor, id int64) error {
	if err := by.RequireAdmin(); err != nil {
		return err
	}
	_, err := s.change(ctx, id, func(tx *db.Tx, u *User) error { return s.confirmPrimary(ctx, tx, by, u) })
	return err
}

// move changes the state of an account if rule allows it. It is not an error if
// the account already has the state.
func (s *Service) move(ctx context.Context, by actor.Actor, id int64, to State, event string, rule func(*User) error) error {
	if err := by.RequireAdmin(); err != nil {
		return err
	}
	_, err := s.change(ctx, id, func(tx *db.Tx, u *User) error {
		if err := rule(u); err != nil {
			return err
		}
		if u.State == to {
			return nil
		}
		if !slices.Contains(next[u.State], to) {
			return errs.Forbidden("A user who is %s cannot become %s", u.State, to)
		}
		from := u.State
		u.State = to
		if to != Active {
			if err := s.revokeSessions(ctx, tx, u.ID, 0); err != nil {
				return err
			}
		}
		return s.record(ctx, tx, by, u, event, audit.Details{Change: "state", From: string(from), To: string(to)})
	})
	return err
}
