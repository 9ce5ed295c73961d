package project

import (
	"context"
	"encoding/json"
	"fmt"

	"svc/internal/db"
)

// text returns the stored form of rules: JSON, or empty if nothing is required.
func (r MergeRules) text() (string, error) {
	if r == (MergeRules{}) {
		return "", nil
	}
	text, err := json.Marshal(r)
	return string(text), err
}

func parseRules(text string) (r MergeRules, err error) {
	if text != "" {
		if err = json.Unmarshal([]byte(text), &r); err != nil {
			err = fmt.Errorf("merge rules: %w", err)
		}
	}
	return r, err
}

// treeRule is a group and one of the groups whose rules apply to it: the group
// itself or an ancestor.
type treeRule struct {
	id     int64
	stored string // stored rules of the group
	above  *Namespace
}

// findBelow returns the IDs of a group and its descendants.
func findBelow(ctx context.Context, q db.Q, id int64) ([]int64, error) {
	return db.All(ctx, q, func(s db.Scanner) (id int64, err error) {
		err = s.Scan(&id)
		return id, err
	}, `SELECT d.descendant_id FROM namespace_tree d WHERE d.ancestor_id = ? ORDER BY d.depth, d.descendant_id`, id)
}

// findTreeRules returns a group and its descendants, each with itself and its
// ancestors, nearest first.
func findTreeRules(ctx context.Context, q db.Q, id int64) ([]treeRule, error) {
	return db.All(ctx, q, func(s db.Scanner) (r treeRule, err error) {
		n := &Namespace{Settings: defaultGroupSettings()}
		var settings string
		if err = s.Scan(&r.id, &r.stored, &n.ID, &n.ParentID, &settings); err != nil {
			return r, err
		}
		r.above = n
		return r, json.Unmarshal([]byte(settings), &n.Settings)
	}, `SELECT m.id, m.merge_rules, n.id, n.parent_id, n.settings
		FROM namespaces m JOIN namespace_tree t ON t.descendant_id = m.id JOIN namespaces n ON n.id = t.ancestor_id
		WHERE m.id IN `+below+` ORDER BY m.id, t.depth`, id)
}

func saveRules(ctx context.Context, q db.Q, id int64, rules string) error {
	return db.ExecOne(ctx, q, `UPDATE namespaces SET merge_rules = ? WHERE id = ?`, rules, id)
}
