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

// Checked is what a check of one repository found.
type Checked struct {
	Project  *project.Project
	Problems []git.Problem // none for a repository that is whole
	Err      error         // why it could not be checked
}

// CheckAll reads all of every repository, in the order of the projects' ids,
// and gives what is wrong with each. It may take hours. Only the system may,
// for svc doctor. A Checked without a project tells why it ended early.
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
			return Checked{Project: p} // nobody has pushed yet
		}
		return Checked{Project: p, Problems: []git.Problem{{Kind: git.ProblemMissing, Text: "the repository is not there: " + r.Path()}}}
	}
	return Checked{Project: p, Problems: problems, Err: err}
}
