package plan

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/project"
)

// CountByMilestone counts the issues that MilestoneIssues lists, by milestone ID.
// NotFound.
func (s *Service) CountByMilestone(ctx context.Context, by actor.Actor, at project.Place, ids ...int64) (map[int64]Counts, error) {
	in, err := s.milestonesAt(ctx, by, at, project.NoAccess)
	if err != nil || len(ids) == 0 {
		return map[int64]Counts{}, err
	}
	w := s.issuesIn(by, in)
	found, err := countByMilestone(ctx, s.DB, w, ids)
	if err != nil {
		return nil, fmt.Errorf("count issues of milestones: %w", err)
	}
	return found, nil
}
