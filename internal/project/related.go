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
	Shared    bool  // also those that it is shared with
	SharedMin Level // of the shares
}

// RelatedGroups returns the groups above a project, and those that it is shared
// with if asked for, as far as the actor sees them; NotFound when they do not
// see the project.
func (s *Service) RelatedGroups(ctx context.Context, by actor.Actor, ref Ref, f RelatedFilter, p db.Paging) (db.Page[*Namespace], error) {
	of, err := s.Require(ctx, by, ref, NoAccess)
	if err != nil {
		return db.Page[*Namespace]{}, err
	}
	w := s.groupsWhere(by, GroupsFilter{AllAvailable: true, Search: f.Search, Skip: f.Skip})
	cond, args := `n.id IN (SELECT t.ancestor_id FROM namespace_tree t WHERE t.descendant_id = ?)`, []any{of.NamespaceID}
	if f.Shared {
		cond = anyOf(cond, `n.id IN (SELECT s.group_id FROM group_shares s WHERE s.project_id = ? AND s.access_level >= ? AND `+activeShare+`)`)
		args = append(args, of.ID, int64(f.SharedMin), s.today())
	}
	w.And(cond, args...)
	return s.listGroups(ctx, w, Sort{}, p)
}

// InvitedFilter selects groups that something is shared with; zero values
// choose all.
type InvitedFilter struct {
	Search   string
	MinLevel Level
	Relation []string // direct, inherited
}

// InvitedGroups returns the groups that a group or project is shared with,
// there or above, as far as the actor sees them; NotFound when they do not see
// the thing itself.
func (s *Service) InvitedGroups(ctx context.Context, by actor.Actor, place Place, f InvitedFilter, p db.Paging) (db.Page[*Namespace], error) {
	in, err := s.source(ctx, s.DB, by, place, NoAccess)
	if err != nil {
		return db.Page[*Namespace]{}, err
	}
	at, project := in.tree()
	direct, inherited := slices.Contains(f.Relation, "direct"), slices.Contains(f.Relation, "inherited")
	if len(f.Relation) == 0 {
		direct, inherited = true, true
	}
	var conds []string
	var args []any
	if direct {
		column, id := in.column()
		conds, args = append(conds, "s"+column[1:]+" = ?"), append(args, id)
	}
	if inherited {
		conds = append(conds, `s.namespace_id IN (SELECT t.ancestor_id FROM namespace_tree t WHERE t.descendant_id = ? AND (t.depth > 0 OR ?))`)
		args = append(args, at, project != 0)
	}
	w := s.groupsWhere(by, GroupsFilter{AllAvailable: true, Search: f.Search})
	w.And(`n.id IN (SELECT s.group_id FROM group_shares s WHERE s.access_level >= ? AND `+activeShare+` AND (`+anyOf(conds...)+`))`,
		append([]any{int64(f.MinLevel), s.today()}, args...)...)
	return s.listGroups(ctx, w, Sort{}, p)
}

// shownProjects is how many projects a group shows with itself.
const shownProjects = 100

// GroupWithProjects is Group with the newest of its projects, and of those
// that are shared with it, that the actor sees.
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
