package board

import (
	"context"
	"slices"

	"svc/internal/db"
	"svc/internal/plan"
)

// batch is the number of references that are replaced by one statement.
const batch = 500

// LabelsMerged replaces the merged labels in lists.
func LabelsMerged(ctx context.Context, tx *db.Tx, m plan.Merging) error {
	for from := range slices.Chunk(m.From, batch) {
		if err := replaceReference(ctx, tx, "board_lists", "label_id", from, m.Into); err != nil {
			return err
		}
	}
	return nil
}

// MilestonesMerged replaces the merged milestones in boards and lists.
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
