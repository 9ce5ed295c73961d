package plan

import (
	"context"
	"time"

	"svc/internal/db"
)

const suggestionColumns = `s.id, s.note_id, s.number, s.from_line, s.to_line, s.from_content, s.to_content, s.commit_sha, s.applied_at`

func scanSuggestion(row db.Scanner) (*Suggestion, error) {
	var one Suggestion
	err := row.Scan(&one.ID, &one.NoteID, &one.Number, &one.FromLine, &one.ToLine, &one.FromContent, &one.ToContent, &one.CommitSHA, db.NullTime(&one.AppliedAt))
	return &one, err
}

func findSuggestions(ctx context.Context, q db.Q, notes []int64) ([]*Suggestion, error) {
	return db.All(ctx, q, scanSuggestion, `SELECT `+suggestionColumns+` FROM suggestions s WHERE s.note_id IN `+db.In(len(notes))+` ORDER BY s.note_id, s.number`, db.Any(notes)...)
}

// insertSuggestions saves the suggestions of a note. Applied ones, which exist
// already, are left unchanged.
func insertSuggestions(ctx context.Context, tx *db.Tx, n *Note) error {
	for _, s := range n.Suggestions {
		_, err := tx.ExecContext(ctx, `
			INSERT INTO suggestions (note_id, number, from_line, to_line, from_content, to_content) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			n.ID, s.Number, s.FromLine, s.ToLine, s.FromContent, s.ToContent)
		if err != nil {
			return err
		}
	}
	return nil
}

// replaceSuggestions replaces the suggestions of a changed note, except for
// applied ones.
func replaceSuggestions(ctx context.Context, tx *db.Tx, n *Note) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM suggestions WHERE note_id = ? AND applied_at IS NULL`, n.ID); err != nil {
		return err
	}
	return insertSuggestions(ctx, tx, n)
}

func findSuggestedNotes(ctx context.Context, q db.Q, on Noteable, ids []int64) ([]*Note, error) {
	w := on.where()
	w.And(`n.id IN (SELECT s.note_id FROM suggestions s WHERE s.id IN `+db.In(len(ids))+`)`, db.Any(ids)...)
	return db.All(ctx, q, scanNote, `SELECT `+noteColumns+` FROM notes n`+w.SQL()+` ORDER BY n.id`, w.Args()...)
}

func findSuggestionTarget(ctx context.Context, q db.Q, id int64) (target Target, projectID, iid int64, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT n.noteable_type, n.noteable_id, n.project_id, n.noteable_iid FROM suggestions s JOIN notes n ON n.id = s.note_id WHERE s.id = ? AND n.project_id IS NOT NULL`, id).
		Scan((*string)(&target.Kind), &target.ID, &projectID, &iid)
	return target, projectID, iid, err
}

// saveApplied marks suggestions as applied. It returns false if one of them was
// applied already.
func saveApplied(ctx context.Context, tx *db.Tx, ids []int64, commit string, at time.Time) (bool, error) {
	n, err := db.ExecCount(ctx, tx, `UPDATE suggestions SET commit_sha = ?, applied_at = ? WHERE applied_at IS NULL AND id IN `+db.In(len(ids)),
		append([]any{commit, at}, db.Any(ids)...)...)
	return int(n) == len(ids), err
}

func findSuggestedDiscussions(ctx context.Context, q db.Q, ids []int64) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `
		SELECT DISTINCT n.discussion_id FROM suggestions s JOIN notes n ON n.id = s.note_id WHERE s.id IN `+db.In(len(ids)), db.Any(ids)...)
}
