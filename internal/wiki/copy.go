package wiki

import (
	"context"
	"errors"
	"fmt"
	"io"

	"svc/internal/git"
	"svc/internal/project"
)

// Branch returns the default branch of the wiki of a group, or an empty string if
// the wiki is empty. The caller has required Owner.
func (s *Service) Branch(ctx context.Context, g *project.Namespace) (string, error) {
	a, err := s.Repos.WikiOf(ctx, nil, &g.ID)
	if err != nil || a == nil {
		return "", err
	}
	r, err := s.Repos.OpenAuxRepo(a)
	if err != nil {
		return "", err
	}
	refs, err := r.Refs(ctx, git.RefOptions{Place: git.Heads, Limit: 1})
	if errors.Is(err, git.ErrNoRepository) || err == nil && len(refs) == 0 {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("branches of the wiki of group %d: %w", g.ID, err)
	}
	return r.DefaultBranch(ctx)
}

// Bundle writes the wiki of a group as a git bundle. It returns false and writes
// nothing if the wiki is empty. The caller has required Owner.
func (s *Service) Bundle(ctx context.Context, g *project.Namespace, w io.Writer) (bool, error) {
	a, err := s.Repos.WikiOf(ctx, nil, &g.ID)
	if err != nil || a == nil {
		return false, err
	}
	ok, err := s.Repos.BundleAuxRepo(ctx, a, w)
	if err != nil {
		return ok, fmt.Errorf("bundle wiki of group %d: %w", g.ID, err)
	}
	return ok, nil
}

// Fill returns a group that is being put together the wiki that is in a git
// bundle. Invalid for a file that is none.
func (s *Service) Fill(ctx context.Context, d *project.Draft, branch string, bundle io.Reader) error {
	a, err := s.Repos.BeginWiki(ctx, nil, &d.ID)
	if err != nil {
		return err
	}
	return s.Repos.FillAuxRepo(ctx, a, branch, bundle)
}
