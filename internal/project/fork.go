package project

import (
	"context"
	"errors"
	"fmt"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
)

// origins reads what projects were forked from, as far as the actor sees it.
func (s *Service) origins(ctx context.Context, by actor.Actor, list ...*Project) error {
	var ids []int64
	for _, p := range list {
		if p.ForkedFromID != nil {
			ids = append(ids, *p.ForkedFromID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	found, err := findProjects(ctx, s.DB, ids)
	if err != nil {
		return err
	}
	access, err := s.accesses(ctx, s.DB, by, found)
	if err != nil {
		return err
	}
	var shown []*Project
	seen := make(map[int64]*Project, len(found))
	for _, p := range found {
		if visible(by, p.Visibility, access[p.ID].Level()) {
			seen[p.ID] = p
			shown = append(shown, p)
		}
	}
	if err := s.details(ctx, shown...); err != nil {
		return err
	}
	for _, p := range list {
		if p.ForkedFromID != nil {
			p.ForkedFrom = seen[*p.ForkedFromID]
		}
	}
	return nil
}

// CodeVisibility is who may read the code of a project without being a member.
// A fork is never wider than that of its source.
func (p *Project) CodeVisibility() Visibility {
	if p.Repository != Enabled {
		return Private
	}
	return p.Visibility
}

// underOrigin refuses a fork that would be more visible than its source. The
// source stays locked until the end of the transaction: it cannot become less
// visible meanwhile without seeing this fork.
func (s *Service) underOrigin(ctx context.Context, tx *db.Tx, p *Project, originID *int64) error {
	if originID == nil {
		return nil
	}
	if err := tx.Lock(ctx, "projects", *originID); err != nil {
		return err
	}
	limit, err := findCodeVisibility(ctx, tx, *originID)
	if errors.Is(err, db.ErrNoRows) {
		return nil // it is gone
	}
	if err != nil {
		return err
	}
	if p.Visibility.width() > limit.width() {
		return errs.InvalidField("visibility_level", "%s is not allowed since the fork source project has lower visibility.", p.Visibility)
	}
	return nil
}

// lowerForks makes the forks of a project, and theirs, no more visible than its
// code is now.
func (s *Service) lowerForks(ctx context.Context, tx *db.Tx, by actor.Actor, p *Project) error {
	limit := p.CodeVisibility()
	forks, err := findWiderForks(ctx, tx, p.ID, limit)
	if err != nil {
		return fmt.Errorf("find forks of project %d: %w", p.ID, err)
	}
	for _, fork := range forks {
		if err := saveVisibility(ctx, tx, fork.ID, limit, s.Now()); err != nil {
			return fmt.Errorf("lower fork %d of project %d: %w", fork.ID, p.ID, err)
		}
		event := audit.Details{Change: "visibility", From: string(fork.Visibility), To: string(limit)}
		if err := s.record(ctx, tx, by, "project_visibility_level_updated", fork.Entity(), audit.Target{}, event); err != nil {
			return err
		}
	}
	return nil
}

// SetOrigin makes a project a fork of another one that its Owner sees, or of
// none when from is nil. Owners only, and administrators to make one. Conflict
// when it is a fork already, Invalid when it is more visible than the other; a
// project that is none stays as it is.
func (s *Service) SetOrigin(ctx context.Context, by actor.Actor, ref Ref, from *Ref) (p *Project, changed bool, err error) {
	found, err := s.Require(ctx, by, ref, Owner)
	if err != nil {
		return nil, false, err
	}
	var origin *Project
	if from != nil {
		if err := by.RequireAdmin(); err != nil {
			return nil, false, err
		}
		if origin, err = s.Require(ctx, by, *from, NoAccess); err != nil {
			return nil, false, err
		}
		end, err := s.root(ctx, origin)
		if err != nil {
			return nil, false, err
		}
		if end == found.ID {
			return nil, false, errs.InvalidField("forked_from_project", "is the project itself, or a fork of it")
		}
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", found.ID); err != nil {
			return err
		}
		now, err := findProject(ctx, tx, found.ID)
		if err != nil {
			return err
		}
		event := audit.Details{Remove: "fork_relationship"}
		var id *int64
		switch {
		case origin != nil && now.ForkedFromID != nil:
			return errs.Conflict("Project already forked")
		case origin == nil && now.ForkedFromID == nil:
			return nil
		case origin != nil:
			if err := s.underOrigin(ctx, tx, now, &origin.ID); err != nil {
				return err
			}
			id, event = &origin.ID, audit.Details{Add: "fork_relationship", To: origin.FullPath}
		}
		changed = true
		if err := saveOrigin(ctx, tx, found.ID, id, s.Now()); err != nil {
			return err
		}
		return s.record(ctx, tx, by, "project_fork_relationship_updated", found.Entity(), audit.Target{}, event)
	})
	if err != nil {
		return nil, false, fmt.Errorf("origin of project %d: %w", found.ID, err)
	}
	p, err = s.Get(ctx, by, RefTo(found.ID))
	return p, changed, err
}

// SameNetwork reports whether two projects come from the same original.
func (s *Service) SameNetwork(ctx context.Context, a, b *Project) (bool, error) {
	one, err := s.root(ctx, a)
	if err != nil {
		return false, err
	}
	other, err := s.root(ctx, b)
	return one == other, err
}

// root is the original at the end of the line.
func (s *Service) root(ctx context.Context, p *Project) (int64, error) {
	seen := map[int64]bool{}
	id, from := p.ID, p.ForkedFromID
	for from != nil && !seen[*from] {
		id = *from
		seen[id] = true
		next, err := findOrigin(ctx, s.DB, id)
		if err != nil {
			return 0, fmt.Errorf("origin of project %d: %w", id, err)
		}
		from = next
	}
	return id, nil
}

// RequireForkPlace refuses a namespace for a fork if the top-level group of the
// project keeps forks inside: Forbidden. Nil is the namespace of the actor.
func (s *Service) RequireForkPlace(ctx context.Context, by actor.Actor, from *Project, into *int64) error {
	above, err := findAbove(ctx, s.DB, from.NamespaceID)
	if err != nil || len(above) == 0 {
		return err
	}
	top := above[len(above)-1]
	if !top.Settings.PreventForkingOutsideGroup {
		return nil
	}
	inside := false
	if into != nil {
		if inside, err = isBelow(ctx, s.DB, *into, top.ID); err != nil {
			return fmt.Errorf("groups of project %d: %w", from.ID, err)
		}
	}
	if !inside {
		return errs.Forbidden("The group %s does not allow forks outside of it.", top.FullPath)
	}
	return nil
}
