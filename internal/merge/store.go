package merge

import (
	"context"
	"errors"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan"
)

// The alias i of the table is used by the conditions of package plan.
const (
	columns = `i.id, i.iid, i.project_id, i.source_project_id, i.source_branch, i.target_branch, i.title, i.description, i.state, i.draft, i.locked, i.head_sha,
		i.squash, i.remove_source, i.allow_collaboration, i.notes, i.upvotes, i.downvotes, i.author_id, i.milestone_id, i.merge_commit_sha, i.squash_commit_sha, i.merge_error,
		i.merged_at, i.merged_by_id, i.closed_at, i.closed_by_id, i.auto_merge_by_id, i.auto_merge, i.prepared_at, i.rebasing_at,
		i.merge_check, i.checked_source, i.checked_target, i.time_estimate, i.time_spent, i.created_at, i.updated_at, p.full_path`
	tables = `merge_requests i JOIN projects p ON p.id = i.project_id`
)

func scanRequest(s db.Scanner) (*MergeRequest, error) {
	m := MergeRequest{Issuable: plan.Issuable{Kind: plan.MergeKind}}
	err := s.Scan(&m.ID, &m.IID, &m.ProjectID, &m.SourceProjectID, &m.SourceBranch, &m.TargetBranch, &m.Title, &m.Description, (*string)(&m.State), &m.Draft, &m.Locked, &m.Head,
		&m.Squash, &m.RemoveSource, &m.AllowCollaboration, &m.Notes, &m.Upvotes, &m.Downvotes, &m.AuthorID, &m.MilestoneID, &m.MergeCommit, &m.SquashCommit, &m.MergeError,
		db.NullTime(&m.MergedAt), &m.MergedByID, db.NullTime(&m.ClosedAt), &m.ClosedByID, &m.AutoMergeByID, &m.autoMerge, db.NullTime(&m.PreparedAt), db.NullTime(&m.RebasingAt),
		&m.check.result, &m.check.source, &m.check.target, &m.TimeEstimate, &m.TimeSpent, db.Time(&m.CreatedAt), db.Time(&m.UpdatedAt), &m.ProjectPath)
	return &m, err
}

func findRequest(ctx context.Context, q db.Q, projectID, iid int64) (*MergeRequest, error) {
	return scanRequest(q.QueryRowContext(ctx, `SELECT `+columns+` FROM `+tables+` WHERE i.project_id = ? AND i.iid = ?`, projectID, iid))
}

func findRequestByID(ctx context.Context, q db.Q, id int64) (*MergeRequest, error) {
	return scanRequest(q.QueryRowContext(ctx, `SELECT `+columns+` FROM `+tables+` WHERE i.id = ? AND p.deleted_at IS NULL`, id))
}

// lockRequest reads a merge request and locks it until the transaction ends.
// NotFound.
func lockRequest(ctx context.Context, tx *db.Tx, id int64) (*MergeRequest, error) {
	if err := tx.Lock(ctx, "merge_requests", id); err != nil {
		return nil, err
	}
	m, err := findRequestByID(ctx, tx, id)
	return m, db.NotFound(err, "Merge Request")
}

func insertRequest(ctx context.Context, tx *db.Tx, m *MergeRequest) error {
	return tx.QueryRowContext(ctx, `
		INSERT INTO merge_requests (project_id, iid, state, draft, author_id, milestone_id, created_at, updated_at, source_project_id, source_branch, target_branch, title,
			head_sha, squash, remove_source, allow_collaboration, description, notes_version_id)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0) RETURNING id`,
		m.ProjectID, m.IID, string(m.State), m.Draft, m.AuthorID, m.MilestoneID, m.CreatedAt, m.UpdatedAt, m.SourceProjectID, m.SourceBranch, m.TargetBranch, m.Title,
		m.Head, m.Squash, m.RemoveSource, m.AllowCollaboration, m.Description).Scan(&m.ID)
}

// saveRequest saves all columns that no other function saves.
func saveRequest(ctx context.Context, q db.Q, m *MergeRequest) error {
	return db.NotFound(db.ExecOne(ctx, q, `
		UPDATE merge_requests SET state = ?, draft = ?, milestone_id = ?, updated_at = ?, target_branch = ?, title = ?, head_sha = ?, locked = ?, squash = ?, remove_source = ?,
			allow_collaboration = ?, merge_commit_sha = ?, squash_commit_sha = ?, merged_at = ?, merged_by_id = ?, closed_at = ?, closed_by_id = ?, merge_error = ?,
			prepared_at = ?, merge_check = ?, checked_source = ?, checked_target = ?, auto_merge_by_id = ?, auto_merge = ?, description = ?
		WHERE id = ?`,
		string(m.State), m.Draft, m.MilestoneID, m.UpdatedAt, m.TargetBranch, m.Title, m.Head, m.Locked, m.Squash, m.RemoveSource,
		m.AllowCollaboration, m.MergeCommit, m.SquashCommit, m.MergedAt, m.MergedByID, m.ClosedAt, m.ClosedByID, m.MergeError,
		m.PreparedAt, m.check.result, m.check.source, m.check.target, m.AutoMergeByID, m.autoMerge, m.Description, m.ID), "Merge Request")
}

func deleteRequest(ctx context.Context, q db.Q, id int64) error {
	return db.NotFound(db.ExecOne(ctx, q, `DELETE FROM merge_requests WHERE id = ?`, id), "Merge Request")
}

// deleteRequestsBy deletes the merge requests of an author and returns them with
// only their IDs.
func deleteRequestsBy(ctx context.Context, tx *db.Tx, userID int64) ([]*MergeRequest, error) {
	return db.All(ctx, tx, func(s db.Scanner) (*MergeRequest, error) {
		var m MergeRequest
		err := s.Scan(&m.ID, &m.ProjectID, &m.IID)
		return &m, err
	}, `DELETE FROM merge_requests WHERE author_id = ? RETURNING id, project_id, iid`, userID)
}

// findDuplicate returns the IID of another open merge request for the same branches.
// ErrNoRows.
func findDuplicate(ctx context.Context, q db.Q, m *MergeRequest) (iid int64, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT i.iid FROM merge_requests i WHERE i.source_project_id = ? AND i.source_branch = ? AND i.project_id = ? AND i.target_branch = ? AND i.state = 'opened' AND i.id <> ?`,
		m.SourceProjectID, m.SourceBranch, m.ProjectID, m.TargetBranch, m.ID).Scan(&iid)
	return iid, err
}

// saveCheck saves the result of a merge check if the head is still the same, and
// reports whether it did. It does not set updated_at.
func saveCheck(ctx context.Context, q db.Q, m *MergeRequest) (saved bool, err error) {
	return db.ExecAny(ctx, q, `UPDATE merge_requests SET merge_check = ?, checked_source = ?, checked_target = ? WHERE id = ? AND head_sha = ?`,
		m.check.result, m.check.source, m.check.target, m.ID, m.check.source)
}

// uncheck resets the merge checks of the open merge requests into a branch that has
// moved, and reports whether there are any. A conflict becomes recheck.
func uncheck(ctx context.Context, tx *db.Tx, projectID int64, branch string) (any bool, err error) {
	return db.ExecAny(ctx, tx, `
		UPDATE merge_requests SET merge_check = CASE WHEN merge_check IN ('cannot', 'recheck') THEN 'recheck' ELSE '' END
		WHERE project_id = ? AND target_branch = ? AND state = 'opened'`, projectID, branch)
}

func findFromBranch(ctx context.Context, q db.Q, projectID int64, branch string) ([]*MergeRequest, error) {
	return db.All(ctx, q, scanRequest, `
		SELECT `+columns+` FROM `+tables+` WHERE i.source_project_id = ? AND i.source_branch = ? AND i.state = 'opened' AND p.deleted_at IS NULL ORDER BY i.id`, projectID, branch)
}

// findCollaborations returns the open merge requests from a fork whose source
// branches upstream members may push to.
func findCollaborations(ctx context.Context, q db.Q, projectID int64) ([]*MergeRequest, error) {
	return db.All(ctx, q, scanRequest, `
		SELECT `+columns+` FROM `+tables+` WHERE i.source_project_id = ? AND i.project_id <> i.source_project_id AND i.state = 'opened' AND i.allow_collaboration
			AND p.deleted_at IS NULL ORDER BY i.id LIMIT 1000`, projectID)
}

// findAcross returns the open merge requests between a project and its forks on one
// side and all other projects on the other.
func findAcross(ctx context.Context, q db.Q, projectID int64) ([]*MergeRequest, error) {
	return db.All(ctx, q, scanRequest, `
		WITH RECURSIVE tree (id) AS (
			SELECT id FROM projects WHERE id = ?
			UNION SELECT f.id FROM projects f JOIN tree t ON f.forked_from_id = t.id
		)
		SELECT `+columns+` FROM `+tables+` WHERE i.state = 'opened' AND p.deleted_at IS NULL AND (
			i.source_project_id IN (SELECT id FROM tree) AND i.project_id NOT IN (SELECT id FROM tree)
			OR i.project_id IN (SELECT id FROM tree) AND i.source_project_id NOT IN (SELECT id FROM tree)) ORDER BY i.id`, projectID)
}

func findIntoBranch(ctx context.Context, q db.Q, projectID int64, branch string) ([]*MergeRequest, error) {
	return db.All(ctx, q, scanRequest, `
		SELECT `+columns+` FROM `+tables+` WHERE i.project_id = ? AND i.target_branch = ? AND i.state = 'opened' ORDER BY i.id LIMIT 1000`, projectID, branch)
}

func changeAuthor(ctx context.Context, q db.Q, from, to int64) error {
	_, err := q.ExecContext(ctx, `UPDATE merge_requests SET author_id = ? WHERE author_id = ?`, to, from)
	return err
}

// dropAutoMerges cancels the automatic merges that a user enabled.
func dropAutoMerges(ctx context.Context, q db.Q, userID int64) error {
	_, err := q.ExecContext(ctx, `UPDATE merge_requests SET auto_merge = '', auto_merge_by_id = NULL WHERE auto_merge_by_id = ?`, userID)
	return err
}

func deleteProjectSubscriptions(ctx context.Context, q db.Q, projectID int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM subscriptions WHERE kind = 'MergeRequest' AND thing_id IN (SELECT i.id FROM merge_requests i WHERE i.project_id = ?)`, projectID)
	return err
}

// countNote adds step to the number of notes of a merge request. NotFound.
func countNote(ctx context.Context, tx *db.Tx, id int64, step int, at time.Time) error {
	return db.NotFound(db.ExecOne(ctx, tx, `UPDATE merge_requests SET notes = notes + ?, updated_at = ? WHERE id = ?`, step, at, id), "Merge Request")
}

// A claim ensures that only one request at a time merges or rebases a merge request.
// It expires after claimAge, because the process that holds it may have been killed.

func claim(ctx context.Context, q db.Q, column string, id int64, now time.Time) error {
	err := db.ExecOne(ctx, q, `UPDATE merge_requests SET `+column+` = ? WHERE id = ? AND state = 'opened' AND (`+column+` IS NULL OR `+column+` < ?)`, now, id, now.Add(-claimAge))
	if errors.Is(err, db.ErrNoRows) {
		return errs.Conflict("The merge request is being merged or rebased by someone else")
	}
	return err
}

// claimed reports whether a merge request is claimed.
func claimed(ctx context.Context, q db.Q, column string, id int64, now time.Time) (bool, error) {
	var n int
	err := q.QueryRowContext(ctx, `SELECT count(*) FROM merge_requests WHERE id = ? AND `+column+` >= ?`, id, now.Add(-claimAge)).Scan(&n)
	return n > 0, err
}

func release(ctx context.Context, q db.Q, column string, id int64, failure string) error {
	_, err := q.ExecContext(ctx, `UPDATE merge_requests SET `+column+` = NULL, merge_error = ? WHERE id = ?`, failure, id)
	return err
}

// findByHead returns the open merge requests with a head whose source is a branch of
// a project or, if iid is set, those with this IID into or from the project.
func findByHead(ctx context.Context, q db.Q, projectID int64, branch string, iid int64, sha string) ([]*MergeRequest, error) {
	cond, args := `i.source_project_id = ? AND i.source_branch = ?`, []any{projectID, branch}
	if iid != 0 {
		cond, args = `(i.project_id = ? OR i.source_project_id = ?) AND i.iid = ?`, []any{projectID, projectID, iid}
	}
	return db.All(ctx, q, scanRequest, `
		SELECT `+columns+` FROM `+tables+` WHERE `+cond+` AND i.head_sha = ? AND i.state = 'opened' AND p.deleted_at IS NULL ORDER BY i.id LIMIT 100`,
		append(args, sha)...)
}

// findWaiting returns the IDs of the open merge requests with a head for which
// auto-merge is set.
func findWaiting(ctx context.Context, q db.Q, sha string) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT id FROM merge_requests WHERE auto_merge_by_id IS NOT NULL AND head_sha = ? AND state = 'opened' ORDER BY id`, sha)
}
