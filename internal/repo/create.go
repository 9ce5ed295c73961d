package repo

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// First says how the repository of a new project begins.
type First struct {
	Readme bool
	Branch string // "main" unless given
}

// Create makes a project, with a first commit that holds a README if that is
// wanted. The errors are those of project.Create, and InvalidField for a
// branch that can not be.
func (s *Service) Create(ctx context.Context, by actor.Actor, n project.NewProject, f First) (*project.Project, error) {
	if f.Branch == "" {
		f.Branch = UsualBranch
	}
	if err := git.CheckRef(git.Heads + f.Branch); err != nil {
		return nil, errs.InvalidField("default_branch", "is not a valid name of a branch").Because(err)
	}
	p, err := s.Projects.Create(ctx, by, n)
	if err != nil {
		return nil, err
	}
	if !f.Readme && f.Branch == UsualBranch {
		return p, nil // the repository is made when something comes
	}
	r, err := s.ensure(ctx, p, f.Branch)
	if err != nil || !f.Readme {
		return p, err
	}
	who := git.Signature{Name: by.Name, Email: by.Email, When: s.Now()}
	first, err := r.CommitChanges(ctx, git.ChangeOptions{
		Actions: []git.Action{{Kind: git.Create, Path: "README.md", Content: []byte("# " + p.Name + "\n\n" + p.Description)}},
		Author:  who, Committer: who, Message: "Initial commit",
	})
	if err != nil {
		return nil, fmt.Errorf("first commit of project %d: %w", p.ID, err)
	}
	if err := s.move(ctx, by, p, r, git.Update{Ref: git.Heads + f.Branch, Old: git.ZeroOID, New: first.ID}); err != nil {
		return nil, err
	}
	return s.Projects.Get(ctx, by, project.RefTo(p.ID))
}
