package project

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
)

// MemberFilter selects members; zero values choose all.
type MemberFilter struct {
	All   bool   // also those by groups above and by shares
	Query string // in name and username; an address must be whole
	Users []int64
	Skip  []int64
}

// Members lists the members of a group or project for anyone who has signed in
// and sees it: Unauthorized or NotFound otherwise. Those who came by a share
// are shown to members.
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

// Member returns one member, direct ones only unless all. Who may: see Members.
// NotFound when the user is none.
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

// raise gives members the level that they have in the source, which may be
// less than what they have where they come from.
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

// name reads who the members are and who added them.
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

// findMember reads a direct member after a change.
func (s *Service) findMember(ctx context.Context, in source, userID int64) (*Member, error) {
	m, err := findMember(ctx, s.DB, in, userID)
	if err != nil {
		return nil, db.NotFound(err, "")
	}
	return m, s.name(ctx, m)
}
