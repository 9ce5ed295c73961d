package merge

import (
	"context"
	"errors"
	"slices"
	"strings"

	"svc/internal/db"
	"svc/internal/git"
)

const versionColumns = `v.id, v.merge_request_id, v.head_sha, v.base_sha, v.start_sha, v.author_id, v.was_sha, v.files, v.created_at`

func scanVersion(s db.Scanner) (*Version, error) {
	var v Version
	err := s.Scan(&v.ID, &v.RequestID, &v.Head, &v.Base, &v.Start, &v.authorID, &v.was, &v.Files, db.Time(&v.CreatedAt))
	return &v, err
}

func insertVersion(ctx context.Context, tx *db.Tx, v *Version) error {
	return tx.QueryRowContext(ctx, `INSERT INTO merge_request_versions (merge_request_id, head_sha, author_id, was_sha, created_at) VALUES (?, ?, ?, ?, ?) RETURNING id`,
		v.RequestID, v.Head, v.authorID, v.was, v.CreatedAt).Scan(&v.ID)
}

// collectVersion saves the collected data of a version. It returns false if the
// version was already collected.
func collectVersion(ctx context.Context, tx *db.Tx, v *Version) (bool, error) {
	err := db.ExecOne(ctx, tx, `UPDATE merge_request_versions SET base_sha = ?, start_sha = ?, files = ?, collected = TRUE WHERE id = ? AND NOT collected`,
		v.Base, v.Start, v.Files, v.ID)
	if errors.Is(err, db.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

func newestVersion(ctx context.Context, q db.Q, requestID int64) (*Version, error) {
	return scanVersion(q.QueryRowContext(ctx, `SELECT `+versionColumns+` FROM merge_request_versions v WHERE v.merge_request_id = ? AND v.collected ORDER BY v.id DESC LIMIT 1`, requestID))
}

func findVersion(ctx context.Context, q db.Q, requestID, id int64) (*Version, error) {
	return scanVersion(q.QueryRowContext(ctx, `SELECT `+versionColumns+` FROM merge_request_versions v WHERE v.merge_request_id = ? AND v.id = ? AND v.collected`, requestID, id))
}

func findVersionByHead(ctx context.Context, q db.Q, requestID int64, head string) (*Version, error) {
	return scanVersion(q.QueryRowContext(ctx, `SELECT `+versionColumns+` FROM merge_request_versions v WHERE v.merge_request_id = ? AND v.head_sha = ? AND v.collected ORDER BY v.id DESC LIMIT 1`, requestID, head))
}

func listVersions(ctx context.Context, d *db.DB, requestID int64, p db.Paging) (db.Page[*Version], error) {
	var w db.Where
	w.And(`v.merge_request_id = ? AND v.collected`, requestID)
	return db.List(ctx, d, db.Query[*Version]{
		Columns: versionColumns, From: "merge_request_versions v", Where: w, Order: []db.Order{{Name: "v.id"}}, Desc: true, Scan: scanVersion,
		Keys: func(v *Version) []any { return []any{v.ID} },
	}, p)
}

func findPending(ctx context.Context, q db.Q, requestID int64) ([]*Version, error) {
	return db.All(ctx, q, scanVersion, `SELECT `+versionColumns+` FROM merge_request_versions v WHERE v.merge_request_id = ? AND NOT v.collected ORDER BY v.id`, requestID)
}

// hasVersion reports whether the merge request has a collected version with these
// commits.
func hasVersion(ctx context.Context, q db.Q, requestID int64, base, start, head string) (bool, error) {
	return db.Exists(ctx, q, `
		SELECT 1 FROM merge_request_versions WHERE merge_request_id = ? AND collected AND base_sha = ? AND start_sha = ? AND head_sha = ? LIMIT 1`,
		requestID, base, start, head)
}

// hadHead reports whether a push with this head was recorded.
func hadHead(ctx context.Context, q db.Q, requestID int64, head string) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM merge_request_versions WHERE merge_request_id = ? AND head_sha = ? LIMIT 1`, requestID, head)
}

// headsBefore returns the heads that were replaced by versions up to v whose diff
// notes have not been moved yet, oldest first.
func headsBefore(ctx context.Context, q db.Q, v *Version) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `
		SELECT v.was_sha FROM merge_request_versions v JOIN merge_requests m ON m.id = v.merge_request_id
		WHERE v.merge_request_id = ? AND v.id <= ? AND v.id > COALESCE(m.notes_version_id, ?) ORDER BY v.id`, v.RequestID, v.ID, v.ID-1)
}

// saveNotesMoved records that the diff notes of a merge request were moved to a
// version.
func saveNotesMoved(ctx context.Context, q db.Q, v *Version) error {
	_, err := q.ExecContext(ctx, `UPDATE merge_requests SET notes_version_id = ? WHERE id = ? AND COALESCE(notes_version_id, 0) < ?`, v.ID, v.RequestID, v.ID)
	return err
}

func hasPending(ctx context.Context, q db.Q, requestID int64) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM merge_request_versions WHERE merge_request_id = ? AND NOT collected LIMIT 1`, requestID)
}

// saveCommits saves the commits of the newest version.
func saveCommits(ctx context.Context, tx *db.Tx, requestID int64, commits []*git.Commit) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM merge_request_commits WHERE merge_request_id = ?`, requestID); err != nil {
		return err
	}
	for part := range slices.Chunk(commits, 100) {
		var args []any
		for _, c := range part {
			args = append(args, requestID, string(c.ID))
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO merge_request_commits (merge_request_id, sha) VALUES (?, ?)`+strings.Repeat(`, (?, ?)`, len(part)-1), args...); err != nil {
			return err
		}
	}
	return nil
}
