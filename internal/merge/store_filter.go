package merge

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/git"
	"svc/internal/plan/listing"
	"svc/internal/project"
)

// visible returns the conditions on merge requests i of projects p that the actor
// can read, within a group if one is given. It must agree with request, which checks
// access to a single merge request.
func (s *Service) visible(by actor.Actor, groupID *int64) (w db.Where) {
	if groupID != nil {
		w.And(`p.namespace_id IN (SELECT t.descendant_id FROM namespace_tree t WHERE t.ancestor_id = ?)`, *groupID)
	}
	cond, args := s.Projects.Readable(by, project.MergePart)
	w.And(cond, args...)
	return w
}

// inProject returns the condition on merge requests i of a project.
func inProject(id int64) (w db.Where) {
	w.And(`i.project_id = ?`, id)
	return w
}

// narrow adds the conditions of a filter.
func (s *Service) narrow(w *db.Where, by actor.Actor, f Filter) {
	listing.Narrow(w, listing.MergeRequests, by, f.Filter)
	f.ReactionBy, f.Not.ReactionBy = by.ID, by.ID
	if f.Draft != nil {
		w.And(`i.draft = ?`, *f.Draft)
	}
	if f.SourceBranch != "" {
		w.And(`i.source_branch = ?`, f.SourceBranch)
	}
	if f.TargetBranch != "" {
		w.And(`i.target_branch = ?`, f.TargetBranch)
	}
	if f.SourceProjectID != 0 {
		w.And(`i.source_project_id = ?`, f.SourceProjectID)
	}
	if f.MergeUserID != 0 {
		w.And(`i.merged_by_id = ?`, f.MergeUserID)
	}
	if f.MergeUsername != "" {
		cond, args := f.userNamed(f.MergeUsername)
		w.And(`i.merged_by_id IN `+cond, args...)
	}
	if f.Approved != nil {
		not := `NOT `
		if *f.Approved {
			not = ``
		}
		w.And(not + anyApproval)
	}
	and := func(cond string, args ...any) { w.And(cond, args...) }
	matchIDs(f.ApproverIDs, anyRuleUser, and)
	matchIDs(f.ApprovedByIDs, anyApproval, and)
	for _, name := range f.ApprovedByNames {
		cond, args := f.userNamed(name)
		and(having(anyApproval, `a.user_id IN `+cond), args...)
	}
	s.match(f.Match, and)
	s.match(f.Not, listing.Not(w))
}

// userNamed returns the SQL list of the IDs of users with a username, and its
// arguments.
func (m Match) userNamed(name string) (string, []any) {
	if ids, ok := m.UserNamed(name); ok {
		return db.In(len(ids)), db.Any(ids)
	}
	return `(SELECT u.id FROM users u WHERE lower(u.username) = lower(?))`, []any{name}
}

// selectRequests resolves the names in a filter and finds the candidates for its list.
func (s *Service) selectRequests(ctx context.Context, by actor.Actor, in listing.Area, f *Filter, order string) (listing.Selection, error) {
	f.Usernames, f.Not.Usernames = slices.Concat(f.ReviewerUsernames, f.ApprovedByNames), f.Not.ReviewerUsernames
	f.Not.More = f.Not.ReviewerID != "" || len(f.Not.ReviewerUsernames) > 0
	if f.MergeUsername != "" {
		f.Usernames = append(f.Usernames, f.MergeUsername)
	}
	found, err := listing.Select(ctx, s.DB, by, listing.MergeRequests, in, f.Filter, order, &f.Match.Match, &f.Not.Match, func() []listing.Candidates {
		list := f.Related(listing.MergeRequests, listing.Reviewers, f.ReviewerID, f.ReviewerUsernames)
		rows := func(order, cond string, args ...any) {
			list = append(list, listing.Candidates{in.Rows(listing.MergeRequests, order, cond, args...)})
		}
		if in.Project != 0 && f.SourceBranch != "" {
			rows(`i.source_branch, i.id`, `i.source_branch = ?`, f.SourceBranch)
		}
		if in.Project != 0 && f.TargetBranch != "" {
			rows(`i.target_branch, i.id`, `i.target_branch = ?`, f.TargetBranch)
		}
		if in.Project != 0 && f.Draft != nil && *f.Draft {
			rows(`i.created_at, i.id`, `i.draft`)
		}
		if f.Approved != nil && *f.Approved {
			list = append(list, listing.Candidates{{Query: `SELECT DISTINCT a.merge_request_id AS id FROM approvals a ORDER BY a.merge_request_id`}})
		}
		for _, name := range f.ApprovedByNames {
			if ids, ok := f.UserNamed(name); ok {
				list = append(list, approvedBy(ids))
			}
		}
		for _, text := range f.ApprovedByIDs {
			if id, err := strconv.ParseInt(text, 10, 64); err == nil {
				list = append(list, approvedBy([]int64{id}))
			}
		}
		merged, ok := f.UserNamed(f.MergeUsername)
		if f.MergeUserID != 0 {
			merged, ok = []int64{f.MergeUserID}, true
		}
		if ok {
			by := listing.Candidates{}
			for _, id := range merged {
				by = append(by, listing.Area{}.Rows(listing.MergeRequests, `i.merged_by_id, i.id`, `i.merged_by_id = ?`, id))
			}
			list = append(list, by)
		}
		return list
	})
	if f.Draft != nil && *f.Draft {
		found = found.Indexed(`i.draft`)
	}
	return found, err
}

// approvedBy returns the candidates for the condition that users have approved.
func approvedBy(users []int64) listing.Candidates {
	list := listing.Candidates{}
	for _, id := range users {
		list = append(list, listing.Range{Query: `SELECT a.merge_request_id AS id FROM approvals a WHERE a.user_id = ? ORDER BY a.merge_request_id`, Args: []any{id}})
	}
	return list
}

func (s *Service) match(m Match, and func(cond string, args ...any)) {
	m.Match.Conditions(listing.MergeRequests, s.Now(), and)
	m.MatchUsers(listing.MergeRequests, listing.Reviewers, m.ReviewerID, m.ReviewerUsernames, and)
}

// The conditions on merge requests i that have an approval, and that have a user
// listed in a rule. Project rules count unless the merge request has rules.
const (
	anyApproval = `EXISTS (SELECT 1 FROM approvals a WHERE a.merge_request_id = i.id)`
	anyRuleUser = `EXISTS (SELECT 1 FROM approval_rules r JOIN approval_rule_users a ON a.approval_rule_id = r.id WHERE
		(r.merge_request_id = i.id OR r.merge_request_id IS NULL AND r.project_id = i.project_id
			AND NOT EXISTS (SELECT 1 FROM approval_rules o WHERE o.merge_request_id = i.id AND o.type <> 'code_owner')))`
)

// having adds a condition to an EXISTS condition.
func having(exists, more string) string {
	return strings.TrimSuffix(exists, `)`) + ` AND ` + more + `)`
}

// matchIDs calls and for the condition that all users with the given IDs are
// related, or for None or Any.
func matchIDs(ids []string, exists string, and func(cond string, args ...any)) {
	for _, text := range ids {
		switch id, err := strconv.ParseInt(text, 10, 64); {
		case strings.EqualFold(text, listing.None):
			and(`NOT ` + exists)
		case strings.EqualFold(text, listing.Any):
			and(exists)
		case err == nil:
			and(having(exists, `a.user_id = ?`), id)
		}
	}
}

// order returns the column that a list is sorted by.
func order(by string) (db.Order, error) {
	if by == "merged_at" {
		return db.Order{Name: "COALESCE(i.merged_at, 0)"}, nil
	}
	return listing.OrderBy(listing.MergeRequests, by)
}

// listRequests uses offset pagination, because most orders have no unique key.
func listRequests(ctx context.Context, d *db.DB, w db.Where, found listing.Selection, by listing.Sort, p db.Paging) (db.Page[*MergeRequest], error) {
	first, err := order(by.By)
	if err != nil {
		return db.Page[*MergeRequest]{}, err
	}
	return db.List(ctx, d, db.Query[*MergeRequest]{
		Columns: columns, From: tables, Where: w, Order: []db.Order{first, {Name: "i.id"}}, Desc: by.Desc, Scan: scanRequest,
		Among: found.Among, Behind: found.Behind, First: found.First(tables, w, first, by),
	}, p)
}

// listOfCommit lists the merge requests that have a commit in the newest version, as
// merge commit or as squash commit.
func listOfCommit(ctx context.Context, d *db.DB, projectID int64, sha string, p db.Paging) (db.Page[*MergeRequest], error) {
	w := inProject(projectID)
	w.And(`i.merge_commit_sha = ? OR i.squash_commit_sha = ? OR EXISTS (SELECT 1 FROM merge_request_commits c WHERE c.merge_request_id = i.id AND c.sha = ?)`, sha, sha, sha)
	// Each part has an index; together they would be checked for all merge requests.
	ids, few, err := d.Few(ctx, `SELECT found.id FROM (
			SELECT c.merge_request_id AS id FROM merge_request_commits c WHERE c.sha = ?
			UNION ALL SELECT m.id FROM merge_requests m WHERE m.merge_commit_sha = ? AND m.merge_commit_sha <> ''
			UNION ALL SELECT m.id FROM merge_requests m WHERE m.squash_commit_sha = ? AND m.squash_commit_sha <> ''
		) AS found`, []any{sha, sha, sha}, maxOfCommit)
	if err != nil {
		return db.Page[*MergeRequest]{}, err
	}
	var f listing.Selection
	if few {
		slices.Sort(ids)
		f.Among = append([]int64{}, slices.Compact(ids)...) // not nil: none match
	}
	return listRequests(ctx, d, w, f, listing.Sort{By: "created_at", Desc: true}, p)
}

// maxOfCommit is the number of merge requests of a commit up to which they are sorted.
// With more, reading in the order of the list soon finds a page.
const maxOfCommit = 1000

// mergedWith returns the IIDs of the merge requests that were merged with one of the
// commits: as merge commit, as squash commit or, without both, as head.
func mergedWith(ctx context.Context, q db.Q, projectID int64, commits []git.OID) ([]int64, error) {
	in := db.In(len(commits))
	var args []any
	for range 3 {
		for _, id := range commits {
			args = append(args, string(id))
		}
		args = append(args, projectID)
	}
	return db.All(ctx, q, db.Value[int64], `
		SELECT iid FROM merge_requests WHERE merge_commit_sha IN `+in+` AND merge_commit_sha <> '' AND project_id = ? AND state = 'merged'
		UNION
		SELECT iid FROM merge_requests WHERE squash_commit_sha IN `+in+` AND squash_commit_sha <> '' AND project_id = ? AND state = 'merged'
		UNION
		SELECT i.iid FROM merge_request_commits c JOIN merge_requests i ON i.id = c.merge_request_id AND i.head_sha = c.sha
		WHERE c.sha IN `+in+` AND i.project_id = ? AND i.state = 'merged' AND i.merge_commit_sha = '' AND i.squash_commit_sha = ''`, args...)
}

func totalRequests(ctx context.Context, d *db.DB, w db.Where) (n int, over bool, err error) {
	return d.Total(ctx, tables+w.SQL(), w.Args()...)
}

func completeRequests(ctx context.Context, d *db.DB, projectID int64, t listing.Typed) ([]*MergeRequest, error) {
	var w db.Where
	t.Match(&w, listing.MergeRequests, projectID)
	from, args := t.From(d, listing.MergeRequests, tables, projectID)
	return db.All(ctx, d, scanRequest, `SELECT `+columns+` FROM `+from+w.SQL()+t.Order(), append(args, w.Args()...)...)
}
