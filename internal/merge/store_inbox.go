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
	// assigned selects the merge requests that a user is assigned to.
	assigned = `SELECT a.merge_request_id AS id FROM merge_request_assignees a WHERE a.user_id = ?`
	// unreviewed selects the merge requests that wait for the review of a user.
	unreviewed = `SELECT r.merge_request_id AS id FROM merge_request_reviewers r WHERE r.user_id = ? AND r.state IN ('unreviewed', 'review_started', 'unapproved')`
	// reviewers selects the reviewers of a merge request i other than a user.
	reviewers = `SELECT 1 FROM merge_request_reviewers r WHERE r.merge_request_id = i.id AND r.user_id <> ?`
)

func countWaiting(ctx context.Context, d *db.DB, w db.Where, userID int64, limit int) (n int, err error) {
	w.And(`i.state = 'opened' AND NOT p.archived`)
	from := d.Behind(assigned+` UNION ALL `+unreviewed, tables, `i.id`)
	args := append([]any{userID, userID}, w.Args(limit)...)
	err = d.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT DISTINCT i.id FROM `+from+w.SQL()+` LIMIT ?) AS counted`, args...).Scan(&n)
	return n, err
}

// narrow adds the conditions of a section for a user. Merge requests that were
// merged before since are left out. near means that the list is already limited to
// the merge requests of the section.
func (in Section) narrow(w *db.Where, userID int64, since time.Time, near bool) {
	if in == MergedRecently {
		w.And(`i.state = 'merged' AND i.merged_at >= ?`, since)
		w.And(`i.id IN (`+assigned+` UNION SELECT r.merge_request_id FROM merge_request_reviewers r WHERE r.user_id = ?
			UNION SELECT m.id FROM merge_requests m WHERE m.author_id = ? AND m.merged_at >= ?)`, userID, userID, userID, since)
		return
	}
	w.And(`i.state = 'opened'`)
	if near {
		return
	}
	mine := func() {
		w.And(`i.id IN (`+assigned+` UNION SELECT m.id FROM merge_requests m WHERE m.author_id = ? AND m.state = 'opened')`, userID, userID)
		w.And(`i.author_id = ? OR NOT EXISTS (SELECT 1 FROM merge_request_reviewers r WHERE r.merge_request_id = i.id AND r.user_id = ?)`, userID, userID)
	}
	reviewed := func(states string) {
		w.And(`i.id IN (SELECT r.merge_request_id FROM merge_request_reviewers r WHERE r.user_id = ? AND r.state IN `+states+`)`, userID)
		w.And(`i.author_id <> ?`, userID)
	}
	returned := `EXISTS (` + reviewers + ` AND r.state IN ('reviewed', 'requested_changes'))`
	approved := `NOT EXISTS (` + reviewers + ` AND r.state <> 'approved')`
	switch in {
	case Returned:
		mine()
		w.And(returned, userID)
	case ReviewRequested:
		w.And(`i.id IN (`+unreviewed+`)`, userID)
		w.And(`i.author_id <> ?`, userID)
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

// findOpenRequests returns the open merge requests of a user and those that they
// review, each up to db.MaxCandidates + 1. Merge requests that they created or are
// assigned to are own ones; a user who is both assignee and reviewer of a merge
// request of another user counts as a reviewer.
func findOpenRequests(ctx context.Context, q db.Q, userID int64) (o openRequests, err error) {
	// The review state that blocks the merge most determines the section.
	const columns = `m.id, COALESCE((SELECT max(CASE WHEN r.state IN ('reviewed', 'requested_changes') THEN 3 WHEN r.state <> 'approved' THEN 2 ELSE 1 END)
		FROM merge_request_reviewers r WHERE r.merge_request_id = m.id AND r.user_id <> ?), 0)`
	sections := [...]Section{AssignedToYou, ApprovedByOthers, WaitingForReview, Returned}
	o.own, err = db.All(ctx, q, func(s db.Scanner) (r openRequest, err error) {
		at := 0
		err = s.Scan(&r.id, &at)
		r.in = sections[at]
		return r, err
	}, `
		SELECT `+columns+` FROM merge_requests m WHERE m.author_id = ? AND m.state = 'opened'
		UNION ALL
		SELECT `+columns+` FROM merge_request_assignees a JOIN merge_requests m ON m.id = a.merge_request_id
		WHERE a.user_id = ? AND m.state = 'opened' AND m.author_id <> ?
			AND NOT EXISTS (SELECT 1 FROM merge_request_reviewers r WHERE r.merge_request_id = m.id AND r.user_id = ?)
		LIMIT ?`, userID, userID, userID, userID, userID, userID, db.MaxCandidates+1)
	if err != nil {
		return o, err
	}
	o.reviews, err = db.All(ctx, q, func(s db.Scanner) (r openRequest, err error) {
		var state ReviewerState
		err = s.Scan(&r.id, (*string)(&state))
		r.in = sectionOf(state)
		return r, err
	}, `
		SELECT m.id, r.state FROM merge_request_reviewers r JOIN merge_requests m ON m.id = r.merge_request_id
		WHERE r.user_id = ? AND m.state = 'opened' AND m.author_id <> ? LIMIT ?`, userID, userID, db.MaxCandidates+1)
	return o, err
}

func listSection(ctx context.Context, d *db.DB, w db.Where, found listing.Selection, p db.Paging) (db.Page[*MergeRequest], error) {
	return listRequests(ctx, d, w, found, listing.Sort{By: "updated_at", Desc: true}, p)
}
