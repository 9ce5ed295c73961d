package plan

import (
	"context"
	"errors"

	"svc/internal/db"
	"svc/internal/errs"
)

// awardColumn returns the column of award_emoji that refers to objects of a kind.
func (k Kind) awardColumn() string {
	switch k {
	case IssueKind:
		return "issue_id"
	case MergeKind:
		return "merge_request_id"
	case NoteKind:
		return "note_id"
	}
	return "snippet_id"
}

// lock locks the row of a target until the transaction ends.
func (t Target) lock(ctx context.Context, tx *db.Tx) error {
	switch t.Kind {
	case IssueKind:
		return tx.Lock(ctx, "issues", t.ID)
	case MergeKind:
		return tx.Lock(ctx, "merge_requests", t.ID)
	}
	return tx.Lock(ctx, "snippets", t.ID)
}

const awardColumns = `a.id, a.name, a.user_id, a.created_at, a.updated_at`

func (t Target) scanAward(s db.Scanner) (*Award, error) {
	a := Award{On: t}
	err := s.Scan(&a.ID, &a.Name, &a.UserID, db.Time(&a.CreatedAt), db.Time(&a.UpdatedAt))
	return &a, err
}

func listAwards(ctx context.Context, d *db.DB, on Target, p db.Paging) (db.Page[*Award], error) {
	var w db.Where
	w.And(`a.`+on.Kind.awardColumn()+` = ?`, on.ID)
	return db.List(ctx, d, db.Query[*Award]{
		Columns: awardColumns, From: "award_emoji a", Where: w, Order: []db.Order{{Name: "a.id"}}, Scan: on.scanAward,
		Keys: func(a *Award) []any { return []any{a.ID} },
	}, p)
}

func findAward(ctx context.Context, q db.Q, on Target, id int64) (*Award, error) {
	return on.scanAward(q.QueryRowContext(ctx, `SELECT `+awardColumns+` FROM award_emoji a WHERE a.id = ? AND a.`+on.Kind.awardColumn()+` = ?`, id, on.ID))
}

// findAwardNamed returns the ID of a user's reaction with an emoji, or 0.
func findAwardNamed(ctx context.Context, q db.Q, on Target, userID int64, name string) (id int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT a.id FROM award_emoji a WHERE a.`+on.Kind.awardColumn()+` = ? AND a.user_id = ? AND a.name = ?`, on.ID, userID, name).Scan(&id)
	if errors.Is(err, db.ErrNoRows) {
		return 0, nil
	}
	return id, err
}

func countAwards(ctx context.Context, q db.Q, on Target, userID int64) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM award_emoji a WHERE a.`+on.Kind.awardColumn()+` = ? AND a.user_id = ?`, on.ID, userID).Scan(&n)
	return n, err
}

func insertAward(ctx context.Context, tx *db.Tx, a *Award) error {
	column := a.On.Kind.awardColumn()
	err := tx.QueryRowContext(ctx, `
		INSERT INTO award_emoji (name, user_id, `+column+`, created_at, updated_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id`,
		a.Name, a.UserID, a.On.ID, a.CreatedAt, a.UpdatedAt).Scan(&a.ID)
	if errors.Is(err, db.ErrNoRows) {
		return errs.NotFound("Award Emoji Name has already been taken")
	}
	return err
}

func deleteAward(ctx context.Context, q db.Q, id int64) error {
	return db.NotFound(db.ExecOne(ctx, q, `DELETE FROM award_emoji WHERE id = ?`, id), "Award Emoji")
}

// voteColumn returns the column that counts votes with an emoji, or an empty
// string if it is not a vote.
func voteColumn(name string) string {
	switch name {
	case Upvote:
		return "upvotes"
	case Downvote:
		return "downvotes"
	}
	return ""
}

// countVote adds step to the votes of an issue or merge request if the reaction is
// a vote.
func countVote(ctx context.Context, tx *db.Tx, a *Award, step int) error {
	column := voteColumn(a.Name)
	if column == "" || a.On.Kind != IssueKind && a.On.Kind != MergeKind {
		return nil
	}
	_, err := tx.ExecContext(ctx, `UPDATE `+a.On.Kind.table()+`s SET `+column+` = `+column+` + ? WHERE id = ?`, step, a.On.ID)
	return err
}

// deleteAwardsBy deletes the reactions of a user and updates the vote counts.
func deleteAwardsBy(ctx context.Context, tx *db.Tx, userID int64) error {
	for _, kind := range []Kind{IssueKind, MergeKind} {
		for _, name := range []string{Upvote, Downvote} {
			column, id := voteColumn(name), kind.awardColumn()
			_, err := tx.ExecContext(ctx, `
				UPDATE `+kind.table()+`s SET `+column+` = `+column+` - 1
				WHERE id IN (SELECT a.`+id+` FROM award_emoji a WHERE a.user_id = ? AND a.name = ? AND a.`+id+` IS NOT NULL)`, userID, name)
			if err != nil {
				return err
			}
		}
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM award_emoji WHERE user_id = ?`, userID)
	return err
}

// copyAwards copies the reactions to an issue and its notes to a copy of the
// issue. The copy has the same notes in the same order, without cross-references.
func copyAwards(ctx context.Context, tx *db.Tx, fromID, toID int64) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO award_emoji (issue_id, name, user_id, created_at, updated_at)
		SELECT CAST(? AS BIGINT), a.name, a.user_id, a.created_at, a.updated_at FROM award_emoji a WHERE a.issue_id = ? ORDER BY a.id`, toID, fromID)
	if err != nil {
		return err
	}
	const votes = `(SELECT count(*) FROM award_emoji a WHERE a.issue_id = issues.id AND a.name = ?)`
	if _, err := tx.ExecContext(ctx, `UPDATE issues SET upvotes = `+votes+`, downvotes = `+votes+` WHERE id = ?`, Upvote, Downvote, toID); err != nil {
		return err
	}
	const notes = `(SELECT n.id, row_number() OVER (ORDER BY n.id) AS place FROM notes n WHERE n.noteable_type = 'Issue' AND n.noteable_id = ? AND n.system <> '` + crossReference + `')`
	_, err = tx.ExecContext(ctx, `
		INSERT INTO award_emoji (note_id, name, user_id, created_at, updated_at)
		SELECT now.id, a.name, a.user_id, a.created_at, a.updated_at
		FROM `+notes+` was JOIN `+notes+` now ON now.place = was.place JOIN award_emoji a ON a.note_id = was.id ORDER BY a.id`, fromID, toID)
	return err
}

// awardRow is a reaction with the name of its user.
type awardRow struct {
	object, userID int64
	name, user     string
}

// findAwardRows returns the reactions to objects of a kind, grouped by object and
// emoji, thumbs first.
func findAwardRows(ctx context.Context, q db.Q, kind Kind, ids []int64) ([]awardRow, error) {
	const maxRows = 5000 // per page
	column := kind.awardColumn()
	return db.All(ctx, q, func(s db.Scanner) (r awardRow, err error) {
		err = s.Scan(&r.object, &r.name, &r.userID, &r.user)
		return r, err
	}, `
		SELECT a.`+column+`, a.name, a.user_id, u.name FROM award_emoji a JOIN users u ON u.id = a.user_id WHERE a.`+column+` IN `+db.In(len(ids))+`
		ORDER BY a.`+column+`, CASE a.name WHEN 'thumbsup' THEN 0 WHEN 'thumbsdown' THEN 1 ELSE 2 END, a.name, a.id LIMIT ?`,
		append(db.Any(ids), maxRows)...)
}
