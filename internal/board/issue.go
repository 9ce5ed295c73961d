package board

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/plan/listing"
	"svc/internal/project"
)

// The keys of the two columns that are not lists: open issues that are in no list,
// and closed issues.
const (
	Backlog = "backlog"
	Done    = "closed"
)

// Column is a column of a board with a page of its issues.
type Column struct {
	Key    string // Backlog, Done or the ID of a list
	List   *List  // nil for Backlog and Done
	Issues []*plan.Issue
	Total  int  // number of issues on all pages
	Over   bool // Total is a lower bound: there are more issues than are counted
	More   bool
}

// Columns returns the keys of the columns of a board in display order.
func (b *Board) Columns() []string {
	var keys []string
	if !b.HideBacklog {
		keys = append(keys, Backlog)
	}
	for _, l := range b.Lists {
		keys = append(keys, strconv.FormatInt(l.ID, 10))
	}
	if !b.HideClosed {
		keys = append(keys, Done)
	}
	return keys
}

// list returns the list with a key, nil for Backlog and Done. It returns false if
// the board has no such column.
func (b *Board) list(key string) (*List, bool) {
	if key == Backlog || key == Done {
		return nil, true
	}
	for _, l := range b.Lists {
		if strconv.FormatInt(l.ID, 10) == key {
			return l, true
		}
	}
	return nil, false
}

// scope returns the filter for the issues that a board shows.
func (b *Board) scope() plan.IssueFilter {
	format := func(n *int64) string {
		if n == nil {
			return ""
		}
		return strconv.FormatInt(*n, 10)
	}
	return plan.IssueFilter{Match: listing.Match{
		Labels: b.LabelNames, MilestoneID: format(b.MilestoneID), AssigneeID: format(b.AssigneeID), Weight: format(b.Weight),
	}}
}

// Issues returns a board with a page of the issues of the given columns, or
// of all columns without keys. Requires read access to issues. NotFound.
func (s *Service) Issues(ctx context.Context, by actor.Actor, at project.Place, boardID int64, f plan.IssueFilter, p db.Paging, keys ...string) (*Board, []*Column, error) {
	o, err := s.require(ctx, by, at, project.NoAccess)
	if err != nil {
		return nil, nil, err
	}
	b, err := s.board(ctx, o, boardID)
	if err != nil {
		return nil, nil, err
	}
	if len(keys) == 0 {
		keys = b.Columns()
	}
	var columns []*Column
	var all []*plan.Issue
	for _, key := range keys {
		c, err := s.column(ctx, by, o, b, key, f, p)
		if err != nil {
			return nil, nil, err
		}
		columns, all = append(columns, c), append(all, c.Issues...)
	}
	return b, columns, s.Plan.FillIssues(ctx, all...)
}

func (s *Service) column(ctx context.Context, by actor.Actor, o plan.Owner, b *Board, key string, f plan.IssueFilter, p db.Paging) (*Column, error) {
	set, err := s.columnIssues(by, o, b, key, f)
	if err != nil {
		return nil, err
	}
	order := listing.Sort{By: "relative_position"}
	if key == Done {
		order = listing.Sort{By: "updated_at", Desc: true}
	}
	page, err := s.Plan.ListSet(ctx, set, order, p)
	if err != nil {
		return nil, fmt.Errorf("list board %d: %w", b.ID, err)
	}
	c := &Column{Key: key, Issues: page.Items, Total: p.Offset + len(page.Items), More: page.More}
	if page.More || len(page.Items) == 0 && p.Offset > 0 {
		if c.Total, c.Over, err = s.Plan.CountSet(ctx, set); err != nil {
			return nil, fmt.Errorf("count board %d: %w", b.ID, err)
		}
	}
	c.List, _ = b.list(key)
	return c, nil
}

// columnIssues returns the issues in a column that match the filters. NotFound.
func (s *Service) columnIssues(by actor.Actor, o plan.Owner, b *Board, key string, filters ...plan.IssueFilter) (plan.IssueSet, error) {
	l, ok := b.list(key)
	if !ok {
		return plan.IssueSet{}, errs.NotFound("List")
	}
	f := b.scope()
	f.State, f.Live = plan.Opened, o.Group != nil
	if key == Done {
		f.State = plan.Closed
	}
	set := s.Plan.IssueSet(by, o, append([]plan.IssueFilter{f}, filters...)...)
	switch {
	case l != nil:
		set = set.With(l.trait())
	case key == Backlog:
		for _, l := range b.Lists {
			set = set.Without(l.trait())
		}
	}
	return set, nil
}

// trait returns the label, assignee or milestone that the issues of a list have.
func (l *List) trait() plan.Trait {
	return plan.Trait{LabelID: l.LabelID, AssigneeID: l.AssigneeID, MilestoneID: l.MilestoneID}
}

// CardMove moves an issue on a board. After and Before are its new neighbors; a
// neighbor that is no longer in the column is ignored.
type CardMove struct {
	Issue         int64 // issue ID
	From, To      string
	After, Before int64 // issue IDs, or 0
}

// MoveCard moves an issue within a column of a board or to another column. The
// labels, assignees, milestone and state of the issue change with its list.
// Requires Planner in the project of the issue. NotFound; Forbidden; Conflict if
// the issue is no longer in the From column.
func (s *Service) MoveCard(ctx context.Context, by actor.Actor, at project.Place, boardID int64, m CardMove) (*plan.Issue, error) {
	o, err := s.require(ctx, by, at, project.NoAccess)
	if err != nil {
		return nil, err
	}
	b, err := s.board(ctx, o, boardID)
	if err != nil {
		return nil, err
	}
	from, fromOK := b.list(m.From)
	to, toOK := b.list(m.To)
	if !fromOK || !toOK {
		return nil, errs.NotFound("List")
	}
	proj, i, err := s.Plan.Seen(ctx, by, m.Issue)
	if err != nil {
		return nil, err
	}
	if err := proj.Change(by, project.IssuePart, project.Planner); err != nil {
		return nil, err
	}
	if to != nil && to.AssigneeID != nil {
		able, err := s.Plan.Able(ctx, proj, "assignees", []int64{*to.AssigneeID}, project.IssuePart)
		if err != nil {
			return nil, err
		}
		if len(able) == 0 {
			return nil, errs.Invalid("@%s does not see this issue.", to.Assignee.Username)
		}
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error { return s.moveCard(ctx, tx, by, o, proj, b, i.ID, m, from, to) })
	if err != nil {
		return nil, fmt.Errorf("move issue %d on board %d: %w", i.ID, boardID, err)
	}
	return s.Plan.Issue(ctx, by, project.RefTo(proj.ID), i.IID)
}

func (s *Service) moveCard(ctx context.Context, tx *db.Tx, by actor.Actor, o plan.Owner, proj *project.Project, b *Board, id int64, m CardMove, from, to *List) error {
	set, err := s.columnIssues(by, o, b, m.From)
	if err != nil {
		return err
	}
	found, err := set.Lock(ctx, tx, id)
	if err != nil {
		return err
	}
	if !found {
		return errs.Conflict("This issue was moved in the meantime.")
	}
	if m.From != m.To {
		f, err := cardFields(ctx, tx, id, m, from, to)
		if err != nil {
			return err
		}
		if err := s.Plan.ChangeIssue(ctx, tx, by, proj, id, f); err != nil {
			return err
		}
	}
	if m.To == Done {
		return nil // closed issues are sorted by time
	}
	if set, err = s.columnIssues(by, o, b, m.To); err != nil {
		return err
	}
	return set.Move(ctx, tx, id, m.After, m.Before)
}

// cardFields returns the changes to an issue that is moved from one list to
// another.
func cardFields(ctx context.Context, tx *db.Tx, id int64, m CardMove, from, to *List) (plan.IssueFields, error) {
	var f plan.IssueFields
	var none int64
	userIDs, err := plan.Related(ctx, tx, plan.Target{Kind: plan.IssueKind, ID: id}, plan.Assignees)
	if err != nil {
		return f, err
	}
	switch {
	case m.To == Done:
		f.Event = "close"
	case m.From == Done:
		f.Event = "reopen"
	}
	if from != nil {
		switch {
		case from.Label != nil:
			f.Labels.Remove = []string{from.Label.Name}
		case from.AssigneeID != nil:
			userIDs = slices.DeleteFunc(userIDs, func(id int64) bool { return id == *from.AssigneeID })
			f.Assignees = &userIDs
		case from.MilestoneID != nil:
			f.Milestone = &none
		}
	}
	if to != nil {
		switch {
		case to.Label != nil:
			f.Labels.Add = []string{to.Label.Name}
		case to.AssigneeID != nil:
			if !slices.Contains(userIDs, *to.AssigneeID) {
				userIDs = append(userIDs, *to.AssigneeID)
			}
			f.Assignees = &userIDs
		case to.MilestoneID != nil:
			f.Milestone = to.MilestoneID
		}
	}
	return f, nil
}
