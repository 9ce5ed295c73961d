package project

import (
	"context"
	"errors"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/user"
)

// Member is a member of a project or group.
type Member struct {
	ID          int64
	UserID      int64
	Level       Level
	ExpiresAt   string // YYYY-MM-DD; empty for never
	CreatedBy   *int64
	CreatedAt   time.Time
	RequestedAt *time.Time // set for an access request

	User    *user.User
	Creator *user.User // nil if deleted
}

// Place identifies a project or group.
type Place struct {
	Ref   Ref
	Group bool
}

// source is the project or group that members belong to.
type source struct {
	group   *Namespace
	project *Project
	have    Level // level of the actor
}

// ids returns the values of the columns namespace_id and project_id of members and
// shares. One of them is NULL.
func (in source) ids() (namespaceID, projectID *int64) {
	if in.group != nil {
		return &in.group.ID, nil
	}
	return nil, &in.project.ID
}

// tree returns the namespace whose ancestors members are inherited from, and the
// project ID or 0.
func (in source) tree() (namespaceID, projectID int64) {
	if in.group != nil {
		return in.group.ID, 0
	}
	return in.project.NamespaceID, in.project.ID
}

func (in source) entity() audit.Entity {
	if in.group != nil {
		return in.group.Entity()
	}
	return in.project.Entity()
}

func (s *Service) source(ctx context.Context, q db.Q, by actor.Actor, p Place, level Level) (source, error) {
	if p.Group {
		n, have, err := s.requireGroup(ctx, q, by, p.Ref, level)
		return source{group: n, have: have}, err
	}
	found, err := s.require(ctx, q, by, p.Ref, level)
	if err != nil {
		return source{}, err
	}
	return source{project: found, have: found.Access.Level()}, nil
}

// NewMember is a member to add.
type NewMember struct {
	UserID    int64
	Level     Level
	ExpiresAt string
}

// AddMember adds a member. Requires Maintainer of a project or Owner of a group,
// and at least the granted level. An access request of the user is approved by it.
// Conflict if the user is a member already; NotFound; Forbidden, also if the group
// locks the membership of its projects.
func (s *Service) AddMember(ctx context.Context, by actor.Actor, place Place, n NewMember) (*Member, error) {
	in, err := s.keep(ctx, s.DB, by, place)
	if err != nil {
		return nil, err
	}
	if err := in.mayGive(by, n.Level); err != nil {
		return nil, err
	}
	if err := s.checkMember(in, n.Level, n.ExpiresAt); err != nil {
		return nil, err
	}
	u, err := s.Users.Find(ctx, by, user.Ref(fmt.Sprint(n.UserID)))
	if err != nil {
		return nil, err
	}
	if u.Kind == user.ProjectBot || u.Kind == user.GroupBot {
		return nil, errs.InvalidField("user", "is a bot of a group or project, and works nowhere else")
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := s.atLeastInherited(ctx, tx, in, u.ID, n.Level); err != nil {
			return err
		}
		if err := s.clearExpired(ctx, tx, in, u.ID); err != nil {
			return err
		}
		if err := s.settleRequest(ctx, tx, in, u.ID); err != nil && !errs.Is(err, errs.KindNotFound) {
			return err
		}
		m := &Member{UserID: u.ID, Level: n.Level, ExpiresAt: n.ExpiresAt, CreatedAt: s.Now()}
		if by.ID > 0 {
			m.CreatedBy = &by.ID
		}
		if err := insertMember(ctx, tx, in, m); err != nil {
			return err
		}
		if err := s.publishMember(ctx, tx, MemberJoined, in, u.ID); err != nil {
			return err
		}
		return s.recordMember(ctx, tx, by, in, u, "member_created", audit.Details{Add: "user_access", To: n.Level.String()})
	})
	if err != nil {
		return nil, fmt.Errorf("add member: %w", err)
	}
	return s.findMember(ctx, in, u.ID)
}

// keep returns the source if the actor may change its members.
func (s *Service) keep(ctx context.Context, q db.Q, by actor.Actor, place Place) (source, error) {
	in, err := s.source(ctx, q, by, place, place.managerLevel())
	if err != nil {
		return in, err
	}
	return in, s.membersLocked(ctx, q, by, in)
}

// membersLocked returns Forbidden if the group of a project locks its membership,
// except for administrators.
func (s *Service) membersLocked(ctx context.Context, q db.Q, by actor.Actor, in source) error {
	if in.project == nil || by.Admin || in.project.Namespace.Kind != GroupNamespace {
		return nil
	}
	n, err := findNamespace(ctx, q, in.project.NamespaceID)
	if err != nil {
		return err
	}
	if n.Settings.MembershipLock {
		return errs.Forbidden("")
	}
	return nil
}

// mayGive returns Forbidden if the level is higher than that of the actor.
func (in source) mayGive(by actor.Actor, level Level) error {
	if by.Admin || level <= in.have {
		return nil
	}
	return errs.Forbidden("")
}

// CheckMember returns Invalid if the project or group cannot have members with the
// level, or if the expiration date, which may be empty, is malformed or in the past.
func (s *Service) CheckMember(at Setup, level Level, expiresAt string) error {
	return s.checkMember(at.in, level, expiresAt)
}

func (s *Service) checkMember(in source, level Level, expiresAt string) error {
	wrong := errs.Fields{}
	if !level.Valid() || level == Minimal && (in.group == nil || in.group.ParentID != nil) {
		wrong.Set("access_level", "is not included in the list")
	}
	if _, err := time.Parse(time.DateOnly, expiresAt); err != nil && expiresAt != "" {
		wrong.Set("expires_at", "is invalid")
	} else if expiresAt != "" && expiresAt < s.today() {
		wrong.Set("expires_at", "cannot be a date in the past")
	}
	return wrong.Err()
}

// atLeastInherited returns an error if the level is lower than the inherited one.
func (s *Service) atLeastInherited(ctx context.Context, q db.Q, in source, userID int64, level Level) error {
	have, name, err := inheritedLevel(ctx, q, in, userID, s.today())
	if errors.Is(err, db.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if level < have {
		return errs.InvalidField("access_level", "should be greater than or equal to %s inherited membership from group %s", have, name)
	}
	return nil
}

// addOwner adds the creator of a group, or the owner of the namespace of a
// project, as the first member.
func (s *Service) addOwner(ctx context.Context, tx *db.Tx, by actor.Actor, in source) error {
	return insertMember(ctx, tx, in, &Member{UserID: by.ID, Level: Owner, CreatedBy: &by.ID, CreatedAt: s.Now()})
}

// MemberChange are changes to a member. A nil field keeps the current value.
type MemberChange struct {
	Level     *Level
	ExpiresAt *string // empty removes the date
}

// UpdateMember changes a direct member. Requires Maintainer of a project or Owner
// of a group, and at least the old and new levels. Forbidden for the last Owner of
// a group and the owner of the namespace of a project.
func (s *Service) UpdateMember(ctx context.Context, by actor.Actor, place Place, userID int64, c MemberChange) (*Member, error) {
	in, err := s.keep(ctx, s.DB, by, place)
	if err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		m, err := lockMember(ctx, tx, in, userID, false)
		if err != nil {
			return err
		}
		was := *m
		patch.Set(&m.Level, c.Level)
		patch.Set(&m.ExpiresAt, c.ExpiresAt)
		if err := in.mayGive(by, max(was.Level, m.Level)); err != nil {
			return err
		}
		if err := s.checkMember(in, m.Level, m.ExpiresAt); err != nil {
			return err
		}
		if was.Level == Owner && (m.Level < Owner || m.ExpiresAt != "") {
			if err := s.keepsOwner(ctx, tx, in, userID); err != nil {
				return err
			}
		}
		if err := s.atLeastInherited(ctx, tx, in, userID, m.Level); err != nil {
			return err
		}
		if err := saveMember(ctx, tx, m); err != nil {
			return err
		}
		u, err := s.userOf(ctx, tx, userID)
		if err != nil {
			return err
		}
		return s.recordMember(ctx, tx, by, in, u, "member_updated", audit.Details{Change: "access_level", From: was.Level.String(), To: m.Level.String()})
	})
	if err != nil {
		return nil, fmt.Errorf("update member %d: %w", userID, err)
	}
	return s.findMember(ctx, in, userID)
}

// RemoveMember removes a direct member, for a group also from its subgroups and
// projects unless onlyThere is set. Requires Maintainer of a project or Owner of a
// group; members may remove themselves. Forbidden for the last Owner.
func (s *Service) RemoveMember(ctx context.Context, by actor.Actor, place Place, userID int64, onlyThere bool) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	in, err := s.source(ctx, s.DB, by, place, NoAccess)
	if err != nil {
		return err
	}
	if !by.Is(userID) {
		if in, err = s.keep(ctx, s.DB, by, place); err != nil {
			return err
		}
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		m, err := lockMember(ctx, tx, in, userID, false)
		if err != nil {
			return err
		}
		if err := in.mayGive(by, m.Level); err != nil && !by.Is(userID) {
			return err
		}
		if m.Level == Owner {
			if err := s.keepsOwner(ctx, tx, in, userID); err != nil {
				return err
			}
		}
		if err := deleteMember(ctx, tx, in, m, onlyThere); err != nil {
			return err
		}
		if err := s.publishMember(ctx, tx, MemberLeft, in, userID); err != nil {
			return err
		}
		u, err := s.userOf(ctx, tx, userID)
		if err != nil {
			return err
		}
		return s.recordMember(ctx, tx, by, in, u, "member_destroyed", audit.Details{Remove: "user_access", From: m.Level.String()})
	})
	if err != nil {
		return fmt.Errorf("remove member %d: %w", userID, err)
	}
	return nil
}

// keepsOwner returns an error if a group would be left without an Owner, or a
// project without the owner of its namespace.
func (s *Service) keepsOwner(ctx context.Context, tx *db.Tx, in source, userID int64) error {
	if in.project != nil {
		if owner := in.project.Namespace.UserID; owner != nil && *owner == userID {
			return errs.Forbidden("")
		}
		return nil
	}
	if err := tx.Lock(ctx, "namespaces", in.group.ID); err != nil {
		return err
	}
	other, err := hasOtherOwner(ctx, tx, in.group.ID, userID, s.today())
	if err != nil {
		return err
	}
	if !other {
		return errs.Forbidden("A group must have an owner.")
	}
	return nil
}

func (s *Service) recordMember(ctx context.Context, tx *db.Tx, by actor.Actor, in source, u *user.User, kind string, d audit.Details) error {
	return s.record(ctx, tx, by, kind, in.entity(), audit.Target{Type: "User", ID: u.ID, Details: u.Username}, d)
}

// CountNewMembers counts the direct members of a group who joined after a time, up
// to a limit. The caller has checked access.
func (s *Service) CountNewMembers(ctx context.Context, g *Namespace, since time.Time, limit int) (int64, error) {
	n, err := countNewMembers(ctx, s.DB, g.ID, since, limit)
	if err != nil {
		return 0, fmt.Errorf("count new members: %w", err)
	}
	return n, nil
}
