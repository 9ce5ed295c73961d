package repo

import (
	"context"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// Languages returns the languages of the default branch, the largest first, for
// users who may read the repository. Empty for an empty repository.
func (s *Service) Languages(ctx context.Context, by actor.Actor, ref project.Ref) ([]git.Language, error) {
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	at, err := s.commitAt(ctx, p, r, "")
	if errs.Is(missing(err, ""), errs.KindNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, passing(err)
	}
	list, err := r.Languages(ctx, string(at))
	return list, missing(err, "Ref")
}
