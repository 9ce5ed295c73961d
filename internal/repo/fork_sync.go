package repo

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// Upstream is the project that a fork was created from, with the distance
// between the default branches of both.
type Upstream struct {
	Project *project.Project
	Distance
	CanSync bool // the actor may update the default branch of the fork
}

// Upstream compares the default branch of a fork with that of its source, for
// users who may read the code of both. NotFound if the project is not a fork, or
// one of the branches does not exist.
func (s *Service) Upstream(ctx context.Context, by actor.Actor, ref project.Ref) (*Upstream, error) {
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	u, from, theirs, err := s.upstream(ctx, by, p)
	if err != nil {
		return nil, err
	}
	ours, err := s.Tip(ctx, p, p.DefaultBranch)
	if err != nil {
		return nil, err
	}
	if u.CanSync, err = s.MayPush(ctx, by, p, p.DefaultBranch); err != nil {
		return nil, err
	}
	u.CanSync = u.CanSync && p.Can(by).Push
	if u.Distance, err = forkDistance(ctx, r, from, ours, theirs); err != nil {
		return nil, err
	}
	return u, nil
}

// upstream finds the source of a fork, and its newest commit.
func (s *Service) upstream(ctx context.Context, by actor.Actor, p *project.Project) (*Upstream, git.Repo, git.OID, error) {
	if p.ForkedFromID == nil || p.DefaultBranch == "" {
		return nil, git.Repo{}, "", errs.NotFound("Fork")
	}
	source, from, err := s.read(ctx, by, project.RefTo(*p.ForkedFromID))
	if errs.Is(err, errs.KindForbidden) || errs.Is(err, errs.KindUnauthorized) {
		err = errs.NotFound("Fork")
	}
	if err != nil {
		return nil, git.Repo{}, "", err
	}
	if source.DefaultBranch == "" {
		return nil, git.Repo{}, "", errs.NotFound("Branch")
	}
	tip, err := s.Tip(ctx, source, source.DefaultBranch)
	return &Upstream{Project: source}, from, tip, err
}

// forkDistance compares commits of a fork and of its source.
func forkDistance(ctx context.Context, fork, source git.Repo, ours, theirs git.OID) (d Distance, err error) {
	d.Ahead, d.Behind, err = fork.Whole().With(source).Distance(ctx, string(theirs), string(ours))
	return d, missing(err, "Commit")
}

// SyncFork updates the default branch of a fork with the commits of the default branch of its
// source, for users who may push to it: by a fast-forward, or by a merge commit if the fork
// has commits of its own. Unprocessable if there are conflicts; Conflict if the branch has
// moved meanwhile, or is up to date.
func (s *Service) SyncFork(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	p, r, err := s.writeSome(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	u, from, theirs, err := s.upstream(ctx, by, p)
	if err != nil {
		return nil, err
	}
	ours, err := s.Tip(ctx, p, p.DefaultBranch)
	if err != nil {
		return nil, err
	}
	d, err := forkDistance(ctx, r, from, ours, theirs)
	if err != nil {
		return nil, err
	}
	if d.Behind == 0 {
		return nil, errs.Conflict("The fork is up to date.")
	}
	if err := r.Take(ctx, from, theirs); err != nil {
		return nil, fmt.Errorf("take commits of project %d: %w", u.Project.ID, missing(err, "Commit"))
	}
	tip := theirs
	if d.Ahead > 0 {
		c, err := r.Merge(ctx, git.MergeOptions{
			Ours: string(ours), Theirs: string(theirs), Author: s.signature(by), Committer: s.signature(by),
			Message: fmt.Sprintf("Merge branch '%s' of %s into %s\n", u.Project.DefaultBranch, u.Project.FullPath, p.DefaultBranch),
		})
		if err != nil {
			return nil, unmerged(err)
		}
		tip = c.ID
	}
	return p, s.move(ctx, by, p, r, git.Update{Ref: git.Heads + p.DefaultBranch, Old: ours, New: tip})
}
