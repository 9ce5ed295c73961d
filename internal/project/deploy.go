package project

import (
	"context"

	"svc/internal/actor"
	"svc/internal/db"
)

// deployOpens reports the access that a deploy token or key grants to the code of
// a project. It is read from the database, so that a credential that was revoked
// or has expired grants nothing.
func (s *Service) deployOpens(ctx context.Context, q db.Q, d actor.Deploy, p *Project) (opening, error) {
	if d.Kind == actor.DeployKey {
		return s.keyOpens(ctx, q, d.ID, p)
	}
	read, err := s.tokenOpens(ctx, q, d.ID, p)
	return opening{read: read}, err
}
