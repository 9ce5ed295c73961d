package plan

import (
	"context"
	"strconv"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/plan/listing"
	"svc/internal/project"
)

// selectIssues resolves the names in a filter and finds the candidates for its
// list.
func (s *Service) selectIssues(ctx context.Context, by actor.Actor, at place, f *IssueFilter, order string) (listing.Selection, error) {
	in, more := at.area(), []listing.Candidates{}
	if f.Confidential != nil && *f.Confidential {
		if in.Project != 0 {
			more = append(more, listing.Candidates{in.Rows(listing.Issues, `i.created_at, i.id`, `i.confidential`)})
		}
		if at.project != nil && !at.project.MayRead(by, project.ConfidentialPart) && !by.Anonymous() {
			more = append(more, append(listing.UsersOf(listing.Issues, listing.Assignees, by.ID), in.Rows(listing.Issues, `i.author_id, i.id`, `i.author_id = ?`, by.ID)))
		}
	}
	rareType := len(f.Types) == 1 && f.Types[0] != "issue"
	if rareType && in.Project != 0 {
		more = append(more, listing.Candidates{in.Rows(listing.Issues, `i.created_at, i.id`, ofRareType, f.Types[0])})
	}
	if cond, args := s.due(f.Due); cond != "" && in.Project != 0 && order != "due_date" {
		more = append(more, listing.Candidates{in.Rows(listing.Issues, byDueDate+`, i.id`, cond, args...)})
	}
	found, err := listing.Select(ctx, s.DB, by, listing.Issues, in, f.Filter, order, &f.Match, &f.Not, func() []listing.Candidates { return more })
	switch {
	case rareType:
		found = found.Indexed(ofRareType, f.Types[0])
	case f.Confidential != nil && *f.Confidential:
		found = found.Indexed(`i.confidential`)
	}
	return found, err
}

// ofRareType is the condition on a type other than issue, as in the partial index.
const ofRareType = `i.type = ? AND i.type <> 'issue'`

// narrow adds the conditions of a filter on issues i of projects p.
func (s *Service) narrow(w *db.Where, by actor.Actor, f IssueFilter) {
	listing.Narrow(w, listing.Issues, by, f.Filter)
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
	f.Match.Conditions(listing.Issues, s.Now(), func(cond string, args ...any) { w.And(cond, args...) })
	f.Not.Conditions(listing.Issues, s.Now(), listing.Not(w))
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

// byDueDate is the due date, which can be NULL, as in the index for sorting.
const byDueDate = `COALESCE(i.due_date, '9999')`

// issueOrder returns the column that a list of issues is sorted by.
func issueOrder(by string) (db.Order, error) {
	switch by {
	case "due_date":
		return db.Order{Name: byDueDate, Text: true}, nil
	case "weight":
		return db.Order{Name: listing.ByWeight}, nil
	case "relative_position":
		return db.Order{Name: positionSQL()}, nil
	}
	return listing.OrderBy(listing.Issues, by)
}

// listIssues uses offset pagination, because most orders have no unique key.
func listIssues(ctx context.Context, d *db.DB, w db.Where, found listing.Selection, order listing.Sort, p db.Paging) (db.Page[*Issue], error) {
	first, err := issueOrder(order.By)
	if err != nil {
		return db.Page[*Issue]{}, err
	}
	return db.List(ctx, d, db.Query[*Issue]{
		Columns: issueColumns, From: issueTables, Where: w, Order: []db.Order{first, {Name: "i.id"}}, Desc: order.Desc, Scan: scanIssue,
		Among: found.Among, Behind: found.Behind, First: found.First(issueTables, w, first, order),
	}, p)
}

// totalIssues counts up to db.CountLimit; over reports that there are more.
func totalIssues(ctx context.Context, d *db.DB, w db.Where) (n int, over bool, err error) {
	return d.Total(ctx, issueTables+w.SQL(), w.Args()...)
}
