// Package board implements the issue boards of projects and groups.
package board

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/user"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Users    *user.Service
	Projects *project.Service
	Plan     *plan.Service
	Now      func() time.Time
}

// Service implements the operations on boards.
type Service struct{ Deps }

// New returns the service.
func New(d Deps) *Service { return &Service{d} }

// Board is an issue board.
type Board struct {
	ID          int64
	ProjectID   *int64 // exactly one of ProjectID and GroupID is set
	GroupID     *int64
	Name        string
	HideBacklog bool
	HideClosed  bool
	MilestoneID *int64   // scope: only issues with this milestone
	AssigneeID  *int64   // scope: only issues with this assignee
	Weight      *int64   // scope: only issues with this weight
	LabelNames  []string // scope: only issues with all of these labels
	CreatedAt   time.Time

	Project   *project.Project
	Group     *project.Namespace
	Milestone *plan.Milestone
	Assignee  *user.User
	Labels    []*plan.Label
	Lists     []*List // in display order
}

// List is a list of a board: the issues with a label, an assignee or a
// milestone.
type List struct {
	ID          int64
	BoardID     int64
	Position    int64
	LabelID     *int64 // exactly one of the three is set
	AssigneeID  *int64
	MilestoneID *int64

	Label     *plan.Label
	Assignee  *user.User
	Milestone *plan.Milestone
}

// require returns the project or group that owns boards. Reading boards requires
// read access to issues; changing them requires a level above NoAccess.
func (s *Service) require(ctx context.Context, by actor.Actor, at project.Place, level project.Level) (plan.Owner, error) {
	if at.Group {
		g, err := s.Projects.RequireGroup(ctx, by, at.Ref, level)
		return plan.Owner{Group: g}, err
	}
	p, err := s.Projects.Require(ctx, by, at.Ref, project.NoAccess)
	if err == nil && !p.MayRead(by, project.IssuePart) {
		err = errs.NotFound("")
	}
	if err == nil && level > project.NoAccess {
		err = p.Change(by, project.WholePart, level)
	}
	return plan.Owner{Project: p}, err
}

// Boards lists the boards of a project or group. Requires read access to issues.
func (s *Service) Boards(ctx context.Context, by actor.Actor, at project.Place, p db.Paging) (db.Page[*Board], error) {
	o, err := s.require(ctx, by, at, project.NoAccess)
	if err != nil {
		return db.Page[*Board]{}, err
	}
	page, err := listBoards(ctx, s.DB, o, p)
	if err != nil {
		return page, fmt.Errorf("list boards: %w", err)
	}
	return page, s.fill(ctx, o, page.Items...)
}

// Board returns a board. Requires read access to issues. NotFound.
func (s *Service) Board(ctx context.Context, by actor.Actor, at project.Place, id int64) (*Board, error) {
	o, err := s.require(ctx, by, at, project.NoAccess)
	if err != nil {
		return nil, err
	}
	return s.board(ctx, o, id)
}

func (s *Service) board(ctx context.Context, o plan.Owner, id int64) (*Board, error) {
	b, err := findBoard(ctx, s.DB, o, id)
	if err != nil {
		return nil, db.NotFound(err, "Board")
	}
	return b, s.fill(ctx, o, b)
}

// fill reads the lists and other related objects of boards.
func (s *Service) fill(ctx context.Context, o plan.Owner, list ...*Board) error {
	if len(list) == 0 {
		return nil
	}
	byID := map[int64]*Board{}
	var ids, userIDs, milestoneIDs, labelIDs []int64
	collect := func(to *[]int64, id *int64) {
		if id != nil {
			*to = append(*to, *id)
		}
	}
	for _, b := range list {
		ids, byID[b.ID], b.Lists = append(ids, b.ID), b, []*List{}
		b.Project, b.Group = o.Project, o.Group
		collect(&userIDs, b.AssigneeID)
		collect(&milestoneIDs, b.MilestoneID)
	}
	lists, err := findLists(ctx, s.DB, ids)
	if err != nil {
		return fmt.Errorf("lists of boards: %w", err)
	}
	for _, l := range lists {
		byID[l.BoardID].Lists = append(byID[l.BoardID].Lists, l)
		collect(&userIDs, l.AssigneeID)
		collect(&milestoneIDs, l.MilestoneID)
		collect(&labelIDs, l.LabelID)
	}
	users, err := s.Users.FindAll(ctx, userIDs)
	if err != nil {
		return fmt.Errorf("users of boards: %w", err)
	}
	milestones, err := s.Plan.MilestonesByID(ctx, milestoneIDs)
	if err != nil {
		return fmt.Errorf("milestones of boards: %w", err)
	}
	labels, err := s.Plan.LabelsByID(ctx, labelIDs)
	if err != nil {
		return fmt.Errorf("labels of boards: %w", err)
	}
	var names []string
	for _, b := range list {
		names = append(names, b.LabelNames...)
	}
	slices.Sort(names)
	named, err := s.Plan.LabelsNamed(ctx, o, slices.Compact(names))
	if err != nil {
		return fmt.Errorf("labels of boards: %w", err)
	}
	for _, b := range list {
		b.Milestone, b.Assignee, b.Labels = pick(milestones, b.MilestoneID), pick(users, b.AssigneeID), []*plan.Label{}
		for _, name := range b.LabelNames {
			if l := named[name]; l != nil {
				b.Labels = append(b.Labels, l)
			}
		}
	}
	for _, l := range lists {
		l.Milestone, l.Assignee, l.Label = pick(milestones, l.MilestoneID), pick(users, l.AssigneeID), pick(labels, l.LabelID)
	}
	return nil
}

func same(a, b *int64) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

func pick[T any](from map[int64]*T, id *int64) *T {
	if id == nil {
		return nil
	}
	return from[*id]
}

// Fields are changes to a board. A nil field keeps the current value; 0
// removes a reference.
type Fields struct {
	Name        *string
	HideBacklog *bool
	HideClosed  *bool
	Milestone   *int64
	Assignee    *int64
	SetWeight   bool
	Weight      *int64
	Labels      *[]string
}

func (s *Service) apply(ctx context.Context, o plan.Owner, b *Board, f Fields) error {
	patch.Set(&b.Name, f.Name)
	b.Name = strings.TrimSpace(b.Name)
	patch.Set(&b.HideBacklog, f.HideBacklog)
	patch.Set(&b.HideClosed, f.HideClosed)
	if f.Labels != nil {
		b.LabelNames = nil
		for _, name := range *f.Labels {
			if !slices.Contains(b.LabelNames, name) && len(b.LabelNames) <= maxLabels {
				b.LabelNames = append(b.LabelNames, name)
			}
		}
	}
	if f.SetWeight {
		b.Weight = f.Weight
	}
	reference := func(to **int64, id *int64) {
		if id != nil {
			*to = id
			if *id == 0 {
				*to = nil
			}
		}
	}
	reference(&b.MilestoneID, f.Milestone)
	reference(&b.AssigneeID, f.Assignee)
	if err := b.checkFields(); err != nil {
		return err
	}
	return s.checkReferences(ctx, o, nil, b.AssigneeID, b.MilestoneID)
}

// checkFields validates the name and the label names; references are checked by
// checkReferences.
func (b *Board) checkFields() error {
	switch {
	case b.Name == "":
		return errs.InvalidField("name", "can't be blank")
	case utf8.RuneCountInString(b.Name) > 255:
		return errs.InvalidField("name", "is too long (maximum is 255 characters)")
	case slices.ContainsFunc(b.LabelNames, func(name string) bool { return strings.Contains(name, ",") }):
		return errs.InvalidField("labels", "is invalid")
	case len(b.LabelNames) > maxLabels:
		return errs.InvalidField("labels", "has more than %d labels", maxLabels)
	}
	return nil
}

const (
	maxLabels = 100 // of a board
	maxLists  = 200 // of a board
)

// checkReferences returns Invalid if the label, assignee or milestone does not
// exist or is not available in the project or group.
func (s *Service) checkReferences(ctx context.Context, o plan.Owner, label, assignee, milestone *int64) error {
	if label != nil {
		ok, err := s.Plan.UsableLabel(ctx, o, *label)
		if err != nil {
			return err
		}
		if !ok {
			return errs.Refused("Label not found!")
		}
	}
	if milestone != nil {
		ok, err := s.Plan.UsableMilestone(ctx, o, *milestone)
		if err != nil {
			return err
		}
		if !ok {
			return errs.Refused("Milestone not found!")
		}
	}
	if assignee != nil {
		users, err := s.Users.FindAll(ctx, []int64{*assignee})
		if err != nil {
			return err
		}
		if users[*assignee] == nil {
			return errs.Refused("Assignee not found!")
		}
	}
	return nil
}

// Create creates a board. Requires Planner. Invalid.
func (s *Service) Create(ctx context.Context, by actor.Actor, at project.Place, f Fields) (*Board, error) {
	o, err := s.require(ctx, by, at, project.Planner)
	if err != nil {
		return nil, err
	}
	b := &Board{CreatedAt: s.Now()}
	b.ProjectID, b.GroupID = ids(o)
	if err := s.apply(ctx, o, b, f); err != nil {
		return nil, err
	}
	if err := insertBoard(ctx, s.DB, b); err != nil {
		return nil, fmt.Errorf("create board: %w", err)
	}
	return b, s.fill(ctx, o, b)
}

// Update changes a board. Requires Planner. NotFound; Invalid.
func (s *Service) Update(ctx context.Context, by actor.Actor, at project.Place, id int64, f Fields) (*Board, error) {
	o, err := s.require(ctx, by, at, project.Planner)
	if err != nil {
		return nil, err
	}
	b, err := s.board(ctx, o, id)
	if err != nil {
		return nil, err
	}
	if err := s.apply(ctx, o, b, f); err != nil {
		return nil, err
	}
	if err := saveBoard(ctx, s.DB, b); err != nil {
		return nil, fmt.Errorf("update board %d: %w", id, err)
	}
	return b, s.fill(ctx, o, b)
}

// Delete deletes a board and its lists. Requires Planner. NotFound.
func (s *Service) Delete(ctx context.Context, by actor.Actor, at project.Place, id int64) error {
	o, err := s.require(ctx, by, at, project.Planner)
	if err != nil {
		return err
	}
	if err := deleteBoard(ctx, s.DB, o, id); err != nil {
		return fmt.Errorf("delete board %d: %w", id, err)
	}
	return nil
}

// AddList appends a list to a board. Requires Planner. Exactly one of label,
// assignee and milestone must be set. NotFound; Invalid.
func (s *Service) AddList(ctx context.Context, by actor.Actor, at project.Place, boardID int64, label, assignee, milestone *int64) (*List, error) {
	o, err := s.require(ctx, by, at, project.Planner)
	if err != nil {
		return nil, err
	}
	b, err := s.board(ctx, o, boardID)
	if err != nil {
		return nil, err
	}
	if err := s.checkReferences(ctx, o, label, assignee, milestone); err != nil {
		return nil, err
	}
	l := &List{BoardID: b.ID, LabelID: label, AssigneeID: assignee, MilestoneID: milestone}
	for _, other := range b.Lists {
		if label != nil && same(other.LabelID, label) || assignee != nil && same(other.AssigneeID, assignee) || milestone != nil && same(other.MilestoneID, milestone) {
			return nil, errs.Refused("The board already has such a list")
		}
	}
	if len(b.Lists) >= maxLists {
		return nil, errs.Refused("The board has %d lists already", maxLists)
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error { return insertList(ctx, tx, l) })
	if err != nil {
		return nil, fmt.Errorf("add list to board %d: %w", boardID, err)
	}
	return s.list(ctx, o, boardID, l.ID)
}

func (s *Service) list(ctx context.Context, o plan.Owner, boardID, id int64) (*List, error) {
	b, err := s.board(ctx, o, boardID)
	if err != nil {
		return nil, err
	}
	for _, l := range b.Lists {
		if l.ID == id {
			return l, nil
		}
	}
	return nil, errs.NotFound("List")
}

// List returns a list of a board. Requires read access to issues. NotFound.
func (s *Service) List(ctx context.Context, by actor.Actor, at project.Place, boardID, id int64) (*List, error) {
	o, err := s.require(ctx, by, at, project.NoAccess)
	if err != nil {
		return nil, err
	}
	return s.list(ctx, o, boardID, id)
}

// MoveList moves a list to another position in its board, counted from 0. Requires
// Planner. NotFound.
func (s *Service) MoveList(ctx context.Context, by actor.Actor, at project.Place, boardID, id, position int64) (*List, error) {
	o, err := s.require(ctx, by, at, project.Planner)
	if err != nil {
		return nil, err
	}
	b, err := s.board(ctx, o, boardID)
	if err != nil {
		return nil, err
	}
	from := slices.IndexFunc(b.Lists, func(l *List) bool { return l.ID == id })
	if from < 0 {
		return nil, errs.NotFound("List")
	}
	moved := b.Lists[from]
	rest := slices.Delete(b.Lists, from, from+1)
	order := slices.Insert(rest, int(min(max(position, 0), int64(len(rest)))), moved)
	err = s.DB.Tx(ctx, func(tx *db.Tx) error { return saveListOrder(ctx, tx, order) })
	if err != nil {
		return nil, fmt.Errorf("move list %d: %w", id, err)
	}
	return s.list(ctx, o, boardID, id)
}

// DeleteList deletes a list of a board. Requires Planner. NotFound.
func (s *Service) DeleteList(ctx context.Context, by actor.Actor, at project.Place, boardID, id int64) error {
	o, err := s.require(ctx, by, at, project.Planner)
	if err != nil {
		return err
	}
	if _, err := s.list(ctx, o, boardID, id); err != nil {
		return err
	}
	if err := deleteList(ctx, s.DB, id); err != nil {
		return fmt.Errorf("delete list %d: %w", id, err)
	}
	return nil
}
