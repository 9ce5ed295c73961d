package packages

import (
	"context"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/project"
)

// view returns a project to an actor who may read its packages. A CI/CD job has the
// permissions of its user in projects that accept its job token. NotFound; Forbidden.
func (s *Service) view(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	by, err := s.actorFor(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	return s.Projects.ReadPackages(ctx, by, ref)
}

// change returns a project to an actor who may publish packages in it. NotFound;
// Forbidden.
func (s *Service) change(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	as, err := s.actorFor(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	p, err := s.Projects.WritePackages(ctx, as, ref)
	if by.Job != nil && errs.Is(err, errs.KindUnauthorized) {
		return nil, errs.Forbidden("The project of this job is not in the job token allowlist of the project").Because(err)
	}
	return p, err
}

// remove returns a project to an actor who may delete packages in it: Maintainers
// and above. NotFound; Forbidden.
func (s *Service) remove(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	as, err := s.actorFor(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	return s.Projects.RequireChange(ctx, as, ref, project.PackagePart, project.Maintainer)
}

// actorFor returns the actor whose permissions apply in a project. For a job token
// that the project does not accept this is an anonymous user.
func (s *Service) actorFor(ctx context.Context, by actor.Actor, ref project.Ref) (actor.Actor, error) {
	if by.Job == nil {
		return by, nil
	}
	as, _, err := s.CI.JobOpens(ctx, by, ref)
	if errs.Is(err, errs.KindNotFound) { // ReadPackages may still open a public registry
		return actor.Actor{IP: by.IP}, nil
	}
	return as, err
}

// Can is what an actor may do with the packages of a project.
type Can struct {
	Delete    bool
	Configure bool // protection rules and cleanup
}

// Can returns what an actor may do in a project that they can see.
func (s *Service) Can(by actor.Actor, p *project.Project) Can {
	return Can{
		Delete:    p.MayChange(by, project.PackagePart, project.Maintainer),
		Configure: p.MayChange(by, project.PackagePart, project.Maintainer),
	}
}

// level is the access level of an actor in a project, for protection rules.
// Administrators have the highest, deploy tokens none.
func level(by actor.Actor, p *project.Project) project.Level {
	if by.Admin {
		return AdminLevel
	}
	return p.Access.Level()
}

// AdminLevel is the level of administrators in protection rules.
const AdminLevel project.Level = 60
