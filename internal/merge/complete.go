package merge

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/plan/listing"
	"svc/internal/project"
)

// Complete suggests merge requests of a project for the text after "!": those whose
// number starts with the text, or the newest ones whose title contains it. Requires
// read access to merge requests. NotFound.
func (s *Service) Complete(ctx context.Context, by actor.Actor, ref project.Ref, text string) ([]*MergeRequest, error) {
	in, err := s.Projects.RequireView(ctx, by, ref, project.MergePart)
	if err != nil {
		return nil, err
	}
	list, err := completeRequests(ctx, s.DB, in.ID, listing.NewTyped(text))
	if err != nil {
		return nil, fmt.Errorf("complete merge requests: %w", err)
	}
	return list, nil
}
