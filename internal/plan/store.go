package plan

import (
	"context"

	"svc/internal/db"
)

func nextGroupNumber(ctx context.Context, tx *db.Tx, groupID int64, kind string) (n int64, err error) {
	err = tx.QueryRowContext(ctx, `
		INSERT INTO group_counters (namespace_id, kind, value) VALUES (?, ?, 1)
		ON CONFLICT (namespace_id, kind) DO UPDATE SET value = group_counters.value + 1 RETURNING value`, groupID, kind).Scan(&n)
	return n, err
}

func changeAuthor(ctx context.Context, q db.Q, from, to int64) error {
	for _, table := range []string{"issues", "notes"} {
		if _, err := q.ExecContext(ctx, `UPDATE `+table+` SET author_id = ? WHERE author_id = ?`, to, from); err != nil {
			return err
		}
	}
	_, err := q.ExecContext(ctx, `UPDATE resource_events SET user_id = ? WHERE user_id = ?`, to, from)
	return err
}

// above selects a namespace and its ancestors, from which objects are inherited.
const above = `(SELECT t.ancestor_id FROM namespace_tree t WHERE t.descendant_id = ?)`

// below selects a namespace and its descendants.
const below = `(SELECT t.descendant_id FROM namespace_tree t WHERE t.ancestor_id = ?)`

// belowSeen selects the groups of below that match a condition on groups n. A
// subgroup can be less visible than the group above it.
func belowSeen(visible string) string {
	return `(SELECT n.id FROM namespace_tree t JOIN namespaces n ON n.id = t.descendant_id WHERE t.ancestor_id = ? AND (` + visible + `))`
}
