package merge

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/db"
	"svc/internal/project"
)

const ruleColumns = `r.id, r.project_id, r.merge_request_id, r.source_rule_id, r.type, r.name, r.section, r.roles, r.approvals_required, r.all_protected, r.created_at`

func scanRule(s db.Scanner) (*ApprovalRule, error) {
	var r ApprovalRule
	var roles string
	err := s.Scan(&r.ID, &r.ProjectID, &r.RequestID, &r.SourceID, (*string)(&r.Type), &r.Name, &r.Section, &roles, &r.Required, &r.AllProtected, db.Time(&r.CreatedAt))
	for role := range strings.SplitSeq(roles, ",") {
		if level, err := strconv.ParseInt(role, 10, 64); err == nil {
			r.roles = append(r.roles, project.Level(level))
		}
	}
	return &r, err
}

// findProjectRules returns the rules of projects, in order of creation.
func findProjectRules(ctx context.Context, q db.Q, projectIDs []int64) ([]*ApprovalRule, error) {
	return findRules(ctx, q, `r.merge_request_id IS NULL AND r.project_id`, projectIDs)
}

// findRequestRules returns the rules of merge requests, in order of creation.
func findRequestRules(ctx context.Context, q db.Q, requestIDs []int64) ([]*ApprovalRule, error) {
	return findRules(ctx, q, `r.merge_request_id IS NOT NULL AND r.merge_request_id`, requestIDs)
}

func findRules(ctx context.Context, q db.Q, column string, ids []int64) ([]*ApprovalRule, error) {
	var list []*ApprovalRule
	for part := range slices.Chunk(ids, 300) {
		found, err := db.All(ctx, q, scanRule, `SELECT `+ruleColumns+` FROM approval_rules r WHERE `+column+` IN `+db.In(len(part))+` ORDER BY r.id`, db.Any(part)...)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return list, fillRuleIDs(ctx, q, list)
}

// ruleParts returns the tables of the users, groups and branches of a rule.
func ruleParts(r *ApprovalRule) []struct {
	table, column string
	ids           *[]int64
} {
	return []struct {
		table, column string
		ids           *[]int64
	}{{"approval_rule_users", "user_id", &r.userIDs}, {"approval_rule_groups", "group_id", &r.groupIDs}, {"approval_rule_branches", "protected_ref_id", &r.branchIDs}}
}

// fillRuleIDs reads the users, groups and branches of rules.
func fillRuleIDs(ctx context.Context, q db.Q, list []*ApprovalRule) error {
	byID, ids := map[int64]*ApprovalRule{}, make([]int64, len(list))
	for i, r := range list {
		byID[r.ID], ids[i] = r, r.ID
	}
	for part := range slices.Chunk(ids, 300) {
		for i, of := range ruleParts(&ApprovalRule{}) {
			_, err := db.All(ctx, q, func(s db.Scanner) (struct{}, error) {
				var rule, id int64
				err := s.Scan(&rule, &id)
				if err == nil {
					to := ruleParts(byID[rule])[i].ids
					*to = append(*to, id)
				}
				return struct{}{}, err
			}, `SELECT approval_rule_id, `+of.column+` FROM `+of.table+` WHERE approval_rule_id IN `+db.In(len(part))+` ORDER BY approval_rule_id, `+of.column, db.Any(part)...)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func insertRule(ctx context.Context, tx *db.Tx, r *ApprovalRule) error {
	levels := make([]string, len(r.roles))
	for i, level := range r.roles {
		levels[i] = strconv.FormatInt(int64(level), 10)
	}
	err := tx.QueryRowContext(ctx, `
		INSERT INTO approval_rules (project_id, merge_request_id, source_rule_id, type, name, section, roles, approvals_required, all_protected, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		r.ProjectID, r.RequestID, r.SourceID, string(r.Type), r.Name, r.Section, strings.Join(levels, ","), r.Required, r.AllProtected, r.CreatedAt).Scan(&r.ID)
	if err != nil {
		return err
	}
	return saveRuleIDs(ctx, tx, r)
}

func saveRule(ctx context.Context, tx *db.Tx, r *ApprovalRule) error {
	err := db.ExecOne(ctx, tx, `UPDATE approval_rules SET name = ?, approvals_required = ?, all_protected = ? WHERE id = ?`, r.Name, r.Required, r.AllProtected, r.ID)
	if err != nil {
		return db.NotFound(err, "")
	}
	for _, of := range ruleParts(r) {
		if _, err := tx.ExecContext(ctx, `DELETE FROM `+of.table+` WHERE approval_rule_id = ?`, r.ID); err != nil {
			return err
		}
	}
	return saveRuleIDs(ctx, tx, r)
}

func saveRuleIDs(ctx context.Context, tx *db.Tx, r *ApprovalRule) error {
	for _, of := range ruleParts(r) {
		for part := range slices.Chunk(*of.ids, 100) {
			var args []any
			for _, id := range part {
				args = append(args, r.ID, id)
			}
			_, err := tx.ExecContext(ctx, `INSERT INTO `+of.table+` (approval_rule_id, `+of.column+`) VALUES (?, ?)`+strings.Repeat(`, (?, ?)`, len(part)-1), args...)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func deleteRule(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM approval_rules WHERE id = ?`, id)
}

// findApprovals returns the approvals of merge requests, oldest first.
func findApprovals(ctx context.Context, q db.Q, requestIDs []int64) ([]Approval, error) {
	var list []Approval
	for part := range slices.Chunk(requestIDs, 300) {
		found, err := db.All(ctx, q, func(s db.Scanner) (a Approval, err error) {
			err = s.Scan(&a.RequestID, &a.UserID, &a.Head, db.Time(&a.At))
			return a, err
		}, `SELECT merge_request_id, user_id, head_sha, created_at FROM approvals WHERE merge_request_id IN `+db.In(len(part))+` ORDER BY merge_request_id, created_at, user_id`, db.Any(part)...)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return list, nil
}

// insertApproval adds an approval. It returns false if the user has already
// approved.
func insertApproval(ctx context.Context, tx *db.Tx, a Approval) (bool, error) {
	return db.ExecAny(ctx, tx, `INSERT INTO approvals (merge_request_id, user_id, head_sha, created_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		a.RequestID, a.UserID, a.Head, a.At)
}

// deleteApprovals deletes the approvals of a merge request by the given users, or
// all with nil, and returns the IDs of the users whose approvals were deleted.
func deleteApprovals(ctx context.Context, tx *db.Tx, requestID int64, userIDs []int64) ([]int64, error) {
	query, args := `DELETE FROM approvals WHERE merge_request_id = ?`, []any{requestID}
	if userIDs != nil {
		if len(userIDs) == 0 {
			return nil, nil
		}
		query, args = query+` AND user_id IN `+db.In(len(userIDs)), append(args, db.Any(userIDs)...)
	}
	ids, err := db.All(ctx, tx, db.Value[int64], query+` RETURNING user_id`, args...)
	slices.Sort(ids)
	return ids, err
}

// touchRequest sets updated_at of a merge request. NotFound.
func touchRequest(ctx context.Context, tx *db.Tx, id int64, at time.Time) error {
	return db.NotFound(db.ExecOne(ctx, tx, `UPDATE merge_requests SET updated_at = ? WHERE id = ?`, at, id), "Merge Request")
}

// findOwnersSync returns the version and the CODEOWNERS file that the code owner
// rules of a merge request were generated from. ErrNoRows.
func findOwnersSync(ctx context.Context, q db.Q, requestID int64) (versionID int64, file string, err error) {
	err = q.QueryRowContext(ctx, `SELECT version_id, file FROM merge_request_owners WHERE merge_request_id = ?`, requestID).Scan(&versionID, &file)
	return versionID, file, err
}

func saveOwnersSync(ctx context.Context, tx *db.Tx, requestID, versionID int64, file string) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO merge_request_owners (merge_request_id, version_id, file) VALUES (?, ?, ?)
		ON CONFLICT (merge_request_id) DO UPDATE SET version_id = excluded.version_id, file = excluded.file`, requestID, versionID, file)
	return err
}

func deleteOwnerRules(ctx context.Context, tx *db.Tx, requestID int64) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM approval_rules WHERE merge_request_id = ? AND type = 'code_owner'`, requestID)
	return err
}

// saveCommitters saves the users who committed to the newest version.
func saveCommitters(ctx context.Context, tx *db.Tx, requestID int64, userIDs []int64) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM merge_request_committers WHERE merge_request_id = ?`, requestID); err != nil {
		return err
	}
	for part := range slices.Chunk(userIDs, 100) {
		var args []any
		for _, id := range part {
			args = append(args, requestID, id)
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO merge_request_committers (merge_request_id, user_id) VALUES (?, ?)`+strings.Repeat(`, (?, ?)`, len(part)-1), args...); err != nil {
			return err
		}
	}
	return nil
}

func findCommitters(ctx context.Context, q db.Q, requestIDs []int64) (map[int64][]int64, error) {
	found := map[int64][]int64{}
	for part := range slices.Chunk(requestIDs, 300) {
		_, err := db.All(ctx, q, func(s db.Scanner) (struct{}, error) {
			var request, id int64
			err := s.Scan(&request, &id)
			found[request] = append(found[request], id)
			return struct{}{}, err
		}, `SELECT merge_request_id, user_id FROM merge_request_committers WHERE merge_request_id IN `+db.In(len(part)), db.Any(part)...)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// findUsernames returns the usernames of users, ordered by user ID.
func findUsernames(ctx context.Context, q db.Q, ids []int64) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `SELECT u.username FROM users u WHERE u.id IN `+db.In(len(ids))+` ORDER BY u.id`, db.Any(ids)...)
}

// findAdmins returns the users among ids who are active administrators.
func findAdmins(ctx context.Context, q db.Q, ids []int64) (map[int64]bool, error) {
	found := map[int64]bool{}
	for part := range slices.Chunk(ids, 300) {
		list, err := db.All(ctx, q, db.Value[int64], `SELECT u.id FROM users u WHERE u.id IN `+db.In(len(part))+` AND u.admin AND u.state = 'active' AND u.deleted_at IS NULL`, db.Any(part)...)
		if err != nil {
			return nil, err
		}
		for _, id := range list {
			found[id] = true
		}
	}
	return found, nil
}
