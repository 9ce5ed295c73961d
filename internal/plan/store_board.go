package plan

import (
	"context"
	"strings"

	"svc/internal/db"
)

const boardColumns = `b.id, b.project_id, b.namespace_id, b.name, b.hide_backlog_list, b.hide_closed_list, b.milestone_id, b.assignee_id, b.weight, b.labels, b.created_at`

func scanBoard(s db.Scanner) (*Board, error) {
	var b Board
	var labels string
	err := s.Scan(&b.ID, &b.ProjectID, &b.GroupID, &b.Name, &b.HideBacklog, &b.HideClosed, &b.MilestoneID, &b.AssigneeID, &b.Weight, &labels, db.Time(&b.CreatedAt))
	if labels != "" {
		b.LabelNames = strings.Split(labels, ",")
	}
	return &b, err
}

func listBoards(ctx context.Context, d *db.DB, in place, p db.Paging) (db.Page[*Board], error) {
	var w db.Where
	column, id := in.column()
	w.And("b."+column+" = ?", id)
	return db.List(ctx, d, db.Query[*Board]{
		Columns: boardColumns, From: "boards b", Where: w, Order: []db.Order{{Name: "b.id"}}, Scan: scanBoard,
		Keys: func(b *Board) []any { return []any{b.ID} },
	}, p)
}

func findBoard(ctx context.Context, q db.Q, in place, id int64) (*Board, error) {
	column, owner := in.column()
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

func deleteBoard(ctx context.Context, q db.Q, in place, id int64) error {
	column, owner := in.column()
	return db.NotFound(db.ExecOne(ctx, q, `DELETE FROM boards WHERE id = ? AND `+column+` = ?`, id, owner), "Board")
}

const boardListColumns = `l.id, l.board_id, l.position, l.label_id, l.assignee_id, l.milestone_id`

func scanBoardList(s db.Scanner) (*BoardList, error) {
	var l BoardList
	err := s.Scan(&l.ID, &l.BoardID, &l.Position, &l.LabelID, &l.AssigneeID, &l.MilestoneID)
	return &l, err
}

func findBoardLists(ctx context.Context, q db.Q, boards []int64) ([]*BoardList, error) {
	return db.All(ctx, q, scanBoardList, `SELECT `+boardListColumns+` FROM board_lists l WHERE l.board_id IN `+db.In(len(boards))+` ORDER BY l.board_id, l.position, l.id`, db.Any(boards)...)
}

func insertBoardList(ctx context.Context, tx *db.Tx, l *BoardList) error {
	if err := tx.Lock(ctx, "boards", l.BoardID); err != nil {
		return err
	}
	return tx.QueryRowContext(ctx, `
		INSERT INTO board_lists (board_id, position, label_id, assignee_id, milestone_id)
		SELECT CAST(? AS BIGINT), COALESCE(max(o.position) + 1, 0), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT) FROM board_lists o WHERE o.board_id = ?
		RETURNING id, position`, l.BoardID, l.LabelID, l.AssigneeID, l.MilestoneID, l.BoardID).Scan(&l.ID, &l.Position)
}

func saveListOrder(ctx context.Context, tx *db.Tx, order []*BoardList) error {
	for position, l := range order {
		if _, err := tx.ExecContext(ctx, `UPDATE board_lists SET position = ? WHERE id = ?`, int64(position), l.ID); err != nil {
			return err
		}
	}
	return nil
}

func deleteBoardList(ctx context.Context, q db.Q, id int64) error {
	return db.NotFound(db.ExecOne(ctx, q, `DELETE FROM board_lists WHERE id = ?`, id), "List")
}

func findLabels(ctx context.Context, q db.Q, ids []int64) (map[int64]*Label, error) {
	found := map[int64]*Label{}
	if len(ids) == 0 {
		return found, nil
	}
	list, err := db.All(ctx, q, scanLabel, `SELECT `+labelColumns+` FROM labels l`+labelJoin+` WHERE l.id IN `+db.In(len(ids)), append([]any{0}, db.Any(ids)...)...)
	for _, l := range list {
		found[l.ID] = l
	}
	return found, err
}
