package runners

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/project"
)

// Filter selects runners; zero values select all.
type Filter struct {
	Type          Type
	Status        string // a Status, or active and paused
	Paused        *bool
	Tags          []string // runners that have all of them
	VersionPrefix string
}

// ListAll lists all runners, for administrators and auditors.
func (s *Service) ListAll(ctx context.Context, by actor.Actor, f Filter, p db.Paging) (db.Page[*Runner], error) {
	if !by.Auditor {
		if err := by.RequireAdmin(); err != nil {
			return db.Page[*Runner]{}, err
		}
	}
	return s.list(ctx, db.Where{}, f, p)
}

// ListOwned lists the runners that the actor may manage: those of groups that
// they own and of projects that they maintain.
func (s *Service) ListOwned(ctx context.Context, by actor.Actor, f Filter, p db.Paging) (db.Page[*Runner], error) {
	if err := by.RequireUser(); err != nil {
		return db.Page[*Runner]{}, err
	}
	var w db.Where
	cond, args := manageable(s.Projects, by)
	w.And(cond, args...)
	return s.list(ctx, w, f, p)
}

// ListOfProject lists the runners that may take jobs of a project: its own,
// those of the groups above it, and those of the instance. Maintainers only.
func (s *Service) ListOfProject(ctx context.Context, by actor.Actor, ref project.Ref, f Filter, pg db.Paging) (db.Page[*Runner], error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return db.Page[*Runner]{}, err
	}
	return s.list(ctx, servesProject(p), f, pg)
}

// ListOfGroup lists the runners of a group, those of the groups above it, and
// those of the instance. Owners only.
func (s *Service) ListOfGroup(ctx context.Context, by actor.Actor, ref project.Ref, f Filter, pg db.Paging) (db.Page[*Runner], error) {
	g, err := s.Projects.RequireGroup(ctx, by, ref, project.Owner)
	if err != nil {
		return db.Page[*Runner]{}, err
	}
	return s.list(ctx, servesGroup(g), f, pg)
}

func (s *Service) list(ctx context.Context, w db.Where, f Filter, p db.Paging) (db.Page[*Runner], error) {
	f.where(&w, s.Now())
	page, err := listRunners(ctx, s.DB, w, p)
	if err != nil {
		return page, fmt.Errorf("list runners: %w", err)
	}
	return page, s.fillAll(ctx, page.Items)
}

// Managers lists the runner managers of a runner that the actor can see.
func (s *Service) Managers(ctx context.Context, by actor.Actor, id int64) ([]*Manager, error) {
	if _, err := s.visible(ctx, by, id); err != nil {
		return nil, err
	}
	list, err := listManagers(ctx, s.DB, id)
	if err != nil {
		return nil, fmt.Errorf("list managers of runner %d: %w", id, err)
	}
	busy, err := busyManagers(ctx, s.DB, id)
	if err != nil {
		return nil, fmt.Errorf("list managers of runner %d: %w", id, err)
	}
	for _, m := range list {
		m.Busy = slices.Contains(busy, m.ID)
	}
	return list, nil
}
