package project

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/user"
)

// Filter selects projects. Zero values match everything.
type Filter struct {
	Archived   *bool
	Visibility Visibility
	Search     string // in name, path and description; with Deep also in the full path
	Deep       bool
	Membership bool
	Owned      bool
	Starred    bool
	MinLevel   Level
	Topics     []string // all of these
	TopicID    int64    // ID of a topic
	Language   string   // a language of the default branch
	ActiveAt   [2]*time.Time
	UpdatedAt  [2]*time.Time
	IDAfter    int64
	IDBefore   int64

	WithIssues        bool
	WithMergeRequests bool

	Storage    string            // administrators only
	Attributes map[string]string // custom attributes, administrators only

	Marked   Marked
	MarkedOn *time.Time // date on which it was marked for deletion
	Active   *bool      // neither archived nor marked for deletion
}

// Sort is the order of a list.
type Sort struct {
	By   string
	Desc bool
}

// List lists the projects that the actor can see. The actor may be anonymous.
func (s *Service) List(ctx context.Context, by actor.Actor, f Filter, order Sort, p db.Paging) (db.Page[*Project], error) {
	return s.list(ctx, by, s.where(by, f), order, p)
}

// GroupFilter selects projects of a group, in addition to Filter.
type GroupFilter struct {
	Subgroups  bool
	WithShared bool
	OnlyShared bool // only projects that are shared with the group
}

// GroupProjects lists the projects of a group that the actor can see. NotFound.
func (s *Service) GroupProjects(ctx context.Context, by actor.Actor, ref Ref, g GroupFilter, f Filter, order Sort, p db.Paging) (db.Page[*Project], error) {
	n, err := s.RequireGroup(ctx, by, ref, NoAccess)
	if err != nil {
		return db.Page[*Project]{}, err
	}
	w := s.where(by, f)
	onlyInGroup(&w, n.ID, g, s.today())
	return s.list(ctx, by, w, order, p)
}

// UserProjects lists the projects in the namespace of a user that the actor can
// see. NotFound.
func (s *Service) UserProjects(ctx context.Context, by actor.Actor, ref user.Ref, f Filter, order Sort, p db.Paging) (db.Page[*Project], error) {
	u, err := s.Users.Find(ctx, by, ref)
	if err != nil {
		return db.Page[*Project]{}, err
	}
	w := s.where(by, f)
	onlyInNamespace(&w, u.NamespaceID)
	return s.list(ctx, by, w, order, p)
}

// StarredProjects lists the projects that a user has starred and the actor can
// see. NotFound, also if the profile of the user is private.
func (s *Service) StarredProjects(ctx context.Context, by actor.Actor, ref user.Ref, f Filter, order Sort, p db.Paging) (db.Page[*Project], error) {
	u, err := s.Users.Find(ctx, by, ref)
	if err != nil {
		return db.Page[*Project]{}, err
	}
	if !user.MayReadProfile(by, u) {
		return db.Page[*Project]{}, errs.NotFound("User")
	}
	w := s.where(by, f)
	onlyStarred(&w, u.ID)
	return s.list(ctx, by, w, order, p)
}

// ContributedProjects lists the projects that a user has contributed to and the
// actor can see. NotFound, also if the profile of the user is private.
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
	onlyIDs(&w, ids)
	return s.list(ctx, by, w, order, p)
}

// Forks lists the forks of a project that the actor can see. NotFound.
func (s *Service) Forks(ctx context.Context, by actor.Actor, ref Ref, f Filter, order Sort, p db.Paging) (db.Page[*Project], error) {
	of, err := s.Require(ctx, by, ref, NoAccess)
	if err != nil {
		return db.Page[*Project]{}, err
	}
	w := s.where(by, f)
	onlyForks(&w, of.ID)
	return s.list(ctx, by, w, order, p)
}

func (s *Service) list(ctx context.Context, by actor.Actor, w db.Where, order Sort, p db.Paging) (db.Page[*Project], error) {
	page, err := listProjects(ctx, s.DB, w, order, p)
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
