package project

import (
	"context"

	"svc/internal/actor"
	"svc/internal/db"
)

// deployOpens says what a deploy token or key opens of a project's code, by
// what is stored now: a credential that was taken back or has expired since
// the actor came in opens nothing.
func (s *Service) deployOpens(ctx context.Context, q db.Q, d actor.Deploy, p *Project) (read, write bool, err error) {
	if d.Kind == actor.DeployKey {
		return s.keyOpens(ctx, q, d.ID, p)
	}
	read, err = s.tokenOpens(ctx, q, d.ID, p)
	return read, false, err
}
