package wiki

import (
	"context"
	"errors"
	"fmt"
	"io"

	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/repo"
)

// Branch returns the default branch of the wiki of a group, or an empty string if
// the wiki is empty. The caller has required Owner.
func (s *Service) Branch(ctx context.Context, g *project.Namespace) (string, error) {
	return s.branch(ctx, nil, &g.ID)
}

// ProjectBranch is Branch for a project. The caller has required Maintainer.
func (s *Service) ProjectBranch(ctx context.Context, p *project.Project) (string, error) {
	return s.branch(ctx, &p.ID, nil)
}

func (s *Service) branch(ctx context.Context, projectID, groupID *int64) (string, error) {
	a, err := s.Repos.WikiOf(ctx, projectID, groupID)
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
		return "", fmt.Errorf("branches of a wiki: %w", err)
	}
	return r.DefaultBranch(ctx)
}

// Bundle writes the wiki of a group as a git bundle. It returns false and writes
// nothing if the wiki is empty. The caller has required Owner.
func (s *Service) Bundle(ctx context.Context, g *project.Namespace, w io.Writer) (bool, error) {
	return s.bundle(ctx, nil, &g.ID, w)
}

// BundleProject is Bundle for a project. The caller has required Maintainer.
func (s *Service) BundleProject(ctx context.Context, p *project.Project, w io.Writer) (bool, error) {
	return s.bundle(ctx, &p.ID, nil, w)
}

func (s *Service) bundle(ctx context.Context, projectID, groupID *int64, w io.Writer) (bool, error) {
	a, err := s.Repos.WikiOf(ctx, projectID, groupID)
	if err != nil || a == nil {
		return false, err
	}
	ok, err := s.Repos.BundleAuxRepo(ctx, a, w)
	if err != nil {
		return ok, fmt.Errorf("bundle a wiki: %w", err)
	}
	return ok, nil
}

// Fill adds the wiki of a git bundle to a group or project that is being created. NotFound
// if the project is not being created any more; Invalid if the file is not a bundle.
func (s *Service) Fill(ctx context.Context, d *project.Draft, branch string, bundle io.Reader) error {
	var projectID, groupID *int64
	if d.Project {
		projectID = &d.ID
	} else {
		groupID = &d.ID
	}
	a, err := s.Repos.BeginWiki(ctx, projectID, groupID)
	if err != nil {
		return err
	}
	r, err := s.Repos.OpenAuxRepo(a)
	if err != nil {
		return err
	}
	if d.Project {
		if _, err := s.Repos.Projects.DraftProject(ctx, s.Repos.DB, d.ID); err != nil { // another attempt may have finished
			return err
		}
	}
	if err := repo.Discard(ctx, r); err != nil { // from an attempt that was interrupted
		return fmt.Errorf("remove a wiki: %w", err)
	}
	return s.Repos.FillAuxRepo(ctx, a, branch, bundle)
}
