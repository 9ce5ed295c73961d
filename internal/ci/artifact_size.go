package ci

import (
	"context"
	"fmt"

	"svc/internal/db"
)

// ArtifactSizes gives how many bytes the artifacts of projects take up, with
// the logs that were put away. It asks nobody who he is: it is shown with what
// the caller sees already.
func (s *Service) ArtifactSizes(ctx context.Context, projects []int64) (map[int64]int64, error) {
	found, err := sumSizes(ctx, s.DB, `SELECT project_id, CAST(SUM(size) AS BIGINT) FROM job_artifacts WHERE project_id IN `+db.In(len(projects))+` GROUP BY project_id`, projects)
	if err != nil {
		return nil, fmt.Errorf("sizes of artifacts: %w", err)
	}
	return found, nil
}

// GroupArtifactSizes is ArtifactSizes for groups, with all below them.
func (s *Service) GroupArtifactSizes(ctx context.Context, groups []int64) (map[int64]int64, error) {
	found, err := sumSizes(ctx, s.DB, `SELECT t.ancestor_id, CAST(SUM(a.size) AS BIGINT)
		FROM namespace_tree t JOIN projects p ON p.namespace_id = t.descendant_id JOIN job_artifacts a ON a.project_id = p.id
		WHERE p.deleted_at IS NULL AND t.ancestor_id IN `+db.In(len(groups))+` GROUP BY t.ancestor_id`, groups)
	if err != nil {
		return nil, fmt.Errorf("sizes of artifacts: %w", err)
	}
	return found, nil
}
