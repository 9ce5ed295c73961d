package project

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
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
	if descendants {
		w.And(`n.id <> ? AND n.id IN `+below, n.ID, n.ID)
	} else {
		w.And(`n.parent_id = ?`, n.ID)
	}
	return s.listGroups(ctx, w, order, p)
}

func (s *Service) groupsWhere(by actor.Actor, f GroupsFilter) db.Where {
	var w db.Where
	w.And("n.kind = 'group'")
	w.And("n.deleted_at IS NULL")
	least := f.MinLevel
	if f.Owned {
		least = max(least, Owner)
	}
	member, memberArgs := memberGroups(by.ID, s.today(), max(least, Minimal))
	inside, insideArgs := insideGroups(by.ID, s.today())
	switch {
	case least > NoAccess:
		w.And(member, memberArgs...)
	case by.Anonymous():
		w.And("n.visibility = 'public'")
	case !f.AllAvailable:
		w.And(anyOf(member, inside), append(memberArgs, insideArgs...)...)
	case by.Admin || by.Auditor:
	case by.External:
		w.And(anyOf("n.visibility = 'public'", member, inside), append(memberArgs, insideArgs...)...)
	default:
		w.And(anyOf("n.visibility IN ('public', 'internal')", member, inside), append(memberArgs, insideArgs...)...)
	}
	if f.Search != "" {
		w.And(anyOf(`fold(n.name) LIKE ? ESCAPE '\'`, `fold(n.path) LIKE ? ESCAPE '\'`), db.Like(f.Search), db.Like(f.Search))
	}
	if len(f.Skip) > 0 {
		w.And(`n.id NOT IN `+db.In(len(f.Skip)), db.Any(f.Skip)...)
	}
	if f.TopLevelOnly {
		w.And("n.parent_id IS NULL")
	}
	if f.Visibility != "" {
		w.And("n.visibility = ?", string(f.Visibility))
	}
	return w
}

func (s *Service) listGroups(ctx context.Context, w db.Where, order Sort, p db.Paging) (db.Page[*Namespace], error) {
	id := db.Order{Name: "n.id"}
	q := db.Query[*Namespace]{
		Columns: namespaceColumns, From: "namespaces n", Where: w, Desc: order.Desc, Scan: scanNamespace,
	}
	switch order.By {
	case "", "name":
		q.Order = []db.Order{{Name: "n.name", Text: true}, id}
		q.Keys = func(n *Namespace) []any { return []any{n.Name, n.ID} }
	case "path":
		q.Order = []db.Order{{Name: "n.path", Text: true}, id}
		q.Keys = func(n *Namespace) []any { return []any{n.Path, n.ID} }
	case "id":
		q.Order = []db.Order{id}
		q.Keys = func(n *Namespace) []any { return []any{n.ID} }
	default:
		return db.Page[*Namespace]{}, errs.Invalid("order_by does not have a valid value")
	}
	page, err := db.List(ctx, s.DB, q, p)
	if err != nil {
		return page, fmt.Errorf("list groups: %w", err)
	}
	return page, nil
}
