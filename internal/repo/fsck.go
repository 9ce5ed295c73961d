package repo

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// Checked is the result of the check of one repository.
type Checked struct {
	Project  *project.Project
	AuxRepo  *AuxRepo      // set instead for an auxiliary repository
	Problems []git.Problem // none if it is intact
	Err      error         // why it could not be checked
}

// CheckAll checks every repository in the order of project IDs, then the
// auxiliary repositories, and yields the problems of each. It may take hours.
// Only the system may call it, for svc doctor. A Checked with neither has the
// error that ended the check early.
func (s *Service) CheckAll(ctx context.Context, by actor.Actor) iter.Seq[Checked] {
	return func(yield func(Checked) bool) {
		if by.ID != actor.SystemID {
			yield(Checked{Err: errs.Forbidden("")})
			return
		}
		p := db.Paging{Limit: 100, Keyset: true}
		for {
			page, err := s.Projects.List(ctx, by, project.Filter{}, project.Sort{}, p)
			if err != nil {
				yield(Checked{Err: fmt.Errorf("list projects: %w", err)})
				return
			}
			for _, at := range page.Items {
				if !yield(s.checkOne(ctx, at)) {
					return
				}
			}
			if !page.More {
				s.checkAuxRepos(ctx, yield)
				return
			}
			p.After = page.Last
		}
	}
}

func (s *Service) checkOne(ctx context.Context, p *project.Project) Checked {
	r, err := s.open(p.Storage, p.ID)
	if err != nil {
		return Checked{Project: p, Err: err}
	}
	problems, err := r.Fsck(ctx)
	if errors.Is(err, git.ErrNoRepository) {
		if p.DefaultBranch == "" {
			return Checked{Project: p} // nothing was pushed yet
		}
		return Checked{Project: p, Problems: []git.Problem{{Kind: git.ProblemMissing, Text: "the repository is missing: " + r.Path()}}}
	}
	return Checked{Project: p, Problems: problems, Err: err}
}

// checkAuxRepos is CheckAll for auxiliary repositories, in the order of their
// IDs.
func (s *Service) checkAuxRepos(ctx context.Context, yield func(Checked) bool) {
	var last int64
	for {
		list, err := auxReposAfter(ctx, s.DB, last, 100)
		if err != nil {
			yield(Checked{Err: fmt.Errorf("list auxiliary repositories: %w", err)})
			return
		}
		for _, a := range list {
			last = a.ID
			if !yield(s.checkAuxRepo(ctx, a)) {
				return
			}
		}
		if len(list) < 100 {
			return
		}
	}
}

func (s *Service) checkAuxRepo(ctx context.Context, a *AuxRepo) Checked {
	r, err := s.OpenAuxRepo(a)
	if err != nil {
		return Checked{AuxRepo: a, Err: err}
	}
	problems, err := r.Fsck(ctx)
	if errors.Is(err, git.ErrNoRepository) {
		if a.Size == 0 {
			return Checked{AuxRepo: a} // nothing was pushed yet
		}
		return Checked{AuxRepo: a, Problems: []git.Problem{{Kind: git.ProblemMissing, Text: "the repository is missing: " + r.Path()}}}
	}
	return Checked{AuxRepo: a, Problems: problems, Err: err}
}

// Name returns the name of the repository for users.
func (c Checked) Name() string {
	if c.AuxRepo != nil {
		return auxRepoPath(c.AuxRepo.Kind, c.AuxRepo.ID)
	}
	return fmt.Sprintf("%s (project %d)", c.Project.FullPath, c.Project.ID)
}
