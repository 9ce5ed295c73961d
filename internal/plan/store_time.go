package plan

import (
	"context"
	"time"

	"svc/internal/db"
)

func saveTime(ctx context.Context, tx *db.Tx, i *Issuable) error {
	return db.NotFound(db.ExecOne(ctx, tx, `UPDATE `+i.Kind.table()+`s SET time_estimate = ?, time_spent = ? WHERE id = ?`,
		i.TimeEstimate, i.TimeSpent, i.ID), i.Kind.name())
}

func insertTimelog(ctx context.Context, tx *db.Tx, i *Issuable, userID int64, spent Spend, at, now time.Time) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO timelogs (project_id, noteable_type, noteable_id, user_id, seconds, spent_at, summary, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		i.ProjectID, string(i.Kind), i.ID, userID, spent.Seconds, at, spent.Summary, now)
	return err
}

func deleteTimelogs(ctx context.Context, tx *db.Tx, kind Kind, ids []int64) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM timelogs WHERE noteable_type = ? AND noteable_id IN `+db.In(len(ids)), append([]any{string(kind)}, db.Any(ids)...)...)
	return err
}

// copyTime copies the time estimate of an issue to a copy. If the issue is moved,
// its timelogs are moved as well.
func copyTime(ctx context.Context, tx *db.Tx, from, to *Issue, move bool) error {
	if !move {
		to.TimeSpent = 0
		return saveTime(ctx, tx, &to.Issuable)
	}
	if _, err := tx.ExecContext(ctx, `UPDATE timelogs SET project_id = ?, noteable_id = ? WHERE noteable_type = ? AND noteable_id = ?`,
		to.ProjectID, to.ID, string(IssueKind), from.ID); err != nil {
		return err
	}
	if err := saveTime(ctx, tx, &to.Issuable); err != nil {
		return err
	}
	from.TimeSpent = 0
	return saveTime(ctx, tx, &from.Issuable)
}
