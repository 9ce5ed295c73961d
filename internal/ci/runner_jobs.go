package ci

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/db"
)

// RunnerJobFilter selects jobs of a runner; zero values choose all.
type RunnerJobFilter struct {
	Status   string
	SystemID string
	Desc     bool
}

// RunnerJobs lists the jobs that were assigned to a runner, for actors who may
// manage it: those of projects in which they have at least the Reporter role. A
// runner can serve projects that a Maintainer of one of them cannot see.
func (s *Service) RunnerJobs(ctx context.Context, by actor.Actor, id int64, f RunnerJobFilter, p db.Paging) (db.Page[*Job], error) {
	if _, err := s.Runners.Manageable(ctx, by, id); err != nil {
		return db.Page[*Job]{}, err
	}
	page, err := listRunnerJobs(ctx, s.DB, id, s.jobsOfMember(by), f, p)
	if err != nil {
		return page, fmt.Errorf("list jobs of runner %d: %w", id, err)
	}
	return page, s.fillJobs(ctx, by, page.Items)
}
