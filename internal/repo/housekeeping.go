package repo

import (
	"context"
	"fmt"
	"path/filepath"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/queue"
)

// Housekeep adds a background job for a full housekeeping of a repository, for
// Maintainers and above.
func (s *Service) Housekeep(ctx context.Context, by actor.Actor, ref project.Ref) error {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := s.Queue.Add(ctx, tx, tidyWork{p.ID, true}, queue.In(lane), queue.Unique()); err != nil {
			return err
		}
		return audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: "manually_trigger_housekeeping", Entity: p.Entity(), Target: audit.Target{Type: "Project", ID: p.ID, Details: p.FullPath},
			Details: audit.Details{Message: "Housekeeping was asked for"},
		})
	})
	if err != nil {
		return fmt.Errorf("housekeeping of project %d: %w", p.ID, err)
	}
	return nil
}

// Location returns the location of a repository: its storage, and the directory
// without its suffix. Administrators only.
func (s *Service) Location(ctx context.Context, by actor.Actor, ref project.Ref) (p *project.Project, dir string, err error) {
	if p, err = s.Projects.Require(ctx, by, ref, project.NoAccess); err != nil {
		return nil, "", err
	}
	if err := by.RequireAdmin(); err != nil {
		return nil, "", err
	}
	path := pathOf(p.ID)
	return p, path[:len(path)-len(filepath.Ext(path))], nil
}
