package repo

import (
	"context"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/user"
)

// ContributedProjects lists the projects to which a user has contributed in the
// last year, as far as the actor can see them. NotFound if the actor cannot see
// the user, or the profile is private.
func (s *Service) ContributedProjects(ctx context.Context, by actor.Actor, ref user.Ref, f project.Filter, order project.Sort, p db.Paging) (db.Page[*project.Project], error) {
	since := s.Now().AddDate(-1, 0, 0)
	return s.Projects.ContributedProjects(ctx, by, ref, func(userID int64) ([]int64, error) { return s.Activity.ProjectsOf(ctx, userID, since) }, f, order, p)
}
