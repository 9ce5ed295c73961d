package merge

import (
	"context"

	"svc/internal/db"
	"svc/internal/plan/diffnote"
	"svc/internal/plan/listing"
)

const draftColumns = `d.id, d.merge_request_id, d.author_id, d.body, d.discussion_id, d.internal, d.resolve_discussion, d.commit_sha, d.position, d.created_at, d.updated_at`

func scanDraft(s db.Scanner) (*DraftNote, error) {
	var d DraftNote
	var position string
	err := s.Scan(&d.ID, &d.RequestID, &d.AuthorID, &d.Body, &d.Discussion, &d.Internal, &d.Resolve, &d.CommitSHA, &position, db.Time(&d.CreatedAt), db.Time(&d.UpdatedAt))
	if err == nil {
		d.Position, err = diffnote.DecodePosition(position)
	}
	return &d, err
}

func listDrafts(ctx context.Context, d *db.DB, requestID, authorID int64, sort listing.Sort, p db.Paging) (db.Page[*DraftNote], error) {
	var w db.Where
	w.And(`d.merge_request_id = ? AND d.author_id = ?`, requestID, authorID)
	return db.List(ctx, d, db.Query[*DraftNote]{
		Columns: draftColumns, From: "draft_notes d", Where: w, Order: []db.Order{{Name: "d.id"}}, Desc: sort.Desc, Scan: scanDraft,
		Keys: func(d *DraftNote) []any { return []any{d.ID} },
	}, p)
}

func findDraft(ctx context.Context, q db.Q, requestID, authorID, id int64) (*DraftNote, error) {
	return scanDraft(q.QueryRowContext(ctx, `SELECT `+draftColumns+` FROM draft_notes d WHERE d.id = ? AND d.merge_request_id = ? AND d.author_id = ?`, id, requestID, authorID))
}

func countDrafts(ctx context.Context, q db.Q, requestID, authorID int64) (n int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM draft_notes WHERE merge_request_id = ? AND author_id = ?`, requestID, authorID).Scan(&n)
	return n, err
}

func insertDraft(ctx context.Context, tx *db.Tx, d *DraftNote) error {
	position, err := d.Position.Encode()
	if err != nil {
		return err
	}
	return tx.QueryRowContext(ctx, `
		INSERT INTO draft_notes (merge_request_id, author_id, discussion_id, internal, resolve_discussion, commit_sha, position, created_at, updated_at, body)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		d.RequestID, d.AuthorID, d.Discussion, d.Internal, d.Resolve, d.CommitSHA, position, d.CreatedAt, d.UpdatedAt, d.Body).Scan(&d.ID)
}

func saveDraft(ctx context.Context, q db.Q, d *DraftNote) error {
	position, err := d.Position.Encode()
	if err != nil {
		return err
	}
	return db.NotFound(db.ExecOne(ctx, q, `UPDATE draft_notes SET body = ?, position = ?, updated_at = ? WHERE id = ?`, d.Body, position, d.UpdatedAt, d.ID), "Draft Note")
}

// deleteDrafts deletes draft notes of a user, without ids all of them, and returns
// their number.
func deleteDrafts(ctx context.Context, tx *db.Tx, requestID, authorID int64, ids []int64) (int64, error) {
	query, args := `DELETE FROM draft_notes WHERE merge_request_id = ? AND author_id = ?`, []any{requestID, authorID}
	if len(ids) > 0 {
		query, args = query+` AND id IN `+db.In(len(ids)), append(args, db.Any(ids)...)
	}
	return db.ExecCount(ctx, tx, query, args...)
}
