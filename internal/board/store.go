package board

import (
	"context"
	"strings"

	"svc/internal/db"
	"svc/internal/plan"
)

// ids returns the values of the columns project_id and namespace_id. One of them
// is NULL.
func ids(o plan.Owner) (projectID, namespaceID *int64) {
	if o.Project != nil {
		return &o.Project.ID, nil
	}
	return nil, &o.Group.ID
}

// column returns the column that refers to the owner, and its value.
func column(o plan.Owner) (name string, id int64) {
	if o.Project != nil {
		return "project_id", o.Project.ID
	}
	return "namespace_id", o.Group.ID
}

const boardColumns = `b.id, b.project_id, b.namespace_id, b.name, b.hide_backlog_list, b.hide_closed_list, b.milestone_id, b.assignee_id, b.weight, b.labels, b.created_at`

func scanBoard(s db.Scanner) (*Board, error) {
	var b Board
	var labels string
	err := s.Scan(&b.ID, &b.ProjectID, &b.GroupID, &b.Name, &b.HideBacklog, &b.HideClosed, &b.MilestoneID, &b.AssigneeID, &b.Weight, &labels, db.Time(&b.CreatedAt))
	if labels != "" {
		b.LabelNames = strings.SplitN(labels, ",", maxLabels+1)
		b.LabelNames = b.LabelNames[:min(len(b.LabelNames), maxLabels)] // older rows may have more
	}
	return &b, err
}

func listBoards(ctx context.Context, d *db.DB, o plan.Owner, p db.Paging) (db.Page[*Board], error) {
	var w db.Where
	column, id := column(o)
	w.And("b."+column+" = ?", id)
	return db.List(ctx, d, db.Query[*Board]{
		Columns: boardColumns, From: "boards b", Where: w, Order: []db.Order{{Name: "b.id"}}, Scan: scanBoard,
		Keys: func(b *Board) []any { return []any{b.ID} },
	}, p)
}

func findBoard(ctx context.Context, q db.Q, o plan.Owner, id int64) (*Board, error) {
	column, owner := column(o)
	return scanBoard(q.QueryRowContext(ctx, `SELECT `+boardColumns+` FROM boards b WHERE b.id = ? AND b.`+column+` = ?`, id, owner))
}

func insertBoard(ctx context.Context, q db.Q, b *Board) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO boards (project_id, namespace_id, name, hide_backlog_list, hide_closed_list, milestone_id, assignee_id, weight, labels, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		b.ProjectID, b.GroupID, b.Name, b.HideBacklog, b.HideClosed, b.MilestoneID, b.AssigneeID, b.Weight, strings.Join(b.LabelNames, ","), b.CreatedAt).Scan(&b.ID)
}

func saveBoard(ctx context.Context, q db.Q, b *Board) error {
	return db.NotFound(db.ExecOne(ctx, q, `
		UPDATE boards SET name = ?, hide_backlog_list = ?, hide_closed_list = ?, milestone_id = ?, assignee_id = ?, weight = ?, labels = ? WHERE id = ?`,
		b.Name, b.HideBacklog, b.HideClosed, b.MilestoneID, b.AssigneeID, b.Weight, strings.Join(b.LabelNames, ","), b.ID), "Board")
}

func deleteBoard(ctx context.Context, q db.Q, o plan.Owner, id int64) error {
	column, owner := column(o)
	return db.NotFound(db.ExecOne(ctx, q, `DELETE FROM boards WHERE id = ? AND `+column+` = ?`, id, owner), "Board")
}

const listColumns = `l.id, l.board_id, l.position, l.label_id, l.assignee_id, l.milestone_id`

func scanList(s db.Scanner) (*List, error) {
	var l List
	err := s.Scan(&l.ID, &l.BoardID, &l.Position, &l.LabelID, &l.AssigneeID, &l.MilestoneID)
	return &l, err
}

func findLists(ctx context.Context, q db.Q, boards []int64) ([]*List, error) {
	return db.All(ctx, q, scanList, `SELECT `+listColumns+` FROM board_lists l WHERE l.board_id IN `+db.In(len(boards))+` ORDER BY l.board_id, l.position, l.id`, db.Any(boards)...)
}

func insertList(ctx context.Context, tx *db.Tx, l *List) error {
	if err := tx.Lock(ctx, "boards", l.BoardID); err != nil {
		return err
	}
	return tx.QueryRowContext(ctx, `
		INSERT INTO board_lists (board_id, position, label_id, assignee_id, milestone_id)
		SELECT CAST(? AS BIGINT), COALESCE(max(o.position) + 1, 0), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT) FROM board_lists o WHERE o.board_id = ?
		RETURNING id, position`, l.BoardID, l.LabelID, l.AssigneeID, l.MilestoneID, l.BoardID).Scan(&l.ID, &l.Position)
}

func saveListOrder(ctx context.Context, tx *db.Tx, order []*List) error {
	for position, l := range order {
		if _, err := tx.ExecContext(ctx, `UPDATE board_lists SET position = ? WHERE id = ?`, int64(position), l.ID); err != nil {
			return err
		}
	}
	return nil
}

func deleteList(ctx context.Context, q db.Q, id int64) error {
	return db.NotFound(db.ExecOne(ctx, q, `DELETE FROM board_lists WHERE id = ?`, id), "List")
}

func insertListAt(ctx context.Context, q db.Q, l *List) error {
	return q.QueryRowContext(ctx, `INSERT INTO board_lists (board_id, position, label_id, assignee_id, milestone_id) VALUES (?, ?, ?, ?, ?) RETURNING id`,
		l.BoardID, l.Position, l.LabelID, l.AssigneeID, l.MilestoneID).Scan(&l.ID)
}

func countBoards(ctx context.Context, q db.Q, groupID int64) (n int64, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT count(*) FROM boards WHERE namespace_id IN (SELECT t.descendant_id FROM namespace_tree t WHERE t.ancestor_id = ?)`, groupID).Scan(&n)
	return n, err
}

// replaceReference replaces references to labels or milestones in a column.
func replaceReference(ctx context.Context, tx *db.Tx, table, column string, from []int64, to int64) error {
	_, err := tx.ExecContext(ctx, `UPDATE `+table+` SET `+column+` = ? WHERE `+column+` IN `+db.In(len(from)), append([]any{to}, db.Any(from)...)...)
	return err
}
