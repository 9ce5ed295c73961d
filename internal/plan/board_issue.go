package plan

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
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
	Key    string     // Backlog, Done or the ID of a list
	List   *BoardList // nil for Backlog and Done
	Issues []*Issue
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
func (b *Board) list(key string) (*BoardList, bool) {
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
func (b *Board) scope() IssueFilter {
	m := Match{Labels: b.LabelNames}
	format := func(n *int64) string {
		if n == nil {
			return ""
		}
		return strconv.FormatInt(*n, 10)
	}
	m.MilestoneID, m.AssigneeID, m.Weight = format(b.MilestoneID), format(b.AssigneeID), format(b.Weight)
	return IssueFilter{Match: m}
}

// BoardIssues returns a board with a page of the issues of the given columns, or
// of all columns without keys. Requires read access to issues. NotFound.
func (s *Service) BoardIssues(ctx context.Context, by actor.Actor, at project.Place, boardID int64, f IssueFilter, p db.Paging, keys ...string) (*Board, []*Column, error) {
	in, err := s.boardsAt(ctx, by, at, project.NoAccess)
	if err != nil {
		return nil, nil, err
	}
	b, err := s.board(ctx, in, boardID)
	if err != nil {
		return nil, nil, err
	}
	if len(keys) == 0 {
		keys = b.Columns()
	}
	var columns []*Column
	var all []*Issue
	for _, key := range keys {
		c, err := s.column(ctx, by, in, b, key, f, p)
		if err != nil {
			return nil, nil, err
		}
		columns, all = append(columns, c), append(all, c.Issues...)
	}
	return b, columns, s.fillIssues(ctx, all...)
}

func (s *Service) column(ctx context.Context, by actor.Actor, in place, b *Board, key string, f IssueFilter, p db.Paging) (*Column, error) {
	w, err := s.columnWhere(by, in, b, key)
	if err != nil {
		return nil, err
	}
	s.narrow(&w, by, f)
	order := Sort{By: "relative_position"}
	if key == Done {
		order = Sort{By: "updated_at", Desc: true}
	}
	page, err := listIssues(ctx, s.DB, w, Selection{}, order, p)
	if err != nil {
		return nil, fmt.Errorf("list board %d: %w", b.ID, err)
	}
	c := &Column{Key: key, Issues: page.Items, Total: p.Offset + len(page.Items), More: page.More}
	if page.More || len(page.Items) == 0 && p.Offset > 0 {
		if c.Total, c.Over, err = totalIssues(ctx, s.DB, w); err != nil {
			return nil, fmt.Errorf("count board %d: %w", b.ID, err)
		}
	}
	c.List, _ = b.list(key)
	return c, nil
}

// columnWhere returns the conditions on issues i of projects p in a column.
func (s *Service) columnWhere(by actor.Actor, in place, b *Board, key string) (db.Where, error) {
	l, ok := b.list(key)
	if !ok {
		return db.Where{}, errs.NotFound("List")
	}
	w := s.issuesIn(by, in)
	f := b.scope()
	f.State, f.Live = Opened, in.group != nil
	if key == Done {
		f.State = Closed
	}
	s.narrow(&w, by, f)
	switch {
	case l != nil:
		cond, args := l.where()
		w.And(cond, args...)
	case key == Backlog:
		for _, l := range b.Lists {
			cond, args := l.where()
			Not(&w)(cond, args...)
		}
	}
	return w, nil
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
func (s *Service) MoveCard(ctx context.Context, by actor.Actor, at project.Place, boardID int64, m CardMove) (*Issue, error) {
	in, err := s.boardsAt(ctx, by, at, project.NoAccess)
	if err != nil {
		return nil, err
	}
	b, err := s.board(ctx, in, boardID)
	if err != nil {
		return nil, err
	}
	from, fromOK := b.list(m.From)
	to, toOK := b.list(m.To)
	if !fromOK || !toOK {
		return nil, errs.NotFound("List")
	}
	found, err := findIssueByID(ctx, s.DB, m.Issue)
	if err != nil {
		return nil, db.NotFound(err, "Issue")
	}
	proj, i, err := s.issue(ctx, by, project.RefTo(found.ProjectID), found.IID)
	if err != nil {
		return nil, err
	}
	if err := proj.Change(by, project.IssuePart, project.Planner); err != nil {
		return nil, err
	}
	if to != nil && to.AssigneeID != nil {
		f := IssueFields{Fields: Fields{Assignees: &[]int64{*to.AssigneeID}}}
		if err := s.checkPlan(ctx, proj, &f); err != nil {
			return nil, err
		}
		if len(*f.Assignees) == 0 {
			return nil, errs.Invalid("@%s does not see this issue.", to.Assignee.Username)
		}
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error { return s.moveCard(ctx, tx, by, in, proj, b, i.ID, m, from, to) })
	if err != nil {
		return nil, fmt.Errorf("move issue %d on board %d: %w", i.ID, boardID, err)
	}
	return s.Issue(ctx, by, project.RefTo(proj.ID), i.IID)
}

func (s *Service) moveCard(ctx context.Context, tx *db.Tx, by actor.Actor, in place, proj *project.Project, b *Board, id int64, m CardMove, from, to *BoardList) error {
	if err := tx.Lock(ctx, "issues", id); err != nil {
		return err
	}
	w, err := s.columnWhere(by, in, b, m.From)
	if err != nil {
		return err
	}
	if there, err := inColumn(ctx, tx, w, id); err != nil || !there {
		if err != nil {
			return err
		}
		return errs.Conflict("This issue was moved in the meantime.")
	}
	if m.From != m.To {
		f, err := cardFields(ctx, tx, id, m, from, to)
		if err != nil {
			return err
		}
		if err := s.changeIssue(ctx, tx, by, proj, id, f); err != nil {
			return err
		}
	}
	if m.To == Done {
		return nil // closed issues are sorted by time
	}
	if w, err = s.columnWhere(by, in, b, m.To); err != nil {
		return err
	}
	return placeCard(ctx, tx, w, id, m.After, m.Before)
}

// cardFields returns the changes to an issue that is moved from one list to
// another.
func cardFields(ctx context.Context, tx *db.Tx, id int64, m CardMove, from, to *BoardList) (IssueFields, error) {
	var f IssueFields
	assignees, err := findRelated(ctx, tx, IssueKind, Assignees, []int64{id})
	if err != nil {
		return f, err
	}
	userIDs, none := assignees[id], int64(0)
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
