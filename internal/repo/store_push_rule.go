package repo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"svc/internal/db"
)

func findPushRule(ctx context.Context, q db.Q, projectID int64) (*PushRule, error) {
	var r PushRule
	var rules string
	err := q.QueryRowContext(ctx, `SELECT r.id, r.project_id, r.rules, r.created_at FROM push_rules r WHERE r.project_id = ?`, projectID).
		Scan(&r.ID, &r.ProjectID, &rules, db.Time(&r.CreatedAt))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(rules), &r.PushRules); err != nil {
		return nil, fmt.Errorf("push rule %d: %w", r.ID, err)
	}
	return &r, nil
}

func insertPushRule(ctx context.Context, q db.Q, r *PushRule) error {
	rules, err := json.Marshal(r.PushRules)
	if err != nil {
		return err
	}
	return q.QueryRowContext(ctx, `INSERT INTO push_rules (project_id, rules, created_at) VALUES (?, ?, ?) RETURNING id`,
		r.ProjectID, string(rules), r.CreatedAt).Scan(&r.ID)
}

func savePushRule(ctx context.Context, q db.Q, r *PushRule) error {
	rules, err := json.Marshal(r.PushRules)
	if err != nil {
		return err
	}
	return db.ExecOne(ctx, q, `UPDATE push_rules SET rules = ? WHERE id = ?`, string(rules), r.ID)
}

func deletePushRule(ctx context.Context, q db.Q, id int64) error {
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
