package board

import (
	"context"
	"slices"

	"svc/internal/db"
	"svc/internal/plan"
)

// batch is the number of references that one statement replaces.
const batch = 500

// LabelsMerged replaces merged labels in lists of boards.
func LabelsMerged(ctx context.Context, tx *db.Tx, m plan.Merging) error {
	for from := range slices.Chunk(m.From, batch) {
		if err := replaceReference(ctx, tx, "board_lists", "label_id", from, m.Into); err != nil {
			return err
		}
	}
	return nil
}

// MilestonesMerged replaces merged milestones in boards and their lists.
func MilestonesMerged(ctx context.Context, tx *db.Tx, m plan.Merging) error {
	for from := range slices.Chunk(m.From, batch) {
		for _, table := range []string{"boards", "board_lists"} {
			if err := replaceReference(ctx, tx, table, "milestone_id", from, m.Into); err != nil {
				return err
			}
		}
	}
	return nil
}
