package plan

import (
	"context"
	"fmt"

	"svc/internal/project"
)

// MilestonesByID returns the milestones that exist, for features that store their
// IDs. The caller checks permissions.
func (s *Service) MilestonesByID(ctx context.Context, ids []int64) (map[int64]*Milestone, error) {
	found, err := findMilestones(ctx, s.DB, ids)
	if err != nil {
		return nil, fmt.Errorf("find milestones: %w", err)
	}
	return found, nil
}

// MilestoneTitled returns the ID of the milestone with this title in a project or
// an ancestor group, or nil. The caller checks permissions.
func (s *Service) MilestoneTitled(ctx context.Context, proj *project.Project, title string) (*int64, error) {
	id, err := findMilestoneTitled(ctx, s.DB, place{project: proj}, title)
	if err != nil {
		return nil, fmt.Errorf("find milestone: %w", err)
	}
	return id, nil
}

// UsableMilestone reports whether a milestone belongs to an owner or an ancestor
// group. The caller checks permissions.
func (s *Service) UsableMilestone(ctx context.Context, o Owner, id int64) (bool, error) {
	ok, err := usableMilestone(ctx, s.DB, o.place(), id)
	if err != nil {
		return false, fmt.Errorf("find milestone %d: %w", id, err)
	}
	return ok, nil
}
