package release

import (
	"context"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/project"
)

// Can is what an actor may do with the releases of a project.
type Can struct {
	Create bool // Developers and above; the tag may be protected
}

// Can returns what an actor may do with the releases of a project that they can
// see.
func (s *Service) Can(by actor.Actor, p *project.Project) Can {
	return Can{Create: p.MayChange(by, project.ReleasePart, project.Developer) && p.MayChange(by, project.CodePart, project.Developer)}
}

// MayChange reports whether an actor may update and delete the release of a tag.
func (s *Service) MayChange(ctx context.Context, by actor.Actor, p *project.Project, tag string) (bool, error) {
	if !s.Can(by, p).Create {
		return false, nil
	}
	err := s.checkTag(ctx, by, p, tag)
	if errs.IsRefusal(err) {
		return false, nil
	}
	return err == nil, err
}

// changeable returns a project to Developers and above who can read its code and
// see its releases. NotFound, Forbidden.
func (s *Service) changeable(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	p, err := s.Projects.RequireChange(ctx, by, ref, project.ReleasePart, project.Developer)
	if err != nil {
		return nil, err
	}
	return p, p.Change(by, project.CodePart, project.Developer)
}

// checkTag refuses an actor who may not create a protected tag: Forbidden.
func (s *Service) checkTag(ctx context.Context, by actor.Actor, p *project.Project, tag string) error {
	src, err := s.Repos.SourceOf(by, p)
	if err != nil {
		return err
	}
	may, err := src.MayRun(ctx, tag, true)
	if err == nil && !may {
		err = errs.Forbidden("You are not allowed to create this tag as it is protected.")
	}
	return err
}
