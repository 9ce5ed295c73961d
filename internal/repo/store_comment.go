package repo

import (
	"context"

	"svc/internal/db"
)

const commentColumns = `c.id, c.note, c.path, c.line, c.line_type, c.author_id, c.created_at`

func scanComment(s db.Scanner) (*Comment, error) {
	var c Comment
	err := s.Scan(&c.ID, &c.Note, &c.Path, &c.Line, &c.LineType, &c.AuthorID, db.Time(&c.CreatedAt))
	return &c, err
}

func listComments(ctx context.Context, d *db.DB, projectID int64, sha string, pg db.Paging) (db.Page[*Comment], error) {
	var w db.Where
	w.And("c.project_id = ? AND c.sha = ?", projectID, sha)
	return db.List(ctx, d, db.Query[*Comment]{
		Columns: commentColumns, From: "commit_comments c", Where: w, Order: []db.Order{{Name: "c.id"}}, Scan: scanComment,
		Keys: func(c *Comment) []any { return []any{c.ID} },
	}, pg)
}

func insertComment(ctx context.Context, q db.Q, projectID int64, sha string, c *Comment) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO commit_comments (project_id, sha, author_id, note, path, line, line_type, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		projectID, sha, c.AuthorID, c.Note, c.Path, c.Line, c.LineType, c.CreatedAt).Scan(&c.ID)
}

// countComments counts the comments on a commit up to one of them.
func countComments(ctx context.Context, q db.Q, projectID int64, sha string, last int64) (n int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM commit_comments c WHERE c.project_id = ? AND c.sha = ? AND c.id <= ?`, projectID, sha, last).Scan(&n)
	return n, err
}

// findFirstComment returns the ID of the first comment on a commit.
func findFirstComment(ctx context.Context, q db.Q, projectID int64, sha string) (id int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT c.id FROM commit_comments c WHERE c.project_id = ? AND c.sha = ? ORDER BY c.id LIMIT 1`, projectID, sha).Scan(&id)
	return id, err
}

// findCommenters returns the authors of the comments on a commit.
func findCommenters(ctx context.Context, q db.Q, projectID int64, sha string, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT DISTINCT c.author_id FROM commit_comments c WHERE c.project_id = ? AND c.sha = ? LIMIT ?`, projectID, sha, limit)
}

func moveComments(ctx context.Context, q db.Q, from, to int64) error {
	_, err := q.ExecContext(ctx, `UPDATE commit_comments SET author_id = ? WHERE author_id = ?`, to, from)
	return err
}

// CommentText returns the text of a comment on a commit. NotFound. The caller has
// checked the access.
func CommentText(ctx context.Context, q db.Q, id int64) (text string, err error) {
	err = q.QueryRowContext(ctx, `SELECT c.note FROM commit_comments c WHERE c.id = ?`, id).Scan(&text)
	return text, db.NotFound(err, "Note")
}
