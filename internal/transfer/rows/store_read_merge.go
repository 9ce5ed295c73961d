package rows

import (
	"context"
	"time"

	"svc/internal/db"
	"svc/internal/transfer/archive"
)

// mergeRequest is a merge request with what its row does not name.
type mergeRequest struct {
	id                         int64
	author, closedBy, mergedBy *int64
	closed, merged, prepared   *time.Time
	archive.MergeRequestRow
}

// MergeRequests writes the merge requests into the project, by number.
func (s *Source) MergeRequests(ctx context.Context, add Add) error {
	for after := int64(0); ; {
		list, err := db.All(ctx, s.DB, func(sc db.Scanner) (*mergeRequest, error) {
			var r mergeRequest
			var source *int64
			err := sc.Scan(&r.id, &r.IID, &r.Title, &r.Description, &r.State, &r.DiscussionLocked, &r.author, &r.Milestone, &r.TimeEstimate, &r.TimeSpent,
				db.Time(&r.CreatedAt), db.Time(&r.UpdatedAt), db.NullTime(&r.closed), &r.closedBy, &r.Draft, &source, &r.SourceBranch, &r.TargetBranch, &r.SHA,
				&r.Squash, &r.RemoveSourceBranch, &r.AllowCollaboration, &r.MergeCommitSHA, &r.SquashCommitSHA, db.NullTime(&r.merged), &r.mergedBy, db.NullTime(&r.prepared))
			r.Fork = source == nil || *source != s.ProjectID
			return &r, err
		}, `SELECT i.id, i.iid, i.title, i.description, i.state, i.locked, i.author_id, COALESCE(m.title, ''), i.time_estimate, i.time_spent,
				i.created_at, i.updated_at, i.closed_at, i.closed_by_id, i.draft, i.source_project_id, i.source_branch, i.target_branch, i.head_sha,
				i.squash, i.remove_source, i.allow_collaboration, i.merge_commit_sha, i.squash_commit_sha, i.merged_at, i.merged_by_id, i.prepared_at
			FROM merge_requests i LEFT JOIN milestones m ON m.id = i.milestone_id WHERE i.project_id = ? AND i.iid > ? AND i.iid <= ? ORDER BY i.iid LIMIT ?`,
			s.ProjectID, after, s.merges, batch)
		if err != nil || len(list) == 0 {
			return err
		}
		if err := s.fillMerges(ctx, list); err != nil {
			return err
		}
		for _, r := range list {
			if err := add(r.MergeRequestRow); err != nil {
				return err
			}
			after = r.IID
		}
	}
}

func (s *Source) fillMerges(ctx context.Context, list []*mergeRequest) error {
	ids := make([]int64, len(list))
	for n, r := range list {
		ids[n] = r.id
	}
	shared, err := s.relate(ctx, "merge_request", "MergeRequest", ids)
	if err != nil {
		return err
	}
	reviewers, err := group(ctx, s.DB, ids, func(sc db.Scanner, of *int64) (r archive.ReviewerRow, err error) {
		var user *int64
		var at time.Time
		err = sc.Scan(of, &user, &r.State, db.Time(&at))
		r.User, r.CreatedAt = s.Person(user), at.UTC()
		return r, err
	}, `SELECT x.merge_request_id, x.user_id, x.state, x.created_at FROM merge_request_reviewers x JOIN users u ON u.id = x.user_id WHERE x.merge_request_id`, `u.username`)
	if err != nil {
		return err
	}
	approval := func(sc db.Scanner, of *int64) (r archive.ApprovalRow, err error) {
		var user *int64
		var at time.Time
		err = sc.Scan(of, &user, &r.SHA, &r.Bypassed, db.Time(&at))
		r.User, r.CreatedAt = s.Person(user), at.UTC()
		return r, err
	}
	approvals, err := group(ctx, s.DB, ids, approval,
		`SELECT x.merge_request_id, x.user_id, x.head_sha, FALSE, x.created_at FROM approvals x WHERE x.merge_request_id`, `x.created_at, x.user_id`)
	if err != nil {
		return err
	}
	changes, err := group(ctx, s.DB, ids, approval,
		`SELECT x.merge_request_id, x.user_id, '', x.bypassed, x.created_at FROM merge_request_change_requests x WHERE x.merge_request_id`, `x.created_at, x.user_id`)
	if err != nil {
		return err
	}
	committers, err := group(ctx, s.DB, ids, one[*int64],
		`SELECT x.merge_request_id, x.user_id FROM merge_request_committers x JOIN users u ON u.id = x.user_id WHERE x.merge_request_id`, `u.username`)
	if err != nil {
		return err
	}
	versions, err := group(ctx, s.DB, ids, func(sc db.Scanner, of *int64) (v archive.VersionRow, err error) {
		var author *int64
		var at time.Time
		err = sc.Scan(of, &v.HeadSHA, &v.BaseSHA, &v.StartSHA, &v.WasSHA, &author, &v.Files, db.Time(&at))
		v.Author, v.CreatedAt = s.Person(author), at.UTC()
		return v, err
	}, `SELECT v.merge_request_id, v.head_sha, v.base_sha, v.start_sha, v.was_sha, v.author_id, v.files, v.created_at
		FROM merge_request_versions v WHERE v.collected AND v.merge_request_id`, `v.id`)
	if err != nil {
		return err
	}
	commits, err := group(ctx, s.DB, ids, one[string], `SELECT c.merge_request_id, c.sha FROM merge_request_commits c WHERE c.merge_request_id`, `c.sha`)
	if err != nil {
		return err
	}
	issues, err := group(ctx, s.DB, ids, func(sc db.Scanner, of *int64) (r archive.NamedIssueRow, err error) {
		err = sc.Scan(of, &r.IID, &r.Closes)
		return r, err
	}, `SELECT x.merge_request_id, i.iid, x.closes FROM merge_request_issues x JOIN issues i ON i.id = x.issue_id
		JOIN merge_requests m ON m.id = x.merge_request_id AND m.project_id = i.project_id WHERE x.merge_request_id`, `i.iid`)
	if err != nil {
		return err
	}
	added, err := group(ctx, s.DB, ids, func(sc db.Scanner, of *int64) (r archive.CommitRow, err error) {
		var at time.Time
		err = sc.Scan(of, &r.SHA, db.Time(&at))
		r.CreatedAt = at.UTC()
		return r, err
	}, `SELECT c.merge_request_id, c.sha, c.created_at FROM merge_request_context_commits c WHERE c.merge_request_id`, `c.id`)
	if err != nil {
		return err
	}
	blocks, err := group(ctx, s.DB, ids, one[int64], `SELECT x.blocked_id, b.iid FROM merge_request_blocks x JOIN merge_requests a ON a.id = x.blocked_id
		JOIN merge_requests b ON b.id = x.blocking_id AND b.project_id = a.project_id WHERE x.blocked_id`, `b.iid`)
	if err != nil {
		return err
	}
	for _, r := range list {
		s.common(&r.IssuableRow, r.id, r.author, r.closedBy, r.closed, shared)
		r.MergedAt, r.PreparedAt, r.MergedBy = utcOrNull(r.merged), utcOrNull(r.prepared), s.Person(r.mergedBy)
		r.Reviewers, r.Approvals, r.ChangeRequests, r.Versions, r.Commits = reviewers[r.id], approvals[r.id], changes[r.id], versions[r.id], commits[r.id]
		r.Issues, r.ContextCommits, r.BlockedBy = issues[r.id], added[r.id], blocks[r.id]
		if len(committers[r.id]) > 0 {
			r.Committers = s.persons(committers[r.id])
		}
	}
	return nil
}
