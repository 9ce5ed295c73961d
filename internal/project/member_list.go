package project

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
)

// MemberFilter selects members. Zero values match everything.
type MemberFilter struct {
	All   bool   // include inherited members and those of invited groups
	Query string // substring of name or username, or a full email address
	Users []int64
	Skip  []int64
}

// Members lists the members of a project or group that the signed-in actor can
// see. Members of invited groups are shown only to members. Unauthorized;
// NotFound.
func (s *Service) Members(ctx context.Context, by actor.Actor, place Place, f MemberFilter, p db.Paging) (db.Page[*Member], error) {
	in, err := s.membersOf(ctx, by, place)
	if err != nil {
		return db.Page[*Member]{}, err
	}
	page, err := listMembers(ctx, s.DB, s.membersWhere(by, in, f), p)
	if err != nil {
		return page, fmt.Errorf("list members: %w", err)
	}
	if f.All {
		if err := s.raise(ctx, by, in, page.Items); err != nil {
			return page, fmt.Errorf("list members: %w", err)
		}
	}
	return page, s.name(ctx, page.Items...)
}

// Member returns a direct member or, with all, any member. Permissions are those
// of Members. NotFound.
func (s *Service) Member(ctx context.Context, by actor.Actor, place Place, userID int64, all bool) (*Member, error) {
	page, err := s.Members(ctx, by, place, MemberFilter{All: all, Users: []int64{userID}}, db.Paging{Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(page.Items) == 0 {
		return nil, errs.NotFound("")
	}
	return page.Items[0], nil
}

func (s *Service) membersOf(ctx context.Context, by actor.Actor, place Place) (source, error) {
	in, err := s.source(ctx, s.DB, by, place, NoAccess)
	if err != nil {
		return in, err
	}
	return in, by.RequireUser()
}

// raise sets the effective level of members in the source, which may differ from
// the level of their membership.
func (s *Service) raise(ctx context.Context, by actor.Actor, in source, list []*Member) error {
	if len(list) == 0 {
		return nil
	}
	levels, err := s.grantedLevels(ctx, by, in, list)
	if err != nil {
		return err
	}
	for _, m := range list {
		m.Level = levels[m.UserID]
	}
	return nil
}

// name reads the users of members and of those who added them.
func (s *Service) name(ctx context.Context, list ...*Member) error {
	var ids []int64
	for _, m := range list {
		ids = append(ids, m.UserID)
		if m.CreatedBy != nil {
			ids = append(ids, *m.CreatedBy)
		}
	}
	users, err := s.Users.FindAll(ctx, ids)
	if err != nil {
		return err
	}
	for _, m := range list {
		m.User = users[m.UserID]
		if m.CreatedBy != nil {
			m.Creator = users[*m.CreatedBy]
		}
	}
	return nil
}

// findMember returns a direct member after a change.
func (s *Service) findMember(ctx context.Context, in source, userID int64) (*Member, error) {
	m, err := findMember(ctx, s.DB, in, userID)
	if err != nil {
		return nil, db.NotFound(err, "")
	}
	return m, s.name(ctx, m)
}
