// Package deployment implements environments, deployments, agents and resource
// groups of projects. Package ci runs the jobs that deploy.
package deployment

import (
	"context"
	"time"

	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/user"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Users    *user.Service
	Projects *project.Service
	Repos    *repo.Service
	Now      func() time.Time
}

// Service manages environments, deployments, agents and resource groups.
type Service struct {
	Deps
	modeChanged ModeListener
}

// New returns the service.
func New(d Deps) *Service { return &Service{Deps: d} }

// ModeListener is called in the transaction that changes the process mode of a
// resource group: another job may be next.
type ModeListener func(ctx context.Context, tx *db.Tx, groupID int64) error

// OnModeChange sets the ModeListener. It is called at start-up.
func (s *Service) OnModeChange(l ModeListener) { s.modeChanged = l }
