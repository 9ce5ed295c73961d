package merge

import (
	"context"
	"time"

	"svc/internal/db"
	"svc/internal/plan/listing"
)

func findAmong(ctx context.Context, q db.Q, w db.Where, ids []int64) ([]*MergeRequest, error) {
	w.And(`i.id IN `+db.In(len(ids)), db.Any(ids)...)
	return db.All(ctx, q, scanRequest, `SELECT `+columns+` FROM `+tables+w.SQL()+` ORDER BY i.id`, w.Args()...)
}

const (
	// assigned are the merge requests that a user is assigned to.
	assigned = `SELECT a.merge_request_id FROM merge_request_assignees a WHERE a.user_id = ?`
	// unreviewed are those that a user has been asked to review and has not.
	unreviewed = `SELECT r.merge_request_id FROM merge_request_reviewers r WHERE r.user_id = ? AND r.state IN ('unreviewed', 'review_started', 'unapproved')`
	// own are the open ones that a user wrote or is assigned to.
	own = `(i.id IN (` + assigned + `) OR i.author_id = ?)`
	// reviewers are the reviewers of a merge request i other than a user.
	reviewers = `SELECT 1 FROM merge_request_reviewers r WHERE r.merge_request_id = i.id AND r.user_id <> ?`
)

func countWaiting(ctx context.Context, q db.Q, w db.Where, userID int64, limit int) (n int, err error) {
	w.And(`i.state = 'opened' AND NOT p.archived`)
	w.And(`i.id IN (`+assigned+` UNION `+unreviewed+`)`, userID, userID)
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT 1 FROM `+tables+w.SQL()+` LIMIT ?) AS counted`, w.Args(limit)...).Scan(&n)
	return n, err
}

// narrow adds the conditions of a section for a user. Merge requests that were
// merged before since are left out. near reports that the candidates are known.
func (in Section) narrow(w *db.Where, userID int64, since time.Time, near bool) {
	if in == MergedRecently {
		w.And(`i.state = 'merged' AND i.merged_at >= ?`, since)
		w.And(`i.id IN (`+assigned+` UNION SELECT r.merge_request_id FROM merge_request_reviewers r WHERE r.user_id = ?
			UNION SELECT m.id FROM merge_requests m WHERE m.author_id = ? AND m.merged_at >= ?)`, userID, userID, userID, since)
		return
	}
	w.And(`i.state = 'opened'`)
	mine := func() {
		if near {
			w.And(`i.author_id = ? OR EXISTS (SELECT 1 FROM merge_request_assignees a WHERE a.merge_request_id = i.id AND a.user_id = ?)`, userID, userID)
			return
		}
		w.And(`i.id IN (`+assigned+` UNION SELECT m.id FROM merge_requests m WHERE m.author_id = ? AND m.state = 'opened')`, userID, userID)
	}
	reviewed := func(states string) {
		w.And(`i.id IN (SELECT r.merge_request_id FROM merge_request_reviewers r WHERE r.user_id = ? AND r.state IN `+states+`)`, userID)
		w.And(`NOT `+own, userID, userID)
	}
	returned := `EXISTS (` + reviewers + ` AND r.state IN ('reviewed', 'requested_changes'))`
	approved := `NOT EXISTS (` + reviewers + ` AND r.state <> 'approved')`
	switch in {
	case Returned:
		mine()
		w.And(returned, userID)
	case ReviewRequested:
		w.And(`i.id IN (`+unreviewed+`)`, userID)
		w.And(`NOT `+own, userID, userID)
	case AssignedToYou:
		mine()
		w.And(`NOT EXISTS (`+reviewers+`)`, userID)
	case WaitingForReview:
		mine()
		w.And(`EXISTS (`+reviewers+`)`, userID)
		w.And(`NOT `+returned, userID)
		w.And(`NOT (`+approved+`)`, userID)
	case ApprovedByOthers:
		mine()
		w.And(`EXISTS (`+reviewers+`)`, userID)
		w.And(approved, userID)
	case WaitingForAuthor:
		reviewed(`('reviewed', 'requested_changes')`)
	case ApprovedByYou:
		reviewed(`('approved')`)
	default:
		w.And(`1 = 0`)
	}
}

// findOwnRequests returns the open merge requests of a user, at most one more than
// db.MaxCandidates. One that they wrote and are assigned to is in it twice.
func findOwnRequests(ctx context.Context, q db.Q, userID int64) ([]ownRequest, error) {
	const reviewed = `EXISTS (SELECT 1 FROM merge_request_reviewers r WHERE r.merge_request_id = m.id AND r.user_id <> ?)`
	return db.All(ctx, q, func(s db.Scanner) (r ownRequest, err error) {
		err = s.Scan(&r.id, &r.reviewed)
		return r, err
	}, `
		SELECT m.id, `+reviewed+` FROM merge_requests m WHERE m.author_id = ? AND m.state = 'opened'
		UNION ALL
		SELECT m.id, `+reviewed+` FROM merge_request_assignees a JOIN merge_requests m ON m.id = a.merge_request_id
		WHERE a.user_id = ? AND m.state = 'opened'
		LIMIT ?`, userID, userID, userID, userID, db.MaxCandidates+1)
}

func listSection(ctx context.Context, d *db.DB, w db.Where, found listing.Selection, p db.Paging) (db.Page[*MergeRequest], error) {
	return listRequests(ctx, d, w, found, listing.Sort{By: "updated_at", Desc: true}, p)
}
