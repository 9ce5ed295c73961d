// Package errortrack implements error tracking: the client keys with which
// programs send events, the events, and the errors that similar events are
// grouped into.
package errortrack

import (
	"context"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/secret"
	"svc/internal/setting"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Queue    *queue.Queue
	Keys     *secret.Keyring
	Settings *setting.Service
	Projects *project.Service
	Now      func() time.Time
	URL      string // the external URL, without a trailing slash
	Name     string // of the service
}

// Service manages the errors of all projects.
type Service struct{ Deps }

// New returns the service.
func New(d Deps) *Service {
	s := &Service{d}
	d.Queue.Every("error_retention", time.Hour, s.Sweep)
	return s
}

// Sees reports whether an actor who can see a project may see its errors. Requires
// Reporter, even in public projects, because errors reveal internals of programs.
// False if monitoring is disabled.
func (s *Service) Sees(by actor.Actor, p *project.Project) bool {
	return p.MayRead(by, project.ErrorPart)
}

// MayChange reports whether an actor who can see the errors may resolve or ignore
// them. Requires Developer.
func (s *Service) MayChange(by actor.Actor, p *project.Project) bool {
	return p.MayChange(by, project.ErrorPart, project.Developer)
}

// reader returns a project whose errors the actor may see. NotFound.
func (s *Service) reader(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	return s.Projects.RequireView(ctx, by, ref, project.ErrorPart)
}

// maintainer returns a project to Maintainers and above. NotFound, Forbidden.
func (s *Service) maintainer(ctx context.Context, by actor.Actor, ref project.Ref, change bool) (*project.Project, error) {
	if change {
		return s.Projects.RequireChange(ctx, by, ref, project.SettingsPart, project.Maintainer)
	}
	return s.Projects.RequireView(ctx, by, ref, project.SettingsPart)
}

// record writes the audit event of a change.
func (s *Service) record(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project, kind string, target audit.Target, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: audit.Entity{Type: audit.ProjectEntity, ID: p.ID, Path: p.FullPath}, Target: target, Details: d,
	})
}
