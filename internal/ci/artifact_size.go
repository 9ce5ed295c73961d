package ci

import (
	"context"
	"fmt"
)

// ArtifactSizes returns how many bytes the artifacts of projects take up, with
// the logs that were put away. It checks no permissions: callers pass projects
// that they may see.
func (s *Service) ArtifactSizes(ctx context.Context, projects []int64) (map[int64]int64, error) {
	found, err := sumArtifacts(ctx, s.DB, projects)
	if err != nil {
		return nil, fmt.Errorf("sizes of artifacts: %w", err)
	}
	return found, nil
}

// GroupArtifactSizes is ArtifactSizes for groups, with all below them.
func (s *Service) GroupArtifactSizes(ctx context.Context, groups []int64) (map[int64]int64, error) {
	found, err := sumGroupArtifacts(ctx, s.DB, groups)
	if err != nil {
		return nil, fmt.Errorf("sizes of artifacts: %w", err)
	}
	return found, nil
}
