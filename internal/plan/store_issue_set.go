package plan

import (
	"context"
	"errors"

	"svc/internal/db"
	"svc/internal/plan/listing"
)

// where returns the condition on issues i with the trait.
func (t Trait) where() (string, []any) {
	switch {
	case t.LabelID != nil:
		return `EXISTS (SELECT 1 FROM issue_labels x WHERE x.issue_id = i.id AND x.label_id = ?)`, []any{*t.LabelID}
	case t.AssigneeID != nil:
		return listing.RelatedTo(listing.Issues, Assignees), []any{*t.AssigneeID}
	}
	return `i.milestone_id = ?`, []any{*t.MilestoneID}
}

// candidates returns the issues with the trait. Without candidates, a list in
// another order would read all issues of a project to find a few.
func (t Trait) candidates() listing.Candidates {
	switch {
	case t.LabelID != nil:
		return listing.Candidates{{Query: `SELECT x.issue_id AS id FROM issue_labels x WHERE x.label_id = ? ORDER BY x.issue_id`, Args: []any{*t.LabelID}}}
	case t.AssigneeID != nil:
		return listing.UsersOf(listing.Issues, Assignees, *t.AssigneeID)
	}
	return listing.Candidates{{Query: `SELECT i.id AS id FROM issues i WHERE i.milestone_id = ? ORDER BY i.id`, Args: []any{*t.MilestoneID}}}
}

func inSet(ctx context.Context, q db.Q, w db.Where, id int64) (bool, error) {
	w.And(`i.id = ?`, id)
	return db.Exists(ctx, q, `SELECT 1 FROM `+issueTables+w.SQL(), w.Args()...)
}

// moveInSet moves an issue between two others of a set. If there is no gap
// between them, the following issues are moved.
func moveInSet(ctx context.Context, tx *db.Tx, w db.Where, id, after, before int64) error {
	position := func(issueID int64) (int64, bool, error) {
		if issueID == 0 {
			return 0, false, nil
		}
		var at int64
		row := w
		row.And(`i.id = ?`, issueID)
		err := tx.QueryRowContext(ctx, `SELECT `+positionSQL()+` FROM `+issueTables+row.SQL(), row.Args()...).Scan(&at)
		if errors.Is(err, db.ErrNoRows) {
			return 0, false, nil
		}
		return at, err == nil, err
	}
	low, hasLow, err := position(after)
	if err != nil {
		return err
	}
	high, hasHigh, err := position(before)
	if err != nil {
		return err
	}
	switch {
	case !hasLow && !hasHigh:
		return nil
	case !hasHigh:
		return savePosition(ctx, tx, id, low+gap/2)
	case !hasLow:
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

// makeRoom increases the positions of the issues of a set after low, starting
// with the issue from.
func makeRoom(ctx context.Context, tx *db.Tx, w db.Where, movedID, low, from int64) error {
	w.And(`i.id <> ? AND (`+positionSQL()+` > ? OR `+positionSQL()+` = ? AND i.id >= ?)`, movedID, low, low, from)
	_, err := tx.ExecContext(ctx, `
		UPDATE issues AS i SET position = (`+positionSQL()+`) + ?
		WHERE i.id IN (SELECT i.id FROM `+issueTables+w.SQL()+`)`, append([]any{gap}, w.Args()...)...)
	return err
}
