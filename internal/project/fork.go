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

// origins reads the projects that projects were forked from, if the actor can see
// them.
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

// CodeVisibility returns the visibility of the code of a project. A fork must not
// be more visible.
func (p *Project) CodeVisibility() Visibility {
	if p.Repository != Enabled {
		return Private
	}
	return p.Visibility
}

// underOrigin returns an error if a fork would be more visible than its source. It
// locks the source, so that a concurrent change of its visibility takes the fork
// into account.
func (s *Service) underOrigin(ctx context.Context, tx *db.Tx, p *Project, originID *int64) error {
	if originID == nil {
		return nil
	}
	if err := tx.Lock(ctx, "projects", *originID); err != nil {
		return err
	}
	limit, err := findCodeVisibility(ctx, tx, *originID)
	if errors.Is(err, db.ErrNoRows) {
		return nil // the source was deleted
	}
	if err != nil {
		return err
	}
	if p.Visibility.width() > limit.width() {
		return errs.InvalidField("visibility_level", "%s is not allowed since the fork source project has lower visibility.", p.Visibility)
	}
	return nil
}

// lowerForks reduces the visibility of the forks of a project, recursively, to
// that of its code.
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

// SetOrigin makes a project a fork of another one that the actor can see, or
// removes the fork relationship if from is nil; the open merge requests between the
// two fork networks are then closed in the background. Requires Owner, and an
// administrator to add a relationship. Conflict if it is a fork already; Invalid
// if it is more visible than the other. Removing a missing relationship is not an
// error.
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
		if id == nil {
			if err := s.Events.Unlinked.Publish(ctx, tx, Unlinked{ProjectID: found.ID, By: by.ID}); err != nil {
				return err
			}
		}
		return s.record(ctx, tx, by, "project_fork_relationship_updated", found.Entity(), audit.Target{}, event)
	})
	if err != nil {
		return nil, false, fmt.Errorf("origin of project %d: %w", found.ID, err)
	}
	p, err = s.Get(ctx, by, RefTo(found.ID))
	return p, changed, err
}

// SameNetwork reports whether two projects are in the same fork network.
func (s *Service) SameNetwork(ctx context.Context, a, b *Project) (bool, error) {
	one, err := s.root(ctx, a)
	if err != nil {
		return false, err
	}
	other, err := s.root(ctx, b)
	return one == other, err
}

// root returns the root of the fork network.
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

// RequireForkPlace returns Forbidden if the top-level group of the project
// prevents forking outside the group. into is the namespace of the fork; nil is
// that of the actor.
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
