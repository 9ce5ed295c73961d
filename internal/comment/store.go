package comment

import (
	"context"

	"svc/internal/db"
)

const commentColumns = `c.id, c.note, c.path, c.line, c.line_type, c.author_id, c.created_at, c.discussion_id, c.thread, c.old_path, c.updated_at`

func scanComment(s db.Scanner) (*Comment, error) {
	var c Comment
	err := s.Scan(&c.ID, &c.Note, &c.Path, &c.Line, &c.LineType, &c.AuthorID, db.Time(&c.CreatedAt), &c.Discussion, &c.Thread, &c.OldPath,
		db.Time(&c.UpdatedAt))
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
		INSERT INTO commit_comments (project_id, sha, author_id, note, path, line, line_type, created_at, discussion_id, thread, old_path, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		projectID, sha, c.AuthorID, c.Note, c.Path, c.Line, c.LineType, c.CreatedAt, c.Discussion, c.Thread, c.OldPath, c.UpdatedAt).Scan(&c.ID)
}

// countComments counts the comments on a commit up to the ID last.
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

// Text returns the text of a comment on a commit. NotFound. The caller has
// checked the access.
func Text(ctx context.Context, q db.Q, id int64) (text string, err error) {
	err = q.QueryRowContext(ctx, `SELECT c.note FROM commit_comments c WHERE c.id = ?`, id).Scan(&text)
	return text, db.NotFound(err, "Note")
}

// listDiscussions returns the IDs of discussions, in the order of their first
// comments.
func listDiscussions(ctx context.Context, d *db.DB, projectID int64, sha string, pg db.Paging) (db.Page[*Discussion], error) {
	var w db.Where
	w.And("c.project_id = ? AND c.sha = ?", projectID, sha)
	w.And("NOT EXISTS (SELECT 1 FROM commit_comments f WHERE f.project_id = c.project_id AND f.sha = c.sha AND f.discussion_id = c.discussion_id AND f.id < c.id)")
	return db.List(ctx, d, db.Query[*Discussion]{
		Columns: "c.discussion_id", From: "commit_comments c", Where: w, Order: []db.Order{{Name: "c.id"}},
		Scan: func(s db.Scanner) (*Discussion, error) {
			var found Discussion
			err := s.Scan(&found.ID)
			return &found, err
		},
	}, pg)
}

// findDiscussed returns the comments of discussions of a commit, oldest first.
func findDiscussed(ctx context.Context, q db.Q, projectID int64, sha string, ids []string) ([]*Comment, error) {
	return db.All(ctx, q, scanComment, `
		SELECT `+commentColumns+` FROM commit_comments c WHERE c.project_id = ? AND c.sha = ? AND c.discussion_id IN `+db.In(len(ids))+` ORDER BY c.id`,
		append([]any{projectID, sha}, db.Any(ids)...)...)
}

func findComment(ctx context.Context, q db.Q, projectID int64, sha, discussion string, id int64) (*Comment, error) {
	return scanComment(q.QueryRowContext(ctx, `
		SELECT `+commentColumns+` FROM commit_comments c WHERE c.id = ? AND c.project_id = ? AND c.sha = ? AND c.discussion_id = ?`, id, projectID, sha, discussion))
}

// lockDiscussion marks a discussion as a thread and returns its first comment.
// ErrNoRows.
func lockDiscussion(ctx context.Context, tx *db.Tx, projectID int64, sha, id string) (*Comment, error) {
	if err := db.ExecOne(ctx, tx, `
		UPDATE commit_comments SET thread = TRUE WHERE id = (
			SELECT min(c.id) FROM commit_comments c WHERE c.project_id = ? AND c.sha = ? AND c.discussion_id = ?)`, projectID, sha, id); err != nil {
		return nil, err
	}
	return scanComment(tx.QueryRowContext(ctx, `
		SELECT `+commentColumns+` FROM commit_comments c WHERE c.project_id = ? AND c.sha = ? AND c.discussion_id = ? ORDER BY c.id LIMIT 1`, projectID, sha, id))
}

// hasComments reports whether a discussion has n comments or more.
func hasComments(ctx context.Context, q db.Q, projectID int64, sha, id string, n int) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM commit_comments WHERE project_id = ? AND sha = ? AND discussion_id = ? ORDER BY id LIMIT 1 OFFSET ?`,
		projectID, sha, id, n-1)
}

func updateComment(ctx context.Context, q db.Q, c *Comment) error {
	return db.ExecOne(ctx, q, `UPDATE commit_comments SET note = ?, updated_at = ? WHERE id = ?`, c.Note, c.UpdatedAt, c.ID)
}

func deleteComment(ctx context.Context, q db.Q, id int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM commit_comments WHERE id = ?`, id)
	return err
}
