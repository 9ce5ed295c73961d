package repo

import (
	"context"

	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// HasRef reports whether a project has a branch or, with tag, a tag. The caller
// must have checked access to the project.
func (s *Service) HasRef(ctx context.Context, p *project.Project, name string, tag bool) (bool, error) {
	r, err := s.open(p.Storage, p.ID)
	if err != nil {
		return false, err
	}
	full := git.Heads + name
	if tag {
		full = git.Tags + name
	}
	if git.CheckRef(full) != nil {
		return false, nil
	}
	_, err = r.Ref(ctx, full)
	if errs.Is(missing(err, "Ref"), errs.KindNotFound) {
		return false, nil
	}
	return err == nil, err
}
