package repo

import (
	"cmp"
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// Create creates a project, optionally with a first commit that contains a
// README. The errors are those of project.Create, and InvalidField if the
// branch is not valid.
func (s *Service) Create(ctx context.Context, by actor.Actor, n project.NewProject, readme bool) (*project.Project, error) {
	if n.Branch != "" {
		if err := git.CheckBranch(n.Branch); err != nil {
			return nil, errs.InvalidField("default_branch", "is not a valid name of a branch").Because(err)
		}
	}
	p, err := s.Projects.Create(ctx, by, n)
	if err != nil || !readme {
		return p, err // the repository is created on first use
	}
	r, err := s.ensure(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := s.firstCommit(ctx, by, p, r); err != nil {
		return nil, err
	}
	return s.Projects.Get(ctx, by, project.RefTo(p.ID))
}

// firstCommit creates the default branch of an empty repository, with a README.
func (s *Service) firstCommit(ctx context.Context, by actor.Actor, p *project.Project, r git.Repo) error {
	who := s.signature(by)
	first, err := r.CommitChanges(ctx, git.ChangeOptions{
		Actions: []git.Action{{Kind: git.Create, Path: "README.md", Content: []byte("# " + p.Name + "\n\n" + p.Description)}},
		Author:  who, Committer: who, Message: "Initial commit",
	})
	if err != nil {
		return fmt.Errorf("first commit of project %d: %w", p.ID, err)
	}
	return s.move(ctx, by, p, r, git.Update{Ref: git.Heads + cmp.Or(p.InitialBranch, UsualBranch), Old: git.ZeroOID, New: first.ID})
}
