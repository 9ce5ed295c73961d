package badge

import (
	"context"
	"fmt"

	"svc/internal/db"
	"svc/internal/project"
)

// The functions of this file read and write the badges of a group or project for
// exports and imports. They check no permissions: the caller has it from an operation
// for Owners or Maintainers, or imports into a draft.

// Count counts the badges of a group and of all groups below it.
func (s *Service) Count(ctx context.Context, g *project.Namespace) (int64, error) {
	n, err := countGroup(ctx, s.DB, g.ID)
	if err != nil {
		return 0, fmt.Errorf("count badges of group %d: %w", g.ID, err)
	}
	return n, nil
}

// Each calls f with each badge of a group itself, in the order of their creation.
func (s *Service) Each(ctx context.Context, g *project.Namespace, f func(*Badge) error) error {
	if err := eachOf(ctx, s.DB, owner{group: g}, f); err != nil {
		return fmt.Errorf("badges of group %d: %w", g.ID, err)
	}
	return nil
}

// EachOfProject is Each for a project.
func (s *Service) EachOfProject(ctx context.Context, p *project.Project, f func(*Badge) error) error {
	if err := eachOf(ctx, s.DB, owner{project: p}, f); err != nil {
		return fmt.Errorf("badges of project %d: %w", p.ID, err)
	}
	return nil
}

// Put writes badges into a draft. Invalid.
func (s *Service) Put(ctx context.Context, tx *db.Tx, d *project.Draft, list []*Badge) error {
	for _, b := range list {
		if err := b.apply(Fields{}); err != nil {
			return err
		}
		if b.GroupID = &d.ID; d.Project {
			b.ProjectID, b.GroupID = &d.ID, nil
		}
		if err := insert(ctx, tx, b); err != nil {
			return err
		}
	}
	return nil
}
