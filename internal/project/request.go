package project

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
)

// RequestAccess requests membership. Requires a signed-in user who can see the
// project or group and is not a member. Forbidden if requests are disabled;
// Conflict if there is a request already.
func (s *Service) RequestAccess(ctx context.Context, by actor.Actor, place Place) (*Member, error) {
	in, err := s.membersOf(ctx, by, place)
	if err != nil {
		return nil, err
	}
	if !in.wantsRequests() || in.have > NoAccess {
		return nil, errs.Forbidden("")
	}
	now := s.Now()
	m := &Member{UserID: by.ID, Level: Developer, CreatedAt: now, RequestedAt: &now}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := s.clearExpired(ctx, tx, in, by.ID); err != nil {
			return err
		}
		if err := insertMember(ctx, tx, in, m); err != nil {
			return err
		}
		return s.publishRequest(ctx, tx, in, by.ID, false)
	})
	if err != nil {
		return nil, fmt.Errorf("request access: %w", err)
	}
	return m, s.name(ctx, m)
}

// publishRequest publishes that a user has requested access, or that the request
// was decided or withdrawn.
func (s *Service) publishRequest(ctx context.Context, tx *db.Tx, in source, userID int64, settled bool) error {
	r := AccessRequest{UserID: userID, Settled: settled}
	if in.group != nil {
		r.GroupID = in.group.ID
	} else {
		r.ProjectID = in.project.ID
	}
	return s.Events.AccessRequested.Publish(ctx, tx, r)
}

// Managers returns the users who decide on access requests: Maintainers and Owners
// of a project, or Owners of a group. The caller has checked access.
func (s *Service) Managers(ctx context.Context, place Place) ([]int64, error) {
	return s.MembersFrom(ctx, place, place.managerLevel())
}

// wantsRequests reports whether access requests are enabled.
func (in source) wantsRequests() bool {
	if in.group != nil {
		return in.group.Settings.RequestAccessEnabled
	}
	return in.project.Settings.RequestAccessEnabled
}

// MembershipState is what a user can do about their own membership.
type MembershipState struct {
	MayAsk   bool // may request access
	Asked    bool // has requested access
	MayLeave bool
}

// MembershipState returns what the actor can do about their membership in a
// project or group. NotFound; Unauthorized if not signed in.
func (s *Service) MembershipState(ctx context.Context, by actor.Actor, place Place) (MembershipState, error) {
	in, err := s.membersOf(ctx, by, place)
	if err != nil {
		return MembershipState{}, err
	}
	member, asked, err := ownMembership(ctx, s.DB, in, by.ID, s.today())
	if err != nil {
		return MembershipState{}, fmt.Errorf("own membership: %w", err)
	}
	mine := in.project != nil && in.project.Namespace.UserID != nil && by.Is(*in.project.Namespace.UserID)
	return MembershipState{
		MayAsk: in.have == NoAccess && !asked && !member && in.wantsRequests(),
		Asked:  asked, MayLeave: member && !mine,
	}, nil
}

// Requests lists the access requests. Requires Maintainer of a project or Owner of
// a group.
func (s *Service) Requests(ctx context.Context, by actor.Actor, place Place, p db.Paging) (db.Page[*Member], error) {
	in, err := s.source(ctx, s.DB, by, place, place.managerLevel())
	if err != nil {
		return db.Page[*Member]{}, err
	}
	page, err := listRequests(ctx, s.DB, in, p)
	if err != nil {
		return page, fmt.Errorf("list requests: %w", err)
	}
	return page, s.name(ctx, page.Items...)
}

// managerLevel returns the level required to manage members.
func (p Place) managerLevel() Level {
	if p.Group {
		return Owner
	}
	return Maintainer
}

// Approve approves an access request, with a level up to that of the actor.
// Requires Maintainer of a project or Owner of a group. NotFound.
func (s *Service) Approve(ctx context.Context, by actor.Actor, place Place, userID int64, level Level) (*Member, error) {
	in, err := s.keep(ctx, s.DB, by, place)
	if err != nil {
		return nil, err
	}
	if err := in.mayGive(by, level); err != nil {
		return nil, err
	}
	if err := s.checkMember(in, level, ""); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		m, err := lockMember(ctx, tx, in, userID, true)
		if err != nil {
			return err
		}
		m.Level, m.RequestedAt = level, nil
		if by.ID > 0 {
			m.CreatedBy = &by.ID
		}
		if err := saveMember(ctx, tx, m); err != nil {
			return err
		}
		if err := s.publishMember(ctx, tx, MemberJoined, in, userID); err != nil {
			return err
		}
		if err := s.publishRequest(ctx, tx, in, userID, true); err != nil {
			return err
		}
		u, err := s.userOf(ctx, tx, userID)
		if err != nil {
			return err
		}
		return s.recordMember(ctx, tx, by, in, u, "member_created", audit.Details{Add: "user_access", To: level.String()})
	})
	if err != nil {
		return nil, fmt.Errorf("approve request of %d: %w", userID, err)
	}
	return s.findMember(ctx, in, userID)
}

// Deny denies or withdraws an access request. Requires Maintainer of a project,
// Owner of a group, or the user who made the request. NotFound.
func (s *Service) Deny(ctx context.Context, by actor.Actor, place Place, userID int64) error {
	level := place.managerLevel()
	if by.Is(userID) {
		level = NoAccess
	}
	in, err := s.source(ctx, s.DB, by, place, level)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		return s.settleRequest(ctx, tx, in, userID)
	})
	if err != nil {
		return fmt.Errorf("deny request of %d: %w", userID, err)
	}
	return nil
}

// settleRequest deletes an access request. NotFound.
func (s *Service) settleRequest(ctx context.Context, tx *db.Tx, in source, userID int64) error {
	m, err := lockMember(ctx, tx, in, userID, true)
	if err != nil {
		return err
	}
	if err := deleteMember(ctx, tx, in, m, true); err != nil {
		return err
	}
	return s.publishRequest(ctx, tx, in, userID, true)
}
