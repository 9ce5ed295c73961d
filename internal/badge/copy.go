package badge

import (
	"context"
	"fmt"

	"svc/internal/db"
	"svc/internal/project"
)

// The functions of this file read and write the badges of a group for exports and
// imports. They check no permissions: the caller has the group from an operation
// for Owners, or imports into a draft.

// Count counts the badges of a group and of all groups below it.
func (s *Service) Count(ctx context.Context, g *project.Namespace) (int64, error) {
	n, err := countGroup(ctx, s.DB, g.ID)
	if err != nil {
		return 0, fmt.Errorf("count badges of group %d: %w", g.ID, err)
	}
	return n, nil
}

// Each calls f with each badge of a group itself, in the order in which they were
// created.
func (s *Service) Each(ctx context.Context, g *project.Namespace, f func(*Badge) error) error {
	if err := eachOfGroup(ctx, s.DB, g.ID, f); err != nil {
		return fmt.Errorf("badges of group %d: %w", g.ID, err)
	}
	return nil
}

// Put writes badges into a group of a draft. Invalid.
func (s *Service) Put(ctx context.Context, tx *db.Tx, d *project.Draft, list []*Badge) error {
	for _, b := range list {
		if err := b.apply(Fields{}); err != nil {
			return err
		}
		b.GroupID = &d.ID
		if err := insert(ctx, tx, b); err != nil {
			return err
		}
	}
	return nil
}
