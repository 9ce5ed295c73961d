package diffnote

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

// FindSuggestions returns the suggestions of notes, ordered by note and number.
func FindSuggestions(ctx context.Context, q db.Q, notes []int64) ([]*Suggestion, error) {
	return db.All(ctx, q, scanSuggestion, `SELECT `+suggestionColumns+` FROM suggestions s WHERE s.note_id IN `+db.In(len(notes))+` ORDER BY s.note_id, s.number`, db.Any(notes)...)
}

// InsertSuggestions saves the suggestions of a note. Applied ones, which exist
// already, are left unchanged.
func InsertSuggestions(ctx context.Context, tx *db.Tx, noteID int64, list []*Suggestion) error {
	for _, s := range list {
		_, err := tx.ExecContext(ctx, `
			INSERT INTO suggestions (note_id, number, from_line, to_line, from_content, to_content) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			noteID, s.Number, s.FromLine, s.ToLine, s.FromContent, s.ToContent)
		if err != nil {
			return err
		}
	}
	return nil
}

// ReplaceSuggestions replaces the suggestions of a changed note, except for
// applied ones.
func ReplaceSuggestions(ctx context.Context, tx *db.Tx, noteID int64, list []*Suggestion) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM suggestions WHERE note_id = ? AND applied_at IS NULL`, noteID); err != nil {
		return err
	}
	return InsertSuggestions(ctx, tx, noteID, list)
}

// SaveApplied marks suggestions as applied. It returns false if one of them was
// applied already.
func SaveApplied(ctx context.Context, tx *db.Tx, ids []int64, commit string, at time.Time) (bool, error) {
	n, err := db.ExecCount(ctx, tx, `UPDATE suggestions SET commit_sha = ?, applied_at = ? WHERE applied_at IS NULL AND id IN `+db.In(len(ids)),
		append([]any{commit, at}, db.Any(ids)...)...)
	return int(n) == len(ids), err
}
