package plan

import (
	"context"
	"fmt"

	"svc/internal/project"
)

// MilestonesByID returns the milestones that exist, for features that store their
// IDs. The caller checks the permissions.
func (s *Service) MilestonesByID(ctx context.Context, ids []int64) (map[int64]*Milestone, error) {
	found, err := findMilestones(ctx, s.DB, ids)
	if err != nil {
		return nil, fmt.Errorf("find milestones: %w", err)
	}
	return found, nil
}

// MilestoneTitled returns the milestone of a project or of a group above it by its
// title; nil if there is none. The caller checks the permissions.
func (s *Service) MilestoneTitled(ctx context.Context, in *project.Project, title string) (*int64, error) {
	id, err := findMilestoneTitled(ctx, s.DB, place{project: in}, title)
	if err != nil {
		return nil, fmt.Errorf("find milestone: %w", err)
	}
	return id, nil
}

// UsableMilestone reports whether a project or a group above it has a milestone.
// The caller checks the permissions.
func (s *Service) UsableMilestone(ctx context.Context, in *project.Project, id int64) (bool, error) {
	ok, err := usableMilestone(ctx, s.DB, place{project: in}, id)
	if err != nil {
		return false, fmt.Errorf("find milestone %d: %w", id, err)
	}
	return ok, nil
}
