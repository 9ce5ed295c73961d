package board

import (
	"context"
	"fmt"

	"svc/internal/db"
	"svc/internal/plan"
	"svc/internal/project"
)

// The functions in this file read and write the boards of a group or project for
// exports and imports. They do not check permissions: the caller requires Owner of a
// group or Maintainer of a project for exports, and imports into a draft.

// Count counts the boards of a group and its subgroups.
func (s *Service) Count(ctx context.Context, g *project.Namespace) (int64, error) {
	n, err := countBoards(ctx, s.DB, g.ID)
	if err != nil {
		return 0, fmt.Errorf("count boards of group %d: %w", g.ID, err)
	}
	return n, nil
}

// Each calls f with the boards of a group or project and their lists, in batches, in
// order of creation.
func (s *Service) Each(ctx context.Context, o plan.Owner, f func([]*Board) error) error {
	paging := db.Paging{Limit: 100, Keyset: true}
	for {
		page, err := listBoards(ctx, s.DB, o, paging)
		if err != nil {
			return fmt.Errorf("list boards: %w", err)
		}
		if len(page.Items) == 0 {
			return nil
		}
		if err := s.fill(ctx, o, page.Items...); err != nil {
			return err
		}
		if err := f(page.Items); err != nil {
			return err
		}
		if !page.More {
			return nil
		}
		paging.After = page.Last
	}
}

// Put inserts a board with its lists into a draft. The caller has
// resolved its references with plan.Service.FindLabel and FindMilestone. Invalid.
func (s *Service) Put(ctx context.Context, tx *db.Tx, d *project.Draft, b *Board) error {
	if err := b.checkFields(); err != nil {
		return err
	}
	if b.GroupID = &d.ID; d.Project {
		b.ProjectID, b.GroupID = &d.ID, nil
	}
	if err := insertBoard(ctx, tx, b); err != nil {
		return err
	}
	for i, l := range b.Lists {
		l.BoardID, l.Position = b.ID, int64(i)
		if err := insertListAt(ctx, tx, l); err != nil {
			return err
		}
	}
	return nil
}
