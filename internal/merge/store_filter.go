package merge

import (
	"context"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/project"
)

// visible are the conditions on merge requests i of projects p whose merge
// requests the actor reads, of a group if there is one. It says in SQL what the
// gate says of a single one.
func (s *Service) visible(by actor.Actor, groupID *int64) (w db.Where) {
	if groupID != nil {
		w.And(`p.namespace_id IN (SELECT t.descendant_id FROM namespace_tree t WHERE t.ancestor_id = ?)`, *groupID)
	}
	cond, args := s.Projects.Readable(by, project.MergePart)
	w.And(cond, args...)
	return w
}

// narrow adds the conditions of a filter.
func (s *Service) narrow(w *db.Where, by actor.Actor, f Filter) {
	if f.State != "" {
		w.And(`i.state = ?`, string(f.State))
	}
	me := Match{}
	switch f.Scope {
	case "created_by_me":
		w.And(`i.author_id = ?`, by.ID)
	case "assigned_to_me":
		me.AssigneeUsernames = []string{by.Username}
	case "reviews_for_me":
		me.ReviewerUsernames = []string{by.Username}
	}
	if f.Search != "" {
		either := !f.InTitle && !f.InText
		var conds []string
		var args []any
		if f.InTitle || either {
			conds, args = append(conds, `fold(i.title) LIKE ? ESCAPE '\'`), append(args, db.Like(f.Search))
		}
		if f.InText || either {
			conds, args = append(conds, `fold(i.description) LIKE ? ESCAPE '\'`), append(args, db.Like(f.Search))
		}
		w.And(strings.Join(conds, ` OR `), args...)
	}
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
		w.And(`i.merged_by_id IN (SELECT u.id FROM users u WHERE lower(u.username) = lower(?))`, f.MergeUsername)
	}
	w.Time(`i.created_at >= ?`, f.CreatedAt[0])
	w.Time(`i.created_at <= ?`, f.CreatedAt[1])
	w.Time(`i.updated_at >= ?`, f.UpdatedAt[0])
	w.Time(`i.updated_at <= ?`, f.UpdatedAt[1])
	if f.Live {
		w.And(`NOT p.archived`)
	}
	and := func(cond string, args ...any) { w.And(cond, args...) }
	s.match(me, and)
	s.match(f.Match, and)
	s.match(f.Not, plan.Not(w))
}

func (s *Service) match(m Match, and func(cond string, args ...any)) {
	m.Weight = ""
	s.Plan.Match(plan.MergeKind, m.IssueMatch, and)
	plan.MatchUsers(plan.MergeKind, plan.Reviewers, m.ReviewerID, m.ReviewerUsernames, and)
}

// order is the column that a list is sorted by.
func order(by string) (o db.Order, key func(*MergeRequest) any, err error) {
	switch by {
	case "", "created_at":
		return db.Order{Name: "i.created_at"}, func(m *MergeRequest) any { return m.CreatedAt.UnixMicro() }, nil
	case "updated_at":
		return db.Order{Name: "i.updated_at"}, func(m *MergeRequest) any { return m.UpdatedAt.UnixMicro() }, nil
	case "merged_at":
		return db.Order{Name: "COALESCE(i.merged_at, 0)"}, func(m *MergeRequest) any {
			if m.MergedAt == nil {
				return int64(0)
			}
			return m.MergedAt.UnixMicro()
		}, nil
	case "title":
		return db.Order{Name: "i.title", Text: true}, func(m *MergeRequest) any { return m.Title }, nil
	case "popularity":
		return db.Order{Name: "i.notes"}, func(m *MergeRequest) any { return m.Notes }, nil
	case "milestone_due":
		return db.Order{Name: "COALESCE((SELECT m.due_date FROM milestones m WHERE m.id = i.milestone_id), '9999')", Text: true}, func(*MergeRequest) any { return "" }, nil
	case "priority", "label_priority":
		return db.Order{Name: `COALESCE((SELECT min(o.priority) FROM merge_request_labels x JOIN label_priorities o ON o.label_id = x.label_id
			WHERE x.merge_request_id = i.id AND o.project_id = i.project_id), 1000000000)`}, func(*MergeRequest) any { return int64(0) }, nil
	}
	return db.Order{}, nil, errs.Invalid("order_by does not have a valid value")
}

func listRequests(ctx context.Context, d *db.DB, w db.Where, by plan.Sort, p db.Paging) (db.Page[*MergeRequest], error) {
	first, key, err := order(by.By)
	if err != nil {
		return db.Page[*MergeRequest]{}, err
	}
	return db.List(ctx, d, db.Query[*MergeRequest]{
		Columns: columns, From: tables, Where: w, Order: []db.Order{first, {Name: "i.id"}}, Desc: by.Desc, Scan: scanRequest,
		Keys: func(m *MergeRequest) []any { return []any{key(m), m.ID} },
	}, p)
}

func countRequests(ctx context.Context, q db.Q, w db.Where) (c Counts, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT count(*), COALESCE(sum(CASE WHEN i.state = 'opened' THEN 1 ELSE 0 END), 0), COALESCE(sum(CASE WHEN i.state = 'closed' THEN 1 ELSE 0 END), 0),
			COALESCE(sum(CASE WHEN i.state = 'merged' THEN 1 ELSE 0 END), 0)
		FROM `+tables+w.SQL(), w.Args()...).Scan(&c.All, &c.Opened, &c.Closed, &c.Merged)
	return c, err
}

// listOfCommit knows the commits that requests ended with: heads of versions,
// and what merging them made.
func listOfCommit(ctx context.Context, d *db.DB, projectID int64, sha string, p db.Paging) (db.Page[*MergeRequest], error) {
	var w db.Where
	w.And(`i.project_id = ?`, projectID)
	w.And(`i.merge_commit_sha = ? OR i.squash_commit_sha = ? OR EXISTS (SELECT 1 FROM merge_request_commits c WHERE c.merge_request_id = i.id AND c.sha = ?)`, sha, sha, sha)
	return listRequests(ctx, d, w, plan.Sort{By: "created_at", Desc: true}, p)
}

func totalRequests(ctx context.Context, d *db.DB, w db.Where) (n int, over bool, err error) {
	return d.Total(ctx, tables+w.SQL(), w.Args()...)
}
