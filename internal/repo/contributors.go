package repo

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

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
	o.sort(list)
	return list, nil
}

// authorWait is the maximum time to wait for a count of authors.
const authorWait = 500 * time.Millisecond

// CountAuthors is Contributors without the lines that they changed, sorted by commits. It
// returns soon, with the intermediate result.
func (s *Service) CountAuthors(ctx context.Context, by actor.Actor, ref project.Ref, rev string) (*git.AuthorCount, error) {
	return s.countAuthors(ctx, by, ref, rev, func(r git.Repo, at string) (*git.AuthorCount, error) { return r.CountAuthors(ctx, at, authorWait) })
}

// CountLines is CountAuthors with the lines that each author changed. Counting them takes
// much longer and runs in the background, for one repository at a time. wait is the maximum
// time to wait for the count.
func (s *Service) CountLines(ctx context.Context, by actor.Actor, ref project.Ref, rev string, wait time.Duration) (*git.AuthorCount, error) {
	return s.countAuthors(ctx, by, ref, rev, func(r git.Repo, at string) (*git.AuthorCount, error) { return r.CountLines(ctx, at, wait) })
}

func (s *Service) countAuthors(ctx context.Context, by actor.Actor, ref project.Ref, rev string, do func(git.Repo, string) (*git.AuthorCount, error)) (*git.AuthorCount, error) {
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	if rev == "" && p.DefaultBranch == "" {
		return &git.AuthorCount{Done: true}, nil
	}
	at, err := s.commitAt(ctx, p, r, rev)
	if err != nil {
		return nil, missing(err, "Ref")
	}
	count, err := do(r, string(at))
	if err != nil {
		return nil, missing(err, "Ref")
	}
	ContributorOptions{By: "commits", Desc: true}.sort(count.Authors)
	return count, nil
}

func (o ContributorOptions) sort(list []git.Contributor) {
	slices.SortFunc(list, func(a, b git.Contributor) int {
		order := o.compare(a, b)
		if o.Desc {
			order = -order
		}
		// Email addresses are unique, so pages never overlap.
		return cmp.Or(order, strings.Compare(a.Email, b.Email))
	})
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
