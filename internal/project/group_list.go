package project

import (
	"context"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
)

// GroupsFilter selects groups. Zero values match everything.
type GroupsFilter struct {
	Search       string
	Skip         []int64
	Owned        bool
	MinLevel     Level
	TopLevelOnly bool
	Visibility   Visibility
	// AllAvailable includes all groups that the actor can see; otherwise only those
	// that they are a member of.
	AllAvailable bool
	Attributes   map[string]string // custom attributes, administrators only

	Marked   Marked
	MarkedOn *time.Time // date on which it was marked for deletion
}

// Groups lists the groups that the actor can see. The actor may be anonymous.
func (s *Service) Groups(ctx context.Context, by actor.Actor, f GroupsFilter, order Sort, p db.Paging) (db.Page[*Namespace], error) {
	return s.listGroups(ctx, s.groupsWhere(by, f), order, p)
}

// Subgroups lists the direct subgroups of a group, or all descendants, that the
// actor can see. NotFound.
func (s *Service) Subgroups(ctx context.Context, by actor.Actor, ref Ref, descendants bool, f GroupsFilter, order Sort, p db.Paging) (db.Page[*Namespace], error) {
	n, err := s.RequireGroup(ctx, by, ref, NoAccess)
	if err != nil {
		return db.Page[*Namespace]{}, err
	}
	w := s.groupsWhere(by, f)
	onlyBelow(&w, n.ID, descendants)
	return s.listGroups(ctx, w, order, p)
}
