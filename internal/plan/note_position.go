package plan

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"svc/internal/db"
	"svc/internal/plan/diffnote"
)

// At returns the position of a diff note in the newest version of the diff that
// has its line.
func (n *Note) At() *diffnote.Position { return cmp.Or(n.Current, n.Position) }

// DiffNotes returns the newest diff notes on a target, for the feature that owns
// the diff.
func (s *Service) DiffNotes(ctx context.Context, on Target, limit int) ([]*Note, error) {
	list, err := findDiffNotes(ctx, s.DB, on, limit)
	if err != nil {
		return nil, fmt.Errorf("diff notes on %s %d: %w", on.Kind, on.ID, err)
	}
	return list, nil
}

// MoveNotes saves the current positions of diff notes by note ID.
func (s *Service) MoveNotes(ctx context.Context, to map[int64]*diffnote.Position) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		for _, id := range slices.Sorted(maps.Keys(to)) { // in a fixed order, to avoid deadlocks
			if err := saveCurrentPosition(ctx, tx, id, to[id]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("move diff notes: %w", err)
	}
	return nil
}
