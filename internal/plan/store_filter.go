package plan

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/emoji"
	"svc/internal/errs"
	"svc/internal/project"
)

// selectIssues resolves the names in a filter and finds the candidates for its
// list.
func (s *Service) selectIssues(ctx context.Context, by actor.Actor, at place, f *IssueFilter, order string) (Selection, error) {
	in, more := at.area(), []Candidates{}
	if f.Confidential != nil && *f.Confidential {
		if in.Project != 0 {
			more = append(more, Candidates{in.Rows(IssueKind, `i.created_at, i.id`, `i.confidential`)})
		}
		if at.project != nil && !at.project.MayRead(by, project.ConfidentialPart) && !by.Anonymous() {
			more = append(more, append(UsersOf(IssueKind, Assignees, by.ID), in.Rows(IssueKind, `i.author_id, i.id`, `i.author_id = ?`, by.ID)))
		}
	}
	if in.Project != 0 && len(f.Types) == 1 && f.Types[0] != "issue" {
		more = append(more, Candidates{in.Rows(IssueKind, `i.id`, `i.type = ? AND i.type <> 'issue'`, f.Types[0])})
	}
	if cond, args := s.due(f.Due); cond != "" && in.Project != 0 && order != "due_date" {
		more = append(more, Candidates{in.Rows(IssueKind, byDueDate+`, i.id`, cond, args...)})
	}
	return s.Select(ctx, by, IssueKind, in, f.Filter, order, &f.Match, &f.Not, func() []Candidates { return more })
}

// narrow adds the conditions of a filter on issues i of projects p.
func (s *Service) narrow(w *db.Where, by actor.Actor, f IssueFilter) {
	Narrow(w, IssueKind, by, f.Filter)
	f.ReactionBy, f.Not.ReactionBy = by.ID, by.ID
	if len(f.IDs) > 0 {
		w.And(`i.id IN `+db.In(len(f.IDs)), db.Any(f.IDs)...)
	}
	if len(f.NotIDs) > 0 {
		w.And(`i.id NOT IN `+db.In(len(f.NotIDs)), db.Any(f.NotIDs)...)
	}
	if f.Confidential != nil {
		w.And(`i.confidential = ?`, *f.Confidential)
	}
	if len(f.Types) > 0 {
		w.And(`i.type IN `+db.In(len(f.Types)), db.Any(f.Types)...)
	}
	if cond, args := s.due(f.Due); cond != "" {
		w.And(cond, args...)
	}
	s.MatchConditions(IssueKind, f.Match, func(cond string, args ...any) { w.And(cond, args...) })
	s.MatchConditions(IssueKind, f.Not, Not(w))
}

// Narrow adds the conditions of a filter on issues or merge requests i of
// projects p.
func Narrow(w *db.Where, kind Kind, by actor.Actor, f Filter) {
	if f.State != "" {
		w.And(inState(f.State))
	}
	switch f.Scope {
	case "created_by_me":
		w.And(`i.author_id = ?`, by.ID)
	case "assigned_to_me":
		w.And(relatedTo(kind, Assignees), by.ID)
	case "reviews_for_me":
		w.And(relatedTo(kind, Reviewers), by.ID)
	}
	if f.Search != "" {
		w.Contains(f.Search, f.columns("i.")...)
	}
	w.Time(`i.created_at >= ?`, f.CreatedAt[0])
	w.Time(`i.created_at <= ?`, f.CreatedAt[1])
	w.Time(`i.updated_at >= ?`, f.UpdatedAt[0])
	w.Time(`i.updated_at <= ?`, f.UpdatedAt[1])
	if f.Live {
		w.And(`NOT p.archived`)
	}
}

// inState returns the condition on the state. It has the state as text and not as an
// argument, because only so it matches the indexes of the opened ones.
func inState(state State) string {
	if !slices.Contains(MergeKind.states(), state) {
		return `1 = 0`
	}
	return `i.state = '` + string(state) + `'`
}

// columns returns the columns that a search looks in.
func (f Filter) columns(alias string) (list []string) {
	either := !f.InTitle && !f.InText
	if f.InTitle || either {
		list = append(list, alias+"title")
	}
	if f.InText || either {
		list = append(list, alias+"description")
	}
	return list
}

// Not returns a function that adds negated conditions to w.
func Not(w *db.Where) func(cond string, args ...any) {
	return func(cond string, args ...any) { w.And(negated(cond), args...) }
}

// negated returns a condition that is true if cond is false or NULL.
func negated(cond string) string { return `NOT COALESCE((` + cond + `), FALSE)` }

// relatedTo returns the condition on issues or merge requests i with a given
// assignee or reviewer.
func relatedTo(kind Kind, as Relation) string { return anyUser(kind, as, `a.user_id = ?`) }

func anyUser(kind Kind, as Relation, and string) string {
	cond := `EXISTS (SELECT 1 FROM ` + as.table(kind) + ` a WHERE a.` + kind.table() + `_id = i.id`
	if and != "" {
		cond += ` AND ` + and
	}
	return cond + `)`
}

// MatchUsers adds the conditions on the assignees or reviewers of issues or merge
// requests i: an ID, None or Any, and usernames.
func (n named) MatchUsers(kind Kind, as Relation, given string, names []string, and func(cond string, args ...any)) {
	switch id, err := strconv.ParseInt(given, 10, 64); {
	case given == "":
	case strings.EqualFold(given, None), err == nil && id == 0:
		and(`NOT ` + anyUser(kind, as, ``))
	case strings.EqualFold(given, Any):
		and(anyUser(kind, as, ``))
	default:
		and(relatedTo(kind, as), id)
	}
	for _, name := range names {
		if ids, ok := n.users[name]; ok {
			and(anyUser(kind, as, `a.user_id IN `+db.In(len(ids))), db.Any(ids)...)
			continue
		}
		and(anyUser(kind, as, `a.user_id IN (SELECT u.id FROM users u WHERE lower(u.username) = lower(?))`), name)
	}
}

// MatchConditions calls and for each condition of a match on issues or merge
// requests i.
func (s *Service) MatchConditions(kind Kind, m Match, and func(cond string, args ...any)) {
	labels := kind.table() + `_labels x`
	own := `x.` + kind.table() + `_id = i.id`
	if len(m.IIDs) > 0 {
		and(`i.iid IN `+db.In(len(m.IIDs)), db.Any(m.IIDs)...)
	}
	for _, name := range m.Labels {
		switch {
		case strings.EqualFold(name, None):
			and(`NOT EXISTS (SELECT 1 FROM ` + labels + ` WHERE ` + own + `)`)
		case strings.EqualFold(name, Any):
			and(`EXISTS (SELECT 1 FROM ` + labels + ` WHERE ` + own + `)`)
		case m.named.known(name):
			ids := m.named.labels[name]
			and(`EXISTS (SELECT 1 FROM `+labels+` WHERE `+own+` AND x.label_id IN `+db.In(len(ids))+`)`, db.Any(ids)...)
		default:
			and(`EXISTS (SELECT 1 FROM `+labels+` JOIN labels l ON l.id = x.label_id WHERE `+own+` AND l.name = ?)`, name)
		}
	}
	for i, given := range []string{m.Milestone, m.MilestoneID} {
		if given != "" {
			cond, args := s.milestoneMatch(given, i == 1)
			if ids, ok := m.named.milestones[given]; ok && i == 0 {
				cond, args = `i.milestone_id IN `+db.In(len(ids)), db.Any(ids)
			}
			and(cond, args...)
		}
	}
	if m.ReleaseTag != "" {
		and(`i.milestone_id IN (SELECT y.milestone_id FROM release_milestones y JOIN releases r ON r.id = y.release_id
			WHERE r.project_id = i.project_id AND r.tag = ?)`, m.ReleaseTag)
	}
	if m.AuthorID != 0 {
		and(`i.author_id = ?`, m.AuthorID)
	}
	if ids, ok := m.named.users[m.AuthorUsername]; ok {
		and(`i.author_id IN `+db.In(len(ids)), db.Any(ids)...)
	} else if m.AuthorUsername != "" {
		and(`i.author_id IN (SELECT u.id FROM users u WHERE lower(u.username) = lower(?))`, m.AuthorUsername)
	}
	m.named.MatchUsers(kind, Assignees, m.AssigneeID, m.AssigneeUsernames, and)
	matchReaction(kind, m, and)
	switch weight, err := strconv.ParseInt(m.Weight, 10, 64); {
	case m.Weight == "" || kind != IssueKind:
	case strings.EqualFold(m.Weight, Any):
		and(`i.weight IS NOT NULL`)
	case err == nil:
		and(byWeight+` = ?`, weight)
	default:
		and(`i.weight IS NULL`)
	}
}

// matchReaction adds the condition on issues or merge requests i with a reaction
// of the user ReactionBy.
func matchReaction(kind Kind, m Match, and func(cond string, args ...any)) {
	if m.Reaction == "" {
		return
	}
	own := `SELECT w.` + kind.table() + `_id FROM award_emoji w WHERE w.user_id = ? AND w.` + kind.table() + `_id IS NOT NULL`
	switch {
	case strings.EqualFold(m.Reaction, None):
		and(`i.id NOT IN (`+own+`)`, m.ReactionBy)
	case strings.EqualFold(m.Reaction, Any):
		and(`i.id IN (`+own+`)`, m.ReactionBy)
	default:
		name := m.Reaction
		if e := emoji.Find(name); e != nil {
			name = e.Name
		}
		and(`i.id IN (`+own+` AND w.name = ?)`, m.ReactionBy, name)
	}
}

// milestoneMatch returns the condition on the milestone of issues.
func (s *Service) milestoneMatch(given string, id bool) (string, []any) {
	relatedTo := `i.milestone_id IN (SELECT m.id FROM milestones m WHERE `
	switch number, err := strconv.ParseInt(given, 10, 64); {
	case strings.EqualFold(given, None), id && err == nil && number == 0:
		return `i.milestone_id IS NULL`, nil
	case strings.EqualFold(given, Any):
		return `i.milestone_id IS NOT NULL`, nil
	case given == Upcoming || given == "#upcoming":
		return relatedTo + `m.state = 'active' AND m.due_date > ?)`, []any{s.today()}
	case given == Started || given == "#started":
		return relatedTo + `m.state = 'active' AND m.start_date <= ?)`, []any{s.today()}
	case id:
		return `i.milestone_id = ?`, []any{number}
	}
	return relatedTo + `m.title = ?)`, []any{given}
}

// due returns the condition on the due date of issues.
func (s *Service) due(filter string) (string, []any) {
	now := s.Now().UTC()
	day := func(days int) string { return now.AddDate(0, 0, days).Format(time.DateOnly) }
	within := func(first, last string) (string, []any) { return byDueDate + ` BETWEEN ? AND ?`, []any{first, last} }
	switch filter {
	case "0", "none":
		return byDueDate + ` = '9999'`, nil
	case "any":
		return byDueDate + ` < '9999'`, nil
	case "today":
		return within(day(0), day(0))
	case "tomorrow":
		return within(day(1), day(1))
	case "overdue":
		return byDueDate + ` < ? AND i.state = 'opened'`, []any{day(0)}
	case "week":
		monday := -(int(now.Weekday()) + 6) % 7
		return within(day(monday), day(monday+6))
	case "month":
		first := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
		return within(first.Format(time.DateOnly), first.AddDate(0, 1, -1).Format(time.DateOnly))
	case "next_month_and_previous_two_weeks":
		next := time.Date(now.Year(), now.Month()+2, 0, 0, 0, 0, 0, time.UTC)
		return within(day(-14), next.Format(time.DateOnly))
	}
	return "", nil
}

// gap is the distance between the default positions of consecutive issues.
const gap = 1_000_000

// positionSQL is the position of an issue in manual order. Issues that were never
// moved are ordered by number.
func positionSQL() string {
	return `CASE WHEN i.position = 0 THEN i.iid * ` + strconv.Itoa(gap) + ` ELSE i.position END`
}

// Columns that can be NULL, as they are indexed for sorting.
const (
	byDueDate = `COALESCE(i.due_date, '9999')`
	byWeight  = `COALESCE(i.weight, -1)`
)

// issueOrder returns the column that a list of issues is sorted by.
func issueOrder(by string) (db.Order, error) {
	switch by {
	case "due_date":
		return db.Order{Name: byDueDate, Text: true}, nil
	case "weight":
		return db.Order{Name: byWeight}, nil
	case "relative_position":
		return db.Order{Name: positionSQL()}, nil
	}
	return OrderBy(IssueKind, by)
}

// noPriority is the sort key of objects without a prioritized label.
const noPriority = 1_000_000_000

// OrderBy returns the column that a list of issues or merge requests i is sorted
// by. Invalid.
func OrderBy(kind Kind, by string) (db.Order, error) {
	switch by {
	case "", "created_at":
		return db.Order{Name: "i.created_at"}, nil
	case "updated_at":
		return db.Order{Name: "i.updated_at"}, nil
	case "title":
		return db.Order{Name: "i.title", Text: true}, nil
	case "popularity":
		return db.Order{Name: "i.upvotes"}, nil
	case "milestone_due":
		return db.Order{Name: "COALESCE((SELECT m.due_date FROM milestones m WHERE m.id = i.milestone_id), '9999')", Text: true}, nil
	case "priority", "label_priority":
		return db.Order{Name: `COALESCE((SELECT min(o.priority) FROM ` + kind.table() + `_labels x JOIN label_priorities o ON o.label_id = x.label_id
			WHERE x.` + kind.table() + `_id = i.id AND o.project_id = i.project_id), ` + strconv.Itoa(noPriority) + `)`}, nil
	}
	return db.Order{}, errs.Invalid("order_by does not have a valid value")
}

// listIssues supports only offset pagination: most orders have no unique key.
func listIssues(ctx context.Context, d *db.DB, w db.Where, found Selection, order Sort, p db.Paging) (db.Page[*Issue], error) {
	first, err := issueOrder(order.By)
	if err != nil {
		return db.Page[*Issue]{}, err
	}
	return db.List(ctx, d, db.Query[*Issue]{
		Columns: issueColumns, From: issueTables, Where: w, Order: []db.Order{first, {Name: "i.id"}}, Desc: order.Desc, Scan: scanIssue,
		Among: found.Among, First: found.First(issueTables, w, first, order),
	}, p)
}

// TotalStates counts the issues or merge requests i in tables by state, each up to
// db.CountLimit + 1. The counts are cached until the next write. If among is not
// nil, only these IDs are counted.
func TotalStates(ctx context.Context, d *db.DB, tables string, w db.Where, among []int64, states map[State]*int64) error {
	if among != nil && len(among) == 0 {
		return nil
	}
	var candidates []any
	if among != nil {
		tables, candidates = d.Among(tables, "i.id", among)
	}
	for state, n := range states {
		var of db.Where
		of.And(w.Cond(), w.Args()...)
		of.And(`i.state = ?`, string(state))
		total, over, err := d.Total(ctx, tables+of.SQL(), append(slices.Clone(candidates), of.Args()...)...)
		if err != nil {
			return err
		}
		if *n = int64(total); over {
			*n = db.CountLimit + 1
		}
	}
	return nil
}

// totalIssues counts up to db.CountLimit; over reports that there are more.
func totalIssues(ctx context.Context, d *db.DB, w db.Where) (n int, over bool, err error) {
	return d.Total(ctx, issueTables+w.SQL(), w.Args()...)
}
