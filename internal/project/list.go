package project

import (
	"context"
	"fmt"
	"slices"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/user"
)

// Filter chooses projects; zero values choose all.
type Filter struct {
	Archived   *bool
	Visibility Visibility
	Search     string // in name and path, and in the full path when Deep
	Deep       bool
	Membership bool
	Owned      bool
	Starred    bool
	MinLevel   Level
	Topics     []string // all of them
	TopicID    int64    // of a topic that they have
	Language   string   // among those of the default branch
	ActiveAt   [2]*time.Time
	UpdatedAt  [2]*time.Time
	IDAfter    int64
	IDBefore   int64

	WithIssues        bool
	WithMergeRequests bool

	Storage string // administrators only
}

// Sort is the order of a list.
type Sort struct {
	By   string
	Desc bool
}

// List returns the projects that the actor sees, also to a user who has not
// signed in.
func (s *Service) List(ctx context.Context, by actor.Actor, f Filter, order Sort, p db.Paging) (db.Page[*Project], error) {
	return s.list(ctx, by, s.where(by, f), order, p)
}

// GroupFilter selects projects of a group beside Filter.
type GroupFilter struct {
	Subgroups  bool
	WithShared bool
	OnlyShared bool // what is shared with the group, and nothing that is in it
}

// GroupProjects returns the projects of a group that the actor sees; NotFound
// when they do not see the group.
func (s *Service) GroupProjects(ctx context.Context, by actor.Actor, ref Ref, g GroupFilter, f Filter, order Sort, p db.Paging) (db.Page[*Project], error) {
	n, err := s.RequireGroup(ctx, by, ref, NoAccess)
	if err != nil {
		return db.Page[*Project]{}, err
	}
	w := s.where(by, f)
	cond, args := `p.namespace_id = ?`, []any{n.ID}
	if g.Subgroups {
		cond = `p.namespace_id IN ` + below
	}
	shared := `p.id IN (SELECT s.project_id FROM group_shares s WHERE s.group_id = ? AND s.project_id IS NOT NULL AND ` + activeShare + `)`
	switch {
	case g.OnlyShared:
		cond, args = shared, []any{n.ID, s.today()}
	case g.WithShared:
		cond, args = anyOf(cond, shared), append(args, n.ID, s.today())
	}
	w.And(cond, args...)
	return s.list(ctx, by, w, order, p)
}

// UserProjects returns the projects in the namespace of a user that the actor
// sees; NotFound when they do not see the user.
func (s *Service) UserProjects(ctx context.Context, by actor.Actor, ref user.Ref, f Filter, order Sort, p db.Paging) (db.Page[*Project], error) {
	u, err := s.Users.Find(ctx, by, ref)
	if err != nil {
		return db.Page[*Project]{}, err
	}
	w := s.where(by, f)
	w.And(`p.namespace_id = ?`, u.NamespaceID)
	return s.list(ctx, by, w, order, p)
}

// StarredProjects returns the projects that a user has starred and the actor
// sees. NotFound when they do not see the user, or the user keeps their profile
// to themselves.
func (s *Service) StarredProjects(ctx context.Context, by actor.Actor, ref user.Ref, f Filter, order Sort, p db.Paging) (db.Page[*Project], error) {
	u, err := s.Users.Find(ctx, by, ref)
	if err != nil {
		return db.Page[*Project]{}, err
	}
	if !user.MayReadProfile(by, u) {
		return db.Page[*Project]{}, errs.NotFound("User")
	}
	w := s.where(by, f)
	w.And(`p.id IN (SELECT s.project_id FROM stars s WHERE s.user_id = ?)`, u.ID)
	return s.list(ctx, by, w, order, p)
}

// ContributedProjects returns those of the projects, to which a user has
// contributed, that the actor sees. NotFound as in StarredProjects.
func (s *Service) ContributedProjects(ctx context.Context, by actor.Actor, ref user.Ref, among func(userID int64) ([]int64, error), f Filter, order Sort, p db.Paging) (db.Page[*Project], error) {
	u, err := s.Users.Find(ctx, by, ref)
	if err != nil {
		return db.Page[*Project]{}, err
	}
	if !user.MayReadProfile(by, u) {
		return db.Page[*Project]{}, errs.NotFound("User")
	}
	ids, err := among(u.ID)
	if err != nil || len(ids) == 0 {
		return db.Page[*Project]{Items: []*Project{}}, err
	}
	w := s.where(by, f)
	w.And(`p.id IN `+db.In(len(ids)), db.Any(ids)...)
	return s.list(ctx, by, w, order, p)
}

// Forks returns the forks of a project that the actor sees; NotFound when they
// do not see the project itself.
func (s *Service) Forks(ctx context.Context, by actor.Actor, ref Ref, f Filter, order Sort, p db.Paging) (db.Page[*Project], error) {
	of, err := s.Require(ctx, by, ref, NoAccess)
	if err != nil {
		return db.Page[*Project]{}, err
	}
	w := s.where(by, f)
	w.And(`p.forked_from_id = ?`, of.ID)
	return s.list(ctx, by, w, order, p)
}

func (s *Service) list(ctx context.Context, by actor.Actor, w db.Where, order Sort, p db.Paging) (db.Page[*Project], error) {
	id := db.Order{Name: "p.id"}
	q := db.Query[*Project]{
		Columns: projectColumns, From: projectTables, CountFrom: "projects p", Where: w, Desc: order.Desc, Scan: scanProject,
		Order: []db.Order{id}, Keys: func(p *Project) []any { return []any{p.ID} },
	}
	switch by := order.By; {
	case by == "" || by == "id":
	case slices.Contains([]string{"name", "path"}, by):
		q.Order = []db.Order{{Name: "p." + by, Text: true}, id}
	case slices.Contains([]string{"created_at", "updated_at", "last_activity_at", "star_count"}, by):
		q.Order = []db.Order{{Name: "p." + by}, id}
	default:
		return db.Page[*Project]{}, errs.Invalid("order_by does not have a valid value")
	}
	if p.Keyset && len(q.Order) > 1 {
		return db.Page[*Project]{}, errs.NotAllowed("Keyset pagination is not yet available for this type of request")
	}
	page, err := db.List(ctx, s.DB, q, p)
	if err != nil {
		return page, fmt.Errorf("list projects: %w", err)
	}
	access, err := s.accesses(ctx, s.DB, by, page.Items)
	if err != nil {
		return page, fmt.Errorf("list projects: %w", err)
	}
	for _, p := range page.Items {
		p.Access = access[p.ID]
	}
	if err := s.complete(ctx, by, page.Items...); err != nil {
		return page, fmt.Errorf("list projects: %w", err)
	}
	return page, nil
}
