package plan

import (
	"context"
	"fmt"
	"time"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/notify"
	"svc/internal/patch"
	"svc/internal/project"
)

// IssueFields are changes to an issue; nil leaves the default or the current
// value.
type IssueFields struct {
	Fields
	Confidential *bool
	Via          string // what closes it, in words for a note

	// Planning fields. They require a higher role.
	Type      *string
	DueDate   *string // empty removes it
	SetWeight bool
	Weight    *int64

	UpdatedAt *time.Time // for administrators and Owners
}

// DropPlan removes the planning fields.
func (f *IssueFields) DropPlan() {
	f.Fields.DropPlan()
	f.DueDate, f.SetWeight, f.Type = nil, false, nil
}

// NewIssue has the fields of a new issue.
type NewIssue struct {
	IssueFields
	IID       *int64     // for administrators and Owners
	CreatedAt *time.Time // for administrators and Owners
	// Also is what another feature does in the transaction of the issue; nil for
	// nothing.
	Also func(ctx context.Context, tx *db.Tx, i *Issue) error
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
	i := &Issue{Issuable: NewIssuable(IssueKind, by, in, s.Now()), Type: "issue"}
	if in.Enough(by, project.Owner) == nil {
		patch.Set(&i.CreatedAt, n.CreatedAt)
	} else {
		n.IID = nil
	}
	if !chooses(by, in) {
		n.DropPlan()
	}
	out, err := s.issueCommands(ctx, by, in, i, &n.IssueFields)
	if err != nil {
		return nil, err
	}
	if err := s.checkPlan(ctx, in, &n.IssueFields); err != nil {
		return nil, err
	}
	crossed, err := s.mentionedBy(ctx, by, in, n.IssueFields)
	if err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := s.insertIssue(ctx, tx, by, in, i, n); err != nil {
			return err
		}
		if err := s.CrossReference(ctx, tx, by, Source{Kind: IssueKind, ID: i.ID, IID: i.IID, In: in}, crossed); err != nil {
			return err
		}
		if n.Time.Set() {
			if err := s.changeIssue(ctx, tx, by, in, i.ID, IssueFields{Fields: Fields{Time: n.Time}}); err != nil {
				return err
			}
		}
		if n.Also != nil {
			if err := n.Also(ctx, tx, i); err != nil {
				return err
			}
		}
		return out.InTx(ctx, tx, &i.Issuable)
	})
	if err != nil {
		return nil, fmt.Errorf("create issue: %w", err)
	}
	if err := out.After(ctx, &i.Issuable); err != nil {
		return nil, fmt.Errorf("quick actions on issue %d: %w", i.ID, err)
	}
	i, err = s.Issue(ctx, by, project.RefTo(in.ID), i.IID)
	if err == nil {
		i.Commands = out
	}
	return i, err
}

// mentionedBy returns what the texts of an issue mention, as far as they change.
func (s *Service) mentionedBy(ctx context.Context, by actor.Actor, in *project.Project, f IssueFields) ([]Mentioned, error) {
	return s.Mentioned(ctx, by, in, f.Fields.Texts())
}

// issueCommands takes the quick actions out of the description of a new or
// existing issue, and adds their changes to the fields. It returns nil without any.
func (s *Service) issueCommands(ctx context.Context, by actor.Actor, in *project.Project, i *Issue, f *IssueFields) (*Outcome, error) {
	if f.Description == nil || *f.Description == i.Description {
		return nil, nil
	}
	text, list := s.ParseCommands(IssueKind, *f.Description)
	f.Description = &text
	if len(list) == 0 {
		return nil, nil
	}
	out, err := s.RunCommands(ctx, by, in, s.commandTarget(by, in, i), list)
	if err == nil {
		out.mergeIssue(f)
	}
	return out, err
}

// AddIssue makes an issue in a transaction of another feature, which has asked
// whether the actor may. Invalid.
func (s *Service) AddIssue(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, f IssueFields) (*Issue, error) {
	i := &Issue{Issuable: NewIssuable(IssueKind, by, in, s.Now()), Type: "issue"}
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
	if _, _, err := s.SaveLabels(ctx, tx, by, in, i.Target(), n.Labels); err != nil {
		return err
	}
	if err := s.RecordMilestone(ctx, tx, by, &i.Issuable, nil); err != nil {
		return err
	}
	if err := s.recordWeight(ctx, tx, by, i, nil); err != nil {
		return err
	}
	if _, err := s.AppointAll(ctx, tx, &i.Issuable, n.Assignees, nil); err != nil {
		return err
	}
	if err := joinSubscription(ctx, tx, i.Target(), by.ID, s.Now()); err != nil {
		return err
	}
	if err := project.Touch(ctx, tx, in, s.Now()); err != nil {
		return err
	}
	if err := s.NotifyOf(ctx, tx, by.ID, &i.Issuable, notify.NewIssue, notify.Details{}); err != nil {
		return err
	}
	if err := s.Events.IssueSaved.Publish(ctx, tx, IssueSaving{Issue: i, By: by.ID}); err != nil {
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

// apply sets and checks the fields of the issue itself.
func (i *Issue) apply(f IssueFields) error {
	wrong, err := i.Apply(f.Fields)
	if err != nil {
		return err
	}
	patch.Set(&i.Confidential, f.Confidential)
	patch.Set(&i.Type, f.Type)
	patch.Set(&i.DueDate, f.DueDate)
	if f.SetWeight {
		i.Weight = f.Weight
	}
	if i.Weight != nil && *i.Weight < 0 {
		wrong.Set("weight", "must be greater than or equal to 0")
	}
	return wrong.Err()
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
		f.DropPlan()
		f.Confidential = nil
	}
	if in.Enough(by, project.Owner) != nil {
		f.UpdatedAt = nil
	}
	out, err := s.issueCommands(ctx, by, in, i, &f)
	if err != nil {
		return nil, err
	}
	if err := s.checkPlan(ctx, in, &f); err != nil {
		return nil, err
	}
	crossed, err := s.mentionedBy(ctx, by, in, f)
	if err != nil {
		return nil, err
	}
	err = s.Update(ctx, &i.Issuable, &f.Fields, func(tx *db.Tx) error {
		if err := s.changeIssue(ctx, tx, by, in, i.ID, f); err != nil {
			return err
		}
		if err := s.CrossReference(ctx, tx, by, Source{Kind: IssueKind, ID: i.ID, IID: i.IID, In: in}, crossed); err != nil {
			return err
		}
		return out.InTx(ctx, tx, &i.Issuable)
	})
	if err != nil {
		return nil, fmt.Errorf("update issue %d: %w", i.ID, err)
	}
	if err := out.After(ctx, &i.Issuable); err != nil {
		return nil, fmt.Errorf("quick actions on issue %d: %w", i.ID, err)
	}
	// They may have made it confidential, or given it to someone else.
	if i, err = findIssueByID(ctx, s.DB, i.ID); err != nil {
		return nil, db.NotFound(err, "Issue")
	}
	if err := s.fillIssues(ctx, i); err != nil {
		return nil, err
	}
	i.Commands = out
	return i, s.FillSubscribed(ctx, by, &i.Issuable)
}

func (s *Service) changeIssue(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, id int64, f IssueFields) error {
	if err := tx.Lock(ctx, "issues", id); err != nil {
		return err
	}
	i, err := findIssueByID(ctx, tx, id)
	if err != nil {
		return db.NotFound(err, "Issue")
	}
	was := *i
	if err := i.apply(f); err != nil {
		return err
	}
	if err := Usable(ctx, tx, in, f.Milestone); err != nil {
		return err
	}
	i.UpdatedAt = s.Now()
	patch.Set(&i.UpdatedAt, f.UpdatedAt)
	done := i.Move(f.Event, by.ID, s.Now())
	if err := saveIssue(ctx, tx, i); err != nil {
		return err
	}
	changes, err := s.changes(ctx, tx, by, in, &was, i, f)
	if err != nil {
		return err
	}
	if err := s.recordWeight(ctx, tx, by, i, was.Weight); err != nil {
		return err
	}
	if err := s.RecordState(ctx, tx, by.ID, &i.Issuable, was.State); err != nil {
		return err
	}
	for _, text := range changes {
		if err := s.AddSystemNote(ctx, tx, by, i.Target(), i.IID, in.ID, text); err != nil {
			return err
		}
	}
	if len(changes) > 0 || done != "" {
		if err := s.Events.IssueSaved.Publish(ctx, tx, IssueSaving{Issue: i, Was: &was, By: by.ID}); err != nil {
			return err
		}
	}
	if err := s.readdress(ctx, tx, &was, i); err != nil || done == "" {
		return err
	}
	event := notify.CloseIssue
	if done == activity.Reopened {
		event = notify.ReopenIssue
	}
	if err := s.NotifyOf(ctx, tx, by.ID, &i.Issuable, event, notify.Details{}); err != nil {
		return err
	}
	if err := project.Touch(ctx, tx, in, s.Now()); err != nil {
		return err
	}
	return s.recordIssue(ctx, tx, by, i, done)
}

// readdress keeps the events of an issue to those who may know of it now.
func (s *Service) readdress(ctx context.Context, tx *db.Tx, was, i *Issue) error {
	if was.Title != i.Title {
		if err := activity.Retitle(ctx, tx, i.Subject(), i.Title); err != nil {
			return err
		}
	}
	if was.Confidential == i.Confidential {
		return nil
	}
	return activity.Readdress(ctx, tx, i.Subject(), was.audience(), i.audience())
}

// recordIssue records an event about an issue.
func (s *Service) recordIssue(ctx context.Context, tx *db.Tx, by actor.Actor, i *Issue, done activity.Action) error {
	return s.Record(ctx, tx, by.ID, &i.Issuable, i.audience(), done)
}
