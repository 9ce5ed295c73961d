package plan

import (
	"context"
	"errors"

	"svc/internal/db"
)

// where is the condition on issues i of a list.
func (l *BoardList) where() (string, []any) {
	switch {
	case l.LabelID != nil:
		return `EXISTS (SELECT 1 FROM issue_labels x WHERE x.issue_id = i.id AND x.label_id = ?)`, []any{*l.LabelID}
	case l.AssigneeID != nil:
		return having(IssueKind, Assignees), []any{*l.AssigneeID}
	}
	return `i.milestone_id = ?`, []any{*l.MilestoneID}
}

func inColumn(ctx context.Context, q db.Q, w db.Where, id int64) (bool, error) {
	w.And(`i.id = ?`, id)
	return db.Exists(ctx, q, `SELECT 1 FROM `+issueTables+w.SQL(), w.Args()...)
}

// placeCard puts an issue of a column between two others of it. Where there is
// no room the ones behind make some.
func placeCard(ctx context.Context, tx *db.Tx, w db.Where, id, after, before int64) error {
	position := func(of int64) (int64, bool, error) {
		if of == 0 {
			return 0, false, nil
		}
		var at int64
		one := w
		one.And(`i.id = ?`, of)
		err := tx.QueryRowContext(ctx, `SELECT `+placed()+` FROM `+issueTables+one.SQL(), one.Args()...).Scan(&at)
		if errors.Is(err, db.ErrNoRows) {
			return 0, false, nil
		}
		return at, err == nil, err
	}
	low, below, err := position(after)
	if err != nil {
		return err
	}
	high, above, err := position(before)
	if err != nil {
		return err
	}
	switch {
	case !below && !above:
		return nil
	case !above:
		return savePosition(ctx, tx, id, low+gap/2)
	case !below:
		return savePosition(ctx, tx, id, high-gap/2)
	}
	if high-low < 2 {
		if err := makeRoom(ctx, tx, w, id, low, before); err != nil {
			return err
		}
		high = low + gap
	}
	return savePosition(ctx, tx, id, low+(high-low)/2)
}

// makeRoom moves those of a column that stand behind a position, from one issue
// on, further back.
func makeRoom(ctx context.Context, tx *db.Tx, w db.Where, but, low, from int64) error {
	w.And(`i.id <> ? AND (`+placed()+` > ? OR `+placed()+` = ? AND i.id >= ?)`, but, low, low, from)
	_, err := tx.ExecContext(ctx, `
		UPDATE issues AS i SET position = (`+placed()+`) + ?
		WHERE i.id IN (SELECT i.id FROM `+issueTables+w.SQL()+`)`, append([]any{gap}, w.Args()...)...)
	return err
}
