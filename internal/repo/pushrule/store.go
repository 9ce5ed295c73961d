package pushrule

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"svc/internal/db"
)

// kind names what differs between the push rules of projects and of groups.
type kind struct {
	table, column string // of the rules; the column has the ID of the project or group
	owners        string // table of the projects or groups
	target        string // type in audit events
	exists        string // the error if there is a rule already
}

var (
	ofProject = kind{"push_rules", "project_id", "projects", "PushRule", "Project push rule exists"}
	ofGroup   = kind{"group_push_rules", "namespace_id", "namespaces", "GroupPushRule", "Group push rule exists, try updating"}
)

// unique is the name of the index that allows one rule for each project or group.
func (k kind) unique() string { return k.table + "_" + k.column }

func (k kind) find(ctx context.Context, q db.Q, ownerID int64) (*Rule, error) {
	var r Rule
	var rules string
	err := q.QueryRowContext(ctx, `SELECT id, `+k.column+`, rules, created_at FROM `+k.table+` WHERE `+k.column+` = ?`, ownerID).
		Scan(&r.ID, &r.OwnerID, &rules, db.Time(&r.CreatedAt))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(rules), &r.Rules); err != nil {
		return nil, fmt.Errorf("row %d of %s: %w", r.ID, k.table, err)
	}
	return &r, nil
}

func (k kind) insert(ctx context.Context, q db.Q, r *Rule) error {
	rules, err := json.Marshal(r.Rules)
	if err != nil {
		return err
	}
	return q.QueryRowContext(ctx, `INSERT INTO `+k.table+` (`+k.column+`, rules, created_at) VALUES (?, ?, ?) RETURNING id`,
		r.OwnerID, string(rules), r.CreatedAt).Scan(&r.ID)
}

func (k kind) save(ctx context.Context, q db.Q, r *Rule) error {
	rules, err := json.Marshal(r.Rules)
	if err != nil {
		return err
	}
	return db.ExecOne(ctx, q, `UPDATE `+k.table+` SET rules = ? WHERE id = ?`, string(rules), r.ID)
}

func (k kind) delete(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM `+k.table+` WHERE id = ?`, id)
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
