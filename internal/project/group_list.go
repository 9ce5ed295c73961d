package project

import (
	"context"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
)

// GroupsFilter selects groups; zero values choose all.
type GroupsFilter struct {
	Search       string
	Skip         []int64
	Owned        bool
	MinLevel     Level
	TopLevelOnly bool
	Visibility   Visibility
	// AllAvailable shows everything that the actor sees; otherwise only what they
	// are a member of.
	AllAvailable bool
	Attributes   map[string]string // custom attributes, administrators only

	Marked   Marked
	MarkedOn *time.Time // the day on which it was marked for deletion
}

// Groups returns the groups that the actor sees, also to a user who has not
// signed in.
func (s *Service) Groups(ctx context.Context, by actor.Actor, f GroupsFilter, order Sort, p db.Paging) (db.Page[*Namespace], error) {
	return s.listGroups(ctx, s.groupsWhere(by, f), order, p)
}

// Subgroups returns the groups directly below a group, or all below it, that
// the actor sees; NotFound when they do not see the group itself.
func (s *Service) Subgroups(ctx context.Context, by actor.Actor, ref Ref, descendants bool, f GroupsFilter, order Sort, p db.Paging) (db.Page[*Namespace], error) {
	n, err := s.RequireGroup(ctx, by, ref, NoAccess)
	if err != nil {
		return db.Page[*Namespace]{}, err
	}
	w := s.groupsWhere(by, f)
	onlyBelow(&w, n.ID, descendants)
	return s.listGroups(ctx, w, order, p)
}
