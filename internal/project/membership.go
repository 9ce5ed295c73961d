package project

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/user"
)

// Membership is a direct membership of a user in a project or group.
type Membership struct {
	ID      int64
	Source  int64
	Name    string
	Project bool // otherwise a group
	Level   Level
}

// Memberships lists the direct memberships of a user, optionally only of kind
// "Project" or "Namespace". Requires an administrator. NotFound.
func (s *Service) Memberships(ctx context.Context, by actor.Actor, userID int64, kind string, p db.Paging) (db.Page[Membership], error) {
	if err := by.RequireAdmin(); err != nil {
		return db.Page[Membership]{}, err
	}
	if _, err := s.Users.Find(ctx, by, user.Ref(fmt.Sprint(userID))); err != nil {
		return db.Page[Membership]{}, err
	}
	page, err := listMemberships(ctx, s.DB, userID, kind, s.today(), p)
	if err != nil {
		return page, fmt.Errorf("list memberships: %w", err)
	}
	return page, nil
}

// AuditEvents lists the audit events of a project or group, newest first: all for
// Owners of a group and Maintainers of a project, and their own for Developers.
// Forbidden.
func (s *Service) AuditEvents(ctx context.Context, by actor.Actor, place Place, f audit.Filter, p db.Paging) (db.Page[audit.Event], error) {
	in, err := s.source(ctx, s.DB, by, place, Developer)
	if err != nil {
		return db.Page[audit.Event]{}, err
	}
	return s.Audit.Of(ctx, in.entity(), in.author(by, place), f, p)
}

// author returns the actor if they may only see their own events, otherwise 0.
func (in source) author(by actor.Actor, place Place) int64 {
	if by.Admin || in.have >= place.managerLevel() {
		return 0
	}
	return by.ID
}

// AuditEvent returns an audit event of a project or group. Requires Maintainer of
// a project or Owner of a group. NotFound.
func (s *Service) AuditEvent(ctx context.Context, by actor.Actor, place Place, id int64) (audit.Event, error) {
	in, err := s.source(ctx, s.DB, by, place, place.managerLevel())
	if err != nil {
		return audit.Event{}, err
	}
	return s.Audit.OneOf(ctx, in.entity(), id)
}
