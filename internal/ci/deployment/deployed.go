package deployment

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/project"
)

// Changes are the commits that a deployment brought to its environment: those of SHA
// that are not in Before.
type Changes struct {
	Ref    string
	SHA    string
	Before string // the commit of the successful deployment before; empty if it is the first
}

// Changes returns what a deployment changed to actors who can list deployments;
// nil if it has not succeeded. NotFound.
func (s *Service) Changes(ctx context.Context, by actor.Actor, in project.Ref, id int64) (*Changes, error) {
	d, err := s.Get(ctx, by, in, id)
	if err != nil || d.Status != Success {
		return nil, err
	}
	c := &Changes{Ref: d.Ref, SHA: d.SHA}
	if c.Before, err = shaBefore(ctx, s.DB, d); err != nil {
		return nil, fmt.Errorf("deployment before %d: %w", id, err)
	}
	return c, nil
}
