package plan

import (
	"context"
	"strings"
	"time"

	"svc/internal/db"
	"svc/internal/plan/diffnote"
)

const noteColumns = `n.id, n.project_id, n.noteable_type, n.noteable_id, n.noteable_iid, n.discussion_id, n.type, n.body, n.author_id, n.system, n.internal, n.position, n.current_position,
	n.resolved_at, n.resolved_by_id, n.created_at, n.updated_at, n.commit_sha`

func scanNote(s db.Scanner) (*Note, error) {
	var n Note
	var position, current string
	err := s.Scan(&n.ID, &n.ProjectID, (*string)(&n.On.Kind), &n.On.ID, &n.OnIID, &n.Discussion, &n.Type, &n.Body, &n.AuthorID, &n.System, &n.Internal, &position, &current,
		db.NullTime(&n.ResolvedAt), &n.ResolvedByID, db.Time(&n.CreatedAt), db.Time(&n.UpdatedAt), &n.CommitSHA)
	if err == nil {
		n.Position, err = diffnote.DecodePosition(position)
	}
	if err == nil {
		n.Current, err = diffnote.DecodePosition(current)
	}
	return &n, err
}

// where returns the conditions on notes n of a target that the actor can see.
func (on Noteable) where() db.Where {
	var w db.Where
	w.And(`n.noteable_type = ? AND n.noteable_id = ?`, string(on.Kind), on.ID)
	if !on.Insider {
		w.And(`NOT n.internal`)
	}
	if cond := on.crossed.SQL(); cond != "" {
		w.And(strings.TrimPrefix(cond, " WHERE "), on.crossed.Args()...)
	} else {
		w.And(`n.system <> '` + crossReference + `'`)
	}
	return w
}

func listNotes(ctx context.Context, d *db.DB, on Noteable, f NoteFilter, p db.Paging) (db.Page[*Note], error) {
	w := on.where()
	switch f.Only {
	case "only_comments":
		w.And(`n.system = ''`)
	case "only_activity":
		w.And(`n.system <> ''`)
	}
	column, key := "n.created_at", func(n *Note) any { return n.CreatedAt.UnixMicro() }
	if f.Sort.By == "updated_at" {
		column, key = "n.updated_at", func(n *Note) any { return n.UpdatedAt.UnixMicro() }
	}
	return db.List(ctx, d, db.Query[*Note]{
		Columns: noteColumns, From: "notes n", Where: w, Order: []db.Order{{Name: column}, {Name: "n.id"}}, Desc: f.Sort.Desc, Scan: scanNote,
		Keys: func(n *Note) []any { return []any{key(n), n.ID} },
	}, p)
}

func findNote(ctx context.Context, q db.Q, on Target, id int64) (*Note, error) {
	return scanNote(q.QueryRowContext(ctx, `SELECT `+noteColumns+` FROM notes n WHERE n.id = ? AND n.noteable_type = ? AND n.noteable_id = ?`, id, string(on.Kind), on.ID))
}

func findNotes(ctx context.Context, q db.Q, ids []int64) ([]*Note, error) {
	return db.All(ctx, q, scanNote, `SELECT `+noteColumns+` FROM notes n WHERE n.id IN `+db.In(len(ids)), db.Any(ids)...)
}

func insertNote(ctx context.Context, q db.Q, n *Note) error {
	position, err := n.Position.Encode()
	if err != nil {
		return err
	}
	current, err := n.Current.Encode()
	if err != nil {
		return err
	}
	return q.QueryRowContext(ctx, `
		INSERT INTO notes (project_id, noteable_type, noteable_id, noteable_iid, discussion_id, type, author_id, system, internal, position, current_position, created_at, updated_at, commit_sha, body)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		n.ProjectID, string(n.On.Kind), n.On.ID, n.OnIID, n.Discussion, n.Type, n.AuthorID, n.System, n.Internal, position, current, n.CreatedAt, n.UpdatedAt, n.CommitSHA, n.Body).Scan(&n.ID)
}

// findDiffNotes returns the newest diff notes on a target.
func findDiffNotes(ctx context.Context, q db.Q, on Target, limit int) ([]*Note, error) {
	return db.All(ctx, q, scanNote, `
		SELECT `+noteColumns+` FROM notes n WHERE n.noteable_type = ? AND n.noteable_id = ? AND n.position <> '' ORDER BY n.created_at DESC, n.id DESC LIMIT ?`,
		string(on.Kind), on.ID, limit)
}

func saveCurrentPosition(ctx context.Context, q db.Q, id int64, at *diffnote.Position) error {
	text, err := at.Encode()
	if err != nil {
		return err
	}
	_, err = q.ExecContext(ctx, `UPDATE notes SET current_position = ? WHERE id = ?`, text, id)
	return err
}

func saveNote(ctx context.Context, q db.Q, n *Note) error {
	return db.NotFound(db.ExecOne(ctx, q, `UPDATE notes SET body = ?, updated_at = ? WHERE id = ?`, n.Body, n.UpdatedAt, n.ID), "Note")
}

func deleteNote(ctx context.Context, q db.Q, id int64) error {
	return db.NotFound(db.ExecOne(ctx, q, `DELETE FROM notes WHERE id = ?`, id), "Note")
}

func deleteNotesOf(ctx context.Context, q db.Q, kind Kind, ids []int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM notes WHERE noteable_type = ? AND noteable_id IN `+db.In(len(ids)), append([]any{string(kind)}, db.Any(ids)...)...)
	return err
}

// deleteNotesBy deletes the notes of an author and updates the note counts of
// their targets.
func deleteNotesBy(ctx context.Context, tx *db.Tx, authorID int64) error {
	for _, kind := range []Kind{IssueKind, MergeKind} {
		table := kind.table() + "s"
		_, err := tx.ExecContext(ctx, `
			UPDATE `+table+` SET notes = notes - (SELECT count(*) FROM notes n WHERE n.noteable_type = ? AND n.noteable_id = `+table+`.id AND n.author_id = ? AND n.system = '')
			WHERE id IN (SELECT n.noteable_id FROM notes n WHERE n.noteable_type = ? AND n.author_id = ?)`, string(kind), authorID, string(kind), authorID)
		if err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM notes WHERE author_id = ?`, authorID)
	return err
}

// countNote adds step to the number of notes of an issue, and reads whether it is
// confidential.
func countNote(ctx context.Context, tx *db.Tx, i *Issue, step int, at time.Time) error {
	err := tx.QueryRowContext(ctx, `UPDATE issues SET notes = notes + ?, updated_at = ? WHERE id = ? RETURNING confidential`, step, at, i.ID).Scan(&i.Confidential)
	return db.NotFound(err, "Issue")
}

// maxNoteAuthors is the number of comments whose authors are participants.
const maxNoteAuthors = 10_000

// findNoteAuthors returns the authors of the first comments on a target, in the order
// of their first comment.
func findNoteAuthors(ctx context.Context, q db.Q, on Target, insider bool) ([]int64, error) {
	w := Noteable{Target: on, Insider: insider}.where()
	w.And(`n.system = ''`)
	return db.All(ctx, q, db.Value[int64], `SELECT f.author_id FROM (SELECT n.author_id, n.id FROM notes n`+w.SQL()+` ORDER BY n.created_at, n.id LIMIT ?) f GROUP BY f.author_id ORDER BY min(f.id)`,
		append(w.Args(), maxNoteAuthors)...)
}

// listDiscussions returns the IDs of discussions in the order of their first notes.
func listDiscussions(ctx context.Context, d *db.DB, on Noteable, p db.Paging) (db.Page[*Discussion], error) {
	return listFirstNotes(ctx, d, on.where(), p)
}

// listFirstNotes returns the IDs of the discussions whose first notes match w.
func listFirstNotes(ctx context.Context, d *db.DB, w db.Where, p db.Paging) (db.Page[*Discussion], error) {
	w.And(`NOT EXISTS (SELECT 1 FROM notes f WHERE f.noteable_type = n.noteable_type AND f.noteable_id = n.noteable_id AND f.discussion_id = n.discussion_id AND f.id < n.id)`)
	return db.List(ctx, d, db.Query[*Discussion]{
		Columns: `n.discussion_id`, From: "notes n", Where: w, Order: []db.Order{{Name: "n.created_at"}, {Name: "n.id"}},
		Scan: func(s db.Scanner) (*Discussion, error) {
			var found Discussion
			err := s.Scan(&found.ID)
			return &found, err
		},
	}, p)
}

func findDiscussionNotes(ctx context.Context, q db.Q, on Noteable, ids []string) ([]*Note, error) {
	w := on.where()
	w.And(`n.discussion_id IN `+db.In(len(ids)), db.Any(ids)...)
	return db.All(ctx, q, scanNote, `SELECT `+noteColumns+` FROM notes n`+w.SQL()+` ORDER BY n.id`, w.Args()...)
}

// findFirstNote returns the first note of a discussion. ErrNoRows.
func findFirstNote(ctx context.Context, q db.Q, on Noteable, id string) (*Note, error) {
	w := on.where()
	w.And(`n.discussion_id = ?`, id)
	return scanNote(q.QueryRowContext(ctx, `SELECT `+noteColumns+` FROM notes n`+w.SQL()+` ORDER BY n.id LIMIT 1`, w.Args()...))
}

// hasNotes reports whether a discussion has at least n notes.
func hasNotes(ctx context.Context, q db.Q, on Target, id string, n int) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM notes WHERE noteable_type = ? AND noteable_id = ? AND discussion_id = ? ORDER BY id LIMIT 1 OFFSET ?`,
		string(on.Kind), on.ID, id, n-1)
}

func beginThread(ctx context.Context, tx *db.Tx, noteID int64) error {
	_, err := tx.ExecContext(ctx, `UPDATE notes SET type = 'DiscussionNote' WHERE id = ? AND type = ''`, noteID)
	return err
}

// resolveThread resolves a thread, or one note of it. Notes that are resolved
// already are left unchanged.
func resolveThread(ctx context.Context, tx *db.Tx, on Target, id string, note *int64, by int64, at time.Time) error {
	_, err := tx.ExecContext(ctx, `
		UPDATE notes SET resolved_at = ?, resolved_by_id = ?
		WHERE noteable_type = ? AND noteable_id = ? AND discussion_id = ? AND id = COALESCE(CAST(? AS BIGINT), id) AND system = '' AND resolved_at IS NULL`,
		at, by, string(on.Kind), on.ID, id, note)
	return err
}

func reopenThread(ctx context.Context, tx *db.Tx, on Target, id string, note *int64) error {
	_, err := tx.ExecContext(ctx, `
		UPDATE notes SET resolved_at = NULL, resolved_by_id = NULL
		WHERE noteable_type = ? AND noteable_id = ? AND discussion_id = ? AND id = COALESCE(CAST(? AS BIGINT), id)`, string(on.Kind), on.ID, id, note)
	return err
}
