package snippet

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// Filter chooses snippets; zero values choose all that the actor sees.
type Filter struct {
	Visibility    project.Visibility
	Search        string // in the title, in any case
	Storage       string // administrators only
	CreatedAfter  *time.Time
	CreatedBefore *time.Time
	Oldest        bool // the oldest first

	ids       []int64
	authorID  int64
	projectID int64
	personal  bool // personal snippets only
}

// Own lists the snippets of the actor, newest first, that they can still see.
// Unauthorized.
func (s *Service) Own(ctx context.Context, by actor.Actor, f Filter, p db.Paging) (db.Page[*Snippet], error) {
	if err := by.RequireUser(); err != nil {
		return db.Page[*Snippet]{}, err
	}
	f.authorID = by.ID
	return s.list(ctx, by, f, p)
}

// Public lists the public personal snippets.
func (s *Service) Public(ctx context.Context, by actor.Actor, f Filter, p db.Paging) (db.Page[*Snippet], error) {
	f.Visibility, f.personal = project.Public, true
	return s.list(ctx, by, f, p)
}

// All lists every snippet that the actor sees, of users and projects.
func (s *Service) All(ctx context.Context, by actor.Actor, f Filter, p db.Paging) (db.Page[*Snippet], error) {
	return s.list(ctx, by, f, p)
}

// OfProject lists the snippets of a project that the actor sees; NotFound.
func (s *Service) OfProject(ctx context.Context, by actor.Actor, in project.Ref, f Filter, p db.Paging) (db.Page[*Snippet], error) {
	at, err := s.Projects.RequireView(ctx, by, in, project.SnippetPart)
	if err != nil {
		return db.Page[*Snippet]{}, err
	}
	f.projectID = at.ID
	return s.list(ctx, by, f, p)
}

// ByID returns the snippets among ids that the actor can see, by ID.
func (s *Service) ByID(ctx context.Context, by actor.Actor, ids []int64) (map[int64]*Snippet, error) {
	found := map[int64]*Snippet{}
	if len(ids) == 0 {
		return found, nil
	}
	page, err := s.list(ctx, by, Filter{ids: ids}, db.Paging{Limit: len(ids)})
	for _, one := range page.Items {
		found[one.ID] = one
	}
	return found, err
}

// Named is Get for the name of a snippet in a URL.
func (s *Service) Named(ctx context.Context, by actor.Actor, name string) (*Snippet, error) {
	id, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		return nil, errs.NotFound("Snippet")
	}
	return s.Get(ctx, by, nil, id)
}

func (s *Service) list(ctx context.Context, by actor.Actor, f Filter, p db.Paging) (db.Page[*Snippet], error) {
	page, err := s.search(ctx, by, f, p)
	if err != nil {
		return page, fmt.Errorf("list snippets: %w", err)
	}
	var ids []int64
	for _, one := range page.Items {
		if one.ProjectID != nil {
			ids = append(ids, *one.ProjectID)
		}
	}
	projects, err := s.Projects.Among(ctx, by, ids)
	if err != nil {
		return page, err
	}
	byID := map[int64]*project.Project{}
	for _, p := range projects {
		byID[p.ID] = p
	}
	for _, one := range page.Items {
		if one.ProjectID == nil {
			continue
		}
		if one.In = byID[*one.ProjectID]; one.In == nil { // deleted concurrently
			return page, errs.Unavailable("A project is being removed. Please try again.")
		}
	}
	if len(page.Items) == 0 {
		return page, nil
	}
	return page, s.fill(ctx, page.Items...)
}
