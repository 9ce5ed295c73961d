package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/markup"
	"svc/internal/notify"
	"svc/internal/project"
)

// IssueFields are what is said of an issue; nil leaves the default or the
// present value.
type IssueFields struct {
	Title        *string
	Description  *string
	Confidential *bool
	Type         *string
	Event        string // close or reopen
	Tick         *Tick  // a box in the description
	Via          string // what closes it, in words for a note

	// The plan: who is to do it, until when and what for.
	Assignees    *[]int64
	Labels       *[]string
	AddLabels    []string
	RemoveLabels []string
	Milestone    *int64  // 0 takes it away
	DueDate      *string // empty takes it away
	Locked       *bool
	SetWeight    bool
	Weight       *int64

	UpdatedAt *time.Time // for administrators and Owners

	// What prepare found out before the transaction.
	mentioned []string // names that the new description mentions and the old one did not
	ticked    *ticked
}

// ticked is a description before and after a box in it was ticked.
type ticked struct{ was, is string }

// errStale says that a description has changed since prepare read it.
var errStale = errors.New("the description has changed")

// prepare parses the descriptions of an issue and of a change to it. That may
// take half a second of processor time, during which no one else could write if
// it were done in the transaction.
func (f *IssueFields) prepare(ctx context.Context, i *Issue) (err error) {
	if f.Description != nil {
		f.mentioned, err = NewMentions(ctx, i.Description, *f.Description)
	}
	if f.Tick != nil && err == nil {
		text, ok := markup.SetTask(ctx, i.Description, f.Tick.Task, f.Tick.Done)
		if !ok {
			return errs.Conflict("The task list has been changed in the meantime.")
		}
		f.ticked = &ticked{i.Description, text}
	}
	return err
}

// Tick is a change to a task list item of a text.
type Tick struct {
	Task int // counted from 0
	Done bool
}

// unplanned takes away what only those may say who plan.
func (f *IssueFields) unplanned() {
	f.Assignees, f.Labels, f.AddLabels, f.RemoveLabels, f.Milestone, f.DueDate = nil, nil, nil, nil, nil, nil
	f.Locked, f.SetWeight, f.Type = nil, false, nil
}

func (f *IssueFields) labelling() Labelling {
	return Labelling{Names: f.Labels, Add: f.AddLabels, Remove: f.RemoveLabels}
}

// NewIssue has the fields of a new issue.
type NewIssue struct {
	IssueFields
	IID       *int64     // for administrators and Owners
	CreatedAt *time.Time // for administrators and Owners
}

// CreateIssue makes an issue: everyone may who has signed in and reads the
// issues of the project. What is planned with it is left out unless they are a
// member. NotFound; Forbidden; Invalid; Conflict when the number is taken.
func (s *Service) CreateIssue(ctx context.Context, by actor.Actor, ref project.Ref, n NewIssue) (*Issue, error) {
	in, err := s.Projects.RequireView(ctx, by, ref, project.IssuePart)
	if err != nil {
		return nil, err
	}
	if err := CheckCreate(by, in); err != nil {
		return nil, err
	}
	now := s.Now()
	i := &Issue{ProjectID: in.ID, State: Opened, Type: "issue", AuthorID: by.ID, CreatedAt: now, UpdatedAt: now}
	if in.Enough(by, project.Owner) == nil {
		set(&i.CreatedAt, n.CreatedAt)
	} else {
		n.IID = nil
	}
	if !chooses(by, in) {
		n.unplanned()
	}
	if err := s.checkPlan(ctx, in, &n.IssueFields); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error { return s.insertIssue(ctx, tx, by, in, i, n) })
	if err != nil {
		return nil, fmt.Errorf("create issue: %w", err)
	}
	return s.Issue(ctx, by, project.RefTo(in.ID), i.IID)
}

// AddIssue makes an issue in a transaction of another feature, which has asked
// whether the actor may. Invalid.
func (s *Service) AddIssue(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, f IssueFields) (*Issue, error) {
	now := s.Now()
	i := &Issue{ProjectID: in.ID, State: Opened, Type: "issue", AuthorID: by.ID, CreatedAt: now, UpdatedAt: now}
	return i, s.insertIssue(ctx, tx, by, in, i, NewIssue{IssueFields: f})
}

func (s *Service) insertIssue(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, i *Issue, n NewIssue) (err error) {
	if err := i.apply(n.IssueFields); err != nil {
		return err
	}
	if err := Usable(ctx, tx, in, n.Milestone); err != nil {
		return err
	}
	if i.IID, err = issueNumber(ctx, tx, in.ID, n.IID); err != nil {
		return err
	}
	if err := insertIssue(ctx, tx, i); err != nil {
		return err
	}
	if _, _, err := s.SaveLabels(ctx, tx, by, in, i.thing(), n.labelling()); err != nil {
		return err
	}
	if n.Assignees != nil {
		if _, err := s.Appoint(ctx, tx, i.thing(), Assignees, *n.Assignees); err != nil {
			return err
		}
	}
	if err := joinSubscription(ctx, tx, i.thing(), by.ID, s.Now()); err != nil {
		return err
	}
	if err := project.Touch(ctx, tx, in, s.Now()); err != nil {
		return err
	}
	if err := s.notify(ctx, tx, by, i, notify.NewIssue, notify.Details{}); err != nil {
		return err
	}
	return s.recordIssue(ctx, tx, by, i, activity.Created)
}

// checkPlan looks at what is planned before the transaction: assignees who do
// not read the issues are left out, as are those who are not there.
func (s *Service) checkPlan(ctx context.Context, in *project.Project, f *IssueFields) error {
	if f.Assignees == nil {
		return nil
	}
	list, err := s.Able(ctx, in, "assignees", *f.Assignees, project.IssuePart)
	f.Assignees = &list
	return err
}

// apply sets and checks what is said of an issue itself.
func (i *Issue) apply(f IssueFields) error {
	set(&i.Title, f.Title)
	i.Title = strings.TrimSpace(i.Title)
	set(&i.Description, f.Description)
	set(&i.Confidential, f.Confidential)
	set(&i.Type, f.Type)
	set(&i.DueDate, f.DueDate)
	if f.Locked != nil {
		i.Locked = f.Locked
	}
	if f.SetWeight {
		i.Weight = f.Weight
	}
	if f.Milestone != nil {
		i.MilestoneID = f.Milestone
		if *f.Milestone == 0 {
			i.MilestoneID = nil
		}
	}
	if f.ticked != nil {
		if i.Description != f.ticked.was {
			return errStale
		}
		i.Description = f.ticked.is
	}
	wrong := map[string][]string{}
	switch {
	case i.Title == "":
		wrong["title"] = []string{"can't be blank"}
	case utf8.RuneCountInString(i.Title) > 255:
		wrong["title"] = []string{"is too long (maximum is 255 characters)"}
	}
	if len(i.Description) > maxText {
		wrong["description"] = []string{"is too long (maximum is 1048576 characters)"}
	}
	if i.Weight != nil && *i.Weight < 0 {
		wrong["weight"] = []string{"must be greater than or equal to 0"}
	}
	return invalid(wrong)
}

// Usable refuses a milestone that the project does not have: Invalid.
func Usable(ctx context.Context, tx *db.Tx, in *project.Project, id *int64) error {
	if id == nil || *id == 0 {
		return nil
	}
	ok, err := usableMilestone(ctx, tx, place{project: in}, *id)
	if err == nil && !ok {
		return errs.InvalidField("milestone_id", "is invalid")
	}
	return err
}

// UpdateIssue changes an issue: those who plan may change everything, its author
// and assignees its title, description and state. What a user may not change is
// left. NotFound; Forbidden; Invalid.
func (s *Service) UpdateIssue(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, f IssueFields) (*Issue, error) {
	in, i, err := s.issue(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	if err := i.editable(by, in); err != nil {
		return nil, err
	}
	if !planner(by, in) {
		f.unplanned()
		f.Confidential = nil
	}
	if in.Enough(by, project.Owner) != nil {
		f.UpdatedAt = nil
	}
	if err := s.checkPlan(ctx, in, &f); err != nil {
		return nil, err
	}
	for range 10 { // another box may be ticked at the same time
		if err = f.prepare(ctx, i); err != nil {
			break
		}
		err = s.DB.Tx(ctx, func(tx *db.Tx) error { return s.changeIssue(ctx, tx, by, in, i.ID, f) })
		if !errors.Is(err, errStale) {
			break
		}
		if i, err = findIssueByID(ctx, s.DB, i.ID); err != nil {
			return nil, notFound(err, "Issue")
		}
		err = errs.Conflict("The description has been changed in the meantime.")
	}
	if err != nil {
		return nil, fmt.Errorf("update issue %d: %w", i.ID, err)
	}
	// They may have made it confidential, or given it to someone else.
	if i, err = findIssueByID(ctx, s.DB, i.ID); err != nil {
		return nil, notFound(err, "Issue")
	}
	if err := s.fillIssues(ctx, i); err != nil {
		return nil, err
	}
	return i, s.fillSubscribed(ctx, by, i)
}

func (s *Service) changeIssue(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, id int64, f IssueFields) error {
	if err := tx.Lock(ctx, "issues", id); err != nil {
		return err
	}
	i, err := findIssueByID(ctx, tx, id)
	if err != nil {
		return notFound(err, "Issue")
	}
	was := *i
	if err := i.apply(f); err != nil {
		return err
	}
	if err := Usable(ctx, tx, in, f.Milestone); err != nil {
		return err
	}
	i.UpdatedAt = s.Now()
	set(&i.UpdatedAt, f.UpdatedAt)
	done := i.move(f.Event, by.ID, s.Now())
	if err := saveIssue(ctx, tx, i); err != nil {
		return err
	}
	changes, err := s.changes(ctx, tx, by, in, &was, i, f)
	if err != nil {
		return err
	}
	for _, text := range changes {
		if err := s.AddSystemNote(ctx, tx, by, i.thing(), i.IID, in.ID, text); err != nil {
			return err
		}
	}
	if err := s.readdress(ctx, tx, &was, i); err != nil {
		return err
	}
	if err := s.notifyMentioned(ctx, tx, by, i, f.mentioned); err != nil || done == "" {
		return err
	}
	event := notify.CloseIssue
	if done == activity.Reopened {
		event = notify.ReopenIssue
	}
	if err := s.notify(ctx, tx, by, i, event, notify.Details{}); err != nil {
		return err
	}
	if err := project.Touch(ctx, tx, in, s.Now()); err != nil {
		return err
	}
	return s.recordIssue(ctx, tx, by, i, done)
}

// move closes or reopens an issue and gives what was done; empty when it is in
// that state already.
func (i *Issue) move(event string, by int64, at time.Time) activity.Action {
	switch {
	case event == "close" && i.State == Opened:
		i.State, i.ClosedAt = Closed, &at
		if by > 0 {
			i.ClosedByID = &by
		}
		return activity.Closed
	case event == "reopen" && i.State == Closed:
		i.State, i.ClosedAt, i.ClosedByID = Opened, nil, nil
		return activity.Reopened
	}
	return ""
}

// readdress keeps the events of an issue to those who may know of it now.
func (s *Service) readdress(ctx context.Context, tx *db.Tx, was, i *Issue) error {
	if was.Title != i.Title {
		if err := activity.Retitle(ctx, tx, i.subject(), i.Title); err != nil {
			return err
		}
	}
	if was.Confidential == i.Confidential {
		return nil
	}
	return activity.Readdress(ctx, tx, i.subject(), was.audience(), i.audience())
}

// recordIssue records an event about an issue.
func (s *Service) recordIssue(ctx context.Context, tx *db.Tx, by actor.Actor, i *Issue, done activity.Action) error {
	return activity.Record(ctx, tx, activity.Event{
		ProjectID: &i.ProjectID, AuthorID: by.ID, Action: done, Audience: i.audience(), Subject: i.subject(),
		TargetType: string(IssueKind), TargetID: &i.ID, TargetIID: &i.IID, TargetTitle: i.Title, CreatedAt: s.Now(),
	})
}

// recordDeletion leaves an audit event.
func (s *Service) recordDeletion(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, i *Issue) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: "delete_issue", Entity: audit.Entity{Type: audit.ProjectEntity, ID: in.ID, Path: in.FullPath},
		Target: audit.Target{Type: string(IssueKind), ID: i.ID, Details: i.Title}, Details: audit.Details{Remove: "issue"},
	})
}
