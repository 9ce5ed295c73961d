package plan

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/plan/listing"
	"svc/internal/project"
)

// CompleteIssues suggests issues of a project for the text after "#": issues whose
// number starts with the text, or the newest issues whose title contains it.
// Requires read access to issues. NotFound.
func (s *Service) CompleteIssues(ctx context.Context, by actor.Actor, ref project.Ref, text string) ([]*Issue, error) {
	proj, err := s.Projects.RequireView(ctx, by, ref, project.IssuePart)
	if err != nil {
		return nil, err
	}
	list, err := completeIssues(ctx, s.DB, s.issuesIn(by, place{project: proj}), proj.ID, listing.NewTyped(text))
	if err != nil {
		return nil, fmt.Errorf("complete issues: %w", err)
	}
	return list, nil
}
