// Package terraform stores the states of Terraform and OpenTofu: it is the server
// side of their http backend, with locks and versions.
package terraform

import (
	"context"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/blob"
	"svc/internal/ci"
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
	Blobs    blob.Store
	Keys     *secret.Keyring
	Settings *setting.Service
	CI       *ci.Service
	Now      func() time.Time
}

// Service manages the states of all projects.
type Service struct{ Deps }

// New returns the service.
func New(d Deps) *Service {
	s := &Service{d}
	queue.Handle(d.Queue, s.dropUnused)
	return s
}

// reader returns a project to those who may read its states: Developers and
// above. States contain passwords, so others never see them. A job token has the
// permissions of its user in projects that accept it. NotFound, Forbidden.
func (s *Service) reader(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	by, p, err := s.CI.JobOpens(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	return p, p.View(by, project.InfrastructurePart)
}

// writer returns a project to those who may change its states: Maintainers and
// above. NotFound, Forbidden.
func (s *Service) writer(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	by, p, err := s.CI.JobOpens(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	return p, p.Change(by, project.InfrastructurePart, project.Maintainer)
}

func (s *Service) record(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project, kind string, st *State, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: audit.Entity{Type: audit.ProjectEntity, ID: p.ID, Path: p.FullPath},
		Target: audit.Target{Type: "Terraform::State", ID: st.ID, Details: st.Name}, Details: d,
	})
}
