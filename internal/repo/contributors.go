package repo

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"svc/internal/actor"
	"svc/internal/git"
	"svc/internal/project"
)

// ContributorOptions selects and sorts contributors.
type ContributorOptions struct {
	Ref  string // a branch, tag or commit; default: the default branch
	By   string // name, email or commits
	Desc bool
}

// Contributors counts the commits, without merges, of each author, for users
// who may read the repository. Empty for an empty repository. NotFound if the
// ref does not exist.
func (s *Service) Contributors(ctx context.Context, by actor.Actor, ref project.Ref, o ContributorOptions) ([]git.Contributor, error) {
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	if o.Ref == "" && p.DefaultBranch == "" {
		return nil, nil
	}
	at, err := s.commitAt(ctx, p, r, o.Ref)
	if err != nil {
		return nil, missing(err, "Ref")
	}
	list, err := r.Contributors(ctx, string(at))
	if err != nil {
		return nil, missing(err, "Ref")
	}
	slices.SortFunc(list, func(a, b git.Contributor) int {
		order := o.compare(a, b)
		if o.Desc {
			order = -order
		}
		// Email addresses are unique, so pages never overlap.
		return cmp.Or(order, strings.Compare(a.Email, b.Email))
	})
	return list, nil
}

func (o ContributorOptions) compare(a, b git.Contributor) int {
	switch o.By {
	case "name":
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	case "email":
		return strings.Compare(a.Email, b.Email)
	}
	return cmp.Compare(a.Commits, b.Commits)
}
