package repo

import (
	"context"
	"errors"
	"fmt"
	"path"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// SubmoduleUpdate points a submodule to another commit.
type SubmoduleUpdate struct {
	Branch  string
	Path    string
	Commit  git.OID
	Message string // replaces the default message
}

// UpdateSubmodule creates a commit on a branch that changes the commit of a submodule, for
// Developers and above, subject to branch protection. The commit belongs to another
// repository, so its existence is not checked. NotFound if the branch does not exist; Invalid
// if the path is not a submodule, or is already at the commit.
func (s *Service) UpdateSubmodule(ctx context.Context, by actor.Actor, ref project.Ref, u SubmoduleUpdate) (*project.Project, *CommitDetail, error) {
	p, r, err := s.writeSome(ctx, by, ref)
	if err != nil {
		return nil, nil, err
	}
	tip, err := r.Ref(ctx, git.Heads+u.Branch)
	if err != nil {
		return nil, nil, missing(err, "Branch")
	}
	if u.Message == "" {
		u.Message = fmt.Sprintf("Update submodule %s to %s", path.Base(u.Path), u.Commit)
	}
	made, err := r.CommitChanges(ctx, git.ChangeOptions{
		Parent: string(tip.Target), Actions: []git.Action{{Kind: git.Submodule, Path: u.Path, Content: []byte(u.Commit)}},
		Author: s.signature(by), Committer: s.signature(by), Message: u.Message,
	})
	switch {
	case errors.Is(err, git.ErrNotFound), errors.Is(err, git.ErrBadPath):
		return nil, nil, errs.Refused("Invalid submodule path").Because(err)
	case errors.Is(err, git.ErrNothing):
		return nil, nil, errs.Refused("The submodule %.200s is already at %s", u.Path, u.Commit).Because(err)
	case err != nil:
		return nil, nil, passing(err)
	}
	if err := s.move(ctx, by, p, r, git.Update{Ref: tip.Name, Old: tip.ID, New: made.ID}); err != nil {
		return nil, nil, err
	}
	d, err := s.detail(ctx, r, made, false)
	return p, d, err
}
