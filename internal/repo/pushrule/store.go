package pushrule

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"svc/internal/db"
)

func findRule(ctx context.Context, q db.Q, projectID int64) (*Rule, error) {
	var r Rule
	var rules string
	err := q.QueryRowContext(ctx, `SELECT r.id, r.project_id, r.rules, r.created_at FROM push_rules r WHERE r.project_id = ?`, projectID).
		Scan(&r.ID, &r.ProjectID, &rules, db.Time(&r.CreatedAt))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(rules), &r.Rules); err != nil {
		return nil, fmt.Errorf("push rule %d: %w", r.ID, err)
	}
	return &r, nil
}

func insertRule(ctx context.Context, q db.Q, r *Rule) error {
	rules, err := json.Marshal(r.Rules)
	if err != nil {
		return err
	}
	return q.QueryRowContext(ctx, `INSERT INTO push_rules (project_id, rules, created_at) VALUES (?, ?, ?) RETURNING id`,
		r.ProjectID, string(rules), r.CreatedAt).Scan(&r.ID)
}

func saveRule(ctx context.Context, q db.Q, r *Rule) error {
	rules, err := json.Marshal(r.Rules)
	if err != nil {
		return err
	}
	return db.ExecOne(ctx, q, `UPDATE push_rules SET rules = ? WHERE id = ?`, string(rules), r.ID)
}

func deleteRule(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM push_rules WHERE id = ?`, id)
}

// ownerOf returns the user with a confirmed email address; 0 if there is none.
func ownerOf(ctx context.Context, q db.Q, email string) (int64, error) {
	found, err := db.All(ctx, q, db.Value[int64], `
		SELECT e.user_id FROM emails e JOIN users u ON u.id = e.user_id
		WHERE lower(e.email) = ? AND e.confirmed_at IS NOT NULL AND u.deleted_at IS NULL`, strings.ToLower(email))
	if err != nil || len(found) == 0 {
		return 0, err
	}
	return found[0], nil
}

func findGroupRule(ctx context.Context, q db.Q, groupID int64) (*GroupRule, error) {
	var r GroupRule
	var rules string
	err := q.QueryRowContext(ctx, `SELECT r.id, r.namespace_id, r.rules, r.created_at FROM group_push_rules r WHERE r.namespace_id = ?`, groupID).
		Scan(&r.ID, &r.GroupID, &rules, db.Time(&r.CreatedAt))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(rules), &r.Rules); err != nil {
		return nil, fmt.Errorf("push rule of group %d: %w", r.ID, err)
	}
	return &r, nil
}

func insertGroupRule(ctx context.Context, q db.Q, r *GroupRule) error {
	rules, err := json.Marshal(r.Rules)
	if err != nil {
		return err
	}
	return q.QueryRowContext(ctx, `INSERT INTO group_push_rules (namespace_id, rules, created_at) VALUES (?, ?, ?) RETURNING id`,
		r.GroupID, string(rules), r.CreatedAt).Scan(&r.ID)
}

func saveGroupRule(ctx context.Context, q db.Q, r *GroupRule) error {
	rules, err := json.Marshal(r.Rules)
	if err != nil {
		return err
	}
	return db.ExecOne(ctx, q, `UPDATE group_push_rules SET rules = ? WHERE id = ?`, string(rules), r.ID)
}

func deleteGroupRule(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM group_push_rules WHERE id = ?`, id)
}

// inheritRule copies the push rule of the nearest group above a project. The
// path of a group is longer than those of the groups above it.
func inheritRule(ctx context.Context, q db.Q, projectID int64, at time.Time) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO push_rules (project_id, rules, created_at)
		SELECT p.id, r.rules, CAST(? AS BIGINT) FROM projects p JOIN namespace_tree t ON t.descendant_id = p.namespace_id
			JOIN group_push_rules r ON r.namespace_id = t.ancestor_id JOIN namespaces n ON n.id = t.ancestor_id
		WHERE p.id = ? ORDER BY length(n.full_path) DESC LIMIT 1`, at, projectID)
	return err
}
