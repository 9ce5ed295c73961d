package project

import (
	"context"
	"slices"

	"svc/internal/actor"
	"svc/internal/db"
)

// RelatedFilter selects the groups that a project is related to.
type RelatedFilter struct {
	Search    string
	Skip      []int64
	Shared    bool  // include groups that it is shared with
	SharedMin Level // minimum level of shares
}

// RelatedGroups lists the ancestor groups of a project and, if requested, the
// groups that it is shared with, that the actor can see. NotFound.
func (s *Service) RelatedGroups(ctx context.Context, by actor.Actor, ref Ref, f RelatedFilter, p db.Paging) (db.Page[*Namespace], error) {
	of, err := s.Require(ctx, by, ref, NoAccess)
	if err != nil {
		return db.Page[*Namespace]{}, err
	}
	w := s.groupsWhere(by, GroupsFilter{AllAvailable: true, Search: f.Search, Skip: f.Skip})
	onlyRelated(&w, of, f, s.today())
	return s.listGroups(ctx, w, Sort{}, p)
}

// InvitedFilter selects invited groups. Zero values match everything.
type InvitedFilter struct {
	Search   string
	MinLevel Level
	Relation []string // direct, inherited
}

// InvitedGroups lists the groups that a project or group is shared with, directly
// or by inheritance, that the actor can see. NotFound.
func (s *Service) InvitedGroups(ctx context.Context, by actor.Actor, place Place, f InvitedFilter, p db.Paging) (db.Page[*Namespace], error) {
	in, err := s.source(ctx, s.DB, by, place, NoAccess)
	if err != nil {
		return db.Page[*Namespace]{}, err
	}
	direct, inherited := slices.Contains(f.Relation, "direct"), slices.Contains(f.Relation, "inherited")
	if len(f.Relation) == 0 {
		direct, inherited = true, true
	}
	w := s.groupsWhere(by, GroupsFilter{AllAvailable: true, Search: f.Search})
	onlyInvited(&w, in, f.MinLevel, direct, inherited, s.today())
	return s.listGroups(ctx, w, Sort{}, p)
}

// shownProjects is the maximum number of projects in the details of a group.
const shownProjects = 100

// GroupWithProjects is Group with its newest projects, and the newest projects
// that are shared with it, that the actor can see.
func (s *Service) GroupWithProjects(ctx context.Context, by actor.Actor, ref Ref) (n *Namespace, own, shared []*Project, err error) {
	if n, err = s.Group(ctx, by, ref); err != nil {
		return nil, nil, nil, err
	}
	order, paging := Sort{By: "id", Desc: true}, db.Paging{Limit: shownProjects}
	page, err := s.GroupProjects(ctx, by, RefTo(n.ID), GroupFilter{}, Filter{}, order, paging)
	if err != nil {
		return nil, nil, nil, err
	}
	own = page.Items
	page, err = s.GroupProjects(ctx, by, RefTo(n.ID), GroupFilter{OnlyShared: true}, Filter{}, order, paging)
	return n, own, page.Items, err
}
