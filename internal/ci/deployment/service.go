// Package deployment implements environments, deployments, agents and resource
// groups of projects. Package ci runs the jobs that deploy.
package deployment

import (
	"context"
	"time"

	"svc/internal/db"
	"svc/internal/event"
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
	Events Events
}

// Events are the events of deployments and resource groups.
type Events struct {
	// ModeChanged is published with the ID of a resource group when its process mode has
	// changed: another job may be next.
	ModeChanged event.Event[int64]
	// StatusChanged is published when a deployment is created without a job, and when
	// a deployment starts or ends.
	StatusChanged event.Event[StatusChange]
}

// StatusChange names a deployment with a new status: by its ID or by its job.
type StatusChange struct{ ProjectID, ID, JobID int64 }

// New returns the service.
func New(d Deps) *Service { return &Service{Deps: d} }

// UserDeleted makes the ghost user the owner of the deployments of a deleted user.
func UserDeleted(ctx context.Context, tx *db.Tx, d user.Deletion) error {
	return replaceUser(ctx, tx, d.UserID, d.GhostID)
}
