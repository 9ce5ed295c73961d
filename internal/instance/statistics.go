package instance

import (
	"context"
	"fmt"

	"svc/internal/actor"
)

// Statistics are the numbers of objects of the instance.
type Statistics struct {
	Forks, Issues, MergeRequests, Notes, Snippets, SSHKeys, Milestones, Users, ActiveUsers, Groups, Projects int64
}

// Statistics counts the objects of the instance. Administrators only.
func (s *Service) Statistics(ctx context.Context, by actor.Actor) (*Statistics, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	found, err := statistics(ctx, s.DB)
	if err != nil {
		return nil, fmt.Errorf("count objects: %w", err)
	}
	return found, nil
}
