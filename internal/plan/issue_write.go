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

// IssueFields are changes to an issue. A nil field keeps the current value or the
// default.
type IssueFields struct {
	Fields
	Confidential *bool
	Via          string // reference to what closes the issue, for the system note

	// Planning fields. They require a higher role.
	Type      *string
	DueDate   *string // empty removes it
	SetWeight bool
	Weight    *int64

	UpdatedAt *time.Time // Owners and administrators only
}

// DropPlan removes the planning fields.
func (f *IssueFields) DropPlan() {
	f.Fields.DropPlan()
	f.DueDate, f.SetWeight, f.Type = nil, false, nil
}

// NewIssue has the fields of a new issue.
type NewIssue struct {
	IssueFields
	IID       *int64     // Owners and administrators only
	CreatedAt *time.Time // Owners and administrators only
	// Also is called in the transaction that creates the issue. It may be nil.
	Also func(ctx context.Context, tx *db.Tx, i *Issue) error
}

// CreateIssue creates an issue. Requires a signed-in user with read access to
// issues. Planning fields are ignored unless the user is a member. NotFound;
// Forbidden; Invalid; Conflict if the number is taken.
func (s *Service) CreateIssue(ctx context.Context, by actor.Actor, ref project.Ref, n NewIssue) (*Issue, error) {
	proj, err := s.Projects.RequireView(ctx, by, ref, project.IssuePart)
	if err != nil {
		return nil, err
	}
	if err := CheckCreate(by, proj); err != nil {
		return nil, err
	}
	i := &Issue{Issuable: NewIssuable(IssueKind, by, proj, s.Now()), Type: "issue"}
	if proj.Enough(by, project.Owner) == nil {
		patch.Set(&i.CreatedAt, n.CreatedAt)
	} else {
		n.IID = nil
	}
	if !maySetPlan(by, proj) {
		n.DropPlan()
	}
	out, err := s.issueCommands(ctx, by, proj, i, &n.IssueFields)
	if err != nil {
		return nil, err
	}
	if err := s.checkPlan(ctx, proj, &n.IssueFields); err != nil {
		return nil, err
	}
	crossed, err := s.mentionedBy(ctx, by, proj, n.IssueFields)
	if err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := s.insertIssue(ctx, tx, by, proj, i, n); err != nil {
			return err
		}
		if err := s.CrossReference(ctx, tx, by, Source{Kind: IssueKind, ID: i.ID, IID: i.IID, In: proj}, crossed); err != nil {
			return err
		}
		if n.Time.Set() {
			if err := s.ChangeIssue(ctx, tx, by, proj, i.ID, IssueFields{Fields: Fields{Time: n.Time}}); err != nil {
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
	i, err = s.Issue(ctx, by, project.RefTo(proj.ID), i.IID)
	if err == nil {
		i.Commands = out
	}
	return i, err
}

// mentionedBy returns the issues and merge requests that the changed texts
// mention.
func (s *Service) mentionedBy(ctx context.Context, by actor.Actor, proj *project.Project, f IssueFields) ([]Mentioned, error) {
	return s.Mentioned(ctx, by, proj, f.Fields.Texts())
}

// issueCommands removes the quick actions from the description of a new or
// existing issue, and adds their changes to the fields. It returns nil if there
// are none.
func (s *Service) issueCommands(ctx context.Context, by actor.Actor, proj *project.Project, i *Issue, f *IssueFields) (*Outcome, error) {
	if f.Description == nil || *f.Description == i.Description {
		return nil, nil
	}
	text, list := s.ParseCommands(IssueKind, *f.Description)
	f.Description = &text
	if len(list) == 0 {
		return nil, nil
	}
	out, err := s.RunCommands(ctx, by, proj, s.commandTarget(by, proj, i), list)
	if err == nil {
		out.mergeIssue(f)
	}
	return out, err
}

// AddIssue creates an issue in a transaction of another feature, which has checked
// permissions. Invalid.
func (s *Service) AddIssue(ctx context.Context, tx *db.Tx, by actor.Actor, proj *project.Project, f IssueFields) (*Issue, error) {
	i := &Issue{Issuable: NewIssuable(IssueKind, by, proj, s.Now()), Type: "issue"}
	return i, s.insertIssue(ctx, tx, by, proj, i, NewIssue{IssueFields: f})
}

func (s *Service) insertIssue(ctx context.Context, tx *db.Tx, by actor.Actor, proj *project.Project, i *Issue, n NewIssue) (err error) {
	if err := i.apply(n.IssueFields); err != nil {
		return err
	}
	if err := Usable(ctx, tx, proj, n.Milestone); err != nil {
		return err
	}
	if i.IID, err = issueNumber(ctx, tx, proj.ID, n.IID); err != nil {
		return err
	}
	if err := insertIssue(ctx, tx, i); err != nil {
		return err
	}
	if _, _, err := s.SaveLabels(ctx, tx, by, proj, i.Target(), n.Labels); err != nil {
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
	if err := project.Touch(ctx, tx, proj, s.Now()); err != nil {
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

// checkPlan removes assignees who do not exist or cannot read issues. It runs
// before the transaction.
func (s *Service) checkPlan(ctx context.Context, proj *project.Project, f *IssueFields) error {
	if f.Assignees == nil {
		return nil
	}
	list, err := s.Able(ctx, proj, "assignees", *f.Assignees, project.IssuePart)
	f.Assignees = &list
	return err
}

// apply sets and validates the fields of the issue.
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

// Usable returns Invalid if the milestone is not available in the project.
func Usable(ctx context.Context, tx *db.Tx, proj *project.Project, id *int64) error {
	if id == nil || *id == 0 {
		return nil
	}
	ok, err := usableMilestone(ctx, tx, place{project: proj}, *id)
	if err == nil && !ok {
		return errs.InvalidField("milestone_id", "is invalid")
	}
	return err
}

// UpdateIssue changes an issue. Planners may change all fields; the author and the
// assignees may change the title, description and state. Other fields are ignored.
// NotFound; Forbidden; Invalid.
func (s *Service) UpdateIssue(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, f IssueFields) (*Issue, error) {
	proj, i, err := s.issue(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	if err := i.editable(by, proj); err != nil {
		return nil, err
	}
	if !mayPlan(by, proj) {
		f.DropPlan()
		f.Confidential = nil
	}
	if proj.Enough(by, project.Owner) != nil {
		f.UpdatedAt = nil
	}
	out, err := s.issueCommands(ctx, by, proj, i, &f)
	if err != nil {
		return nil, err
	}
	if err := s.checkPlan(ctx, proj, &f); err != nil {
		return nil, err
	}
	crossed, err := s.mentionedBy(ctx, by, proj, f)
	if err != nil {
		return nil, err
	}
	err = s.Update(ctx, &i.Issuable, &f.Fields, func(tx *db.Tx) error {
		if err := s.ChangeIssue(ctx, tx, by, proj, i.ID, f); err != nil {
			return err
		}
		if err := s.CrossReference(ctx, tx, by, Source{Kind: IssueKind, ID: i.ID, IID: i.IID, In: proj}, crossed); err != nil {
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
	// The actor may no longer see the issue: the change may have made it
	// confidential or reassigned it.
	if i, err = findIssueByID(ctx, s.DB, i.ID); err != nil {
		return nil, db.NotFound(err, "Issue")
	}
	if err := s.FillIssues(ctx, i); err != nil {
		return nil, err
	}
	i.Commands = out
	return i, s.FillSubscribed(ctx, by, &i.Issuable)
}

// ChangeIssue changes an issue in the transaction of the caller, which has checked
// permissions. NotFound; Invalid.
func (s *Service) ChangeIssue(ctx context.Context, tx *db.Tx, by actor.Actor, proj *project.Project, id int64, f IssueFields) error {
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
	if err := Usable(ctx, tx, proj, f.Milestone); err != nil {
		return err
	}
	i.UpdatedAt = s.Now()
	patch.Set(&i.UpdatedAt, f.UpdatedAt)
	done := i.Move(f.Event, by.ID, s.Now())
	if err := saveIssue(ctx, tx, i); err != nil {
		return err
	}
	changes, err := s.saveChanges(ctx, tx, by, proj, &was, i, f)
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
		if err := s.AddSystemNote(ctx, tx, by, i.Target(), i.IID, proj.ID, text); err != nil {
			return err
		}
	}
	if len(changes) > 0 || done != "" {
		if err := s.Events.IssueSaved.Publish(ctx, tx, IssueSaving{Issue: i, Was: &was, By: by.ID}); err != nil {
			return err
		}
	}
	if err := s.updateAudience(ctx, tx, &was, i); err != nil || done == "" {
		return err
	}
	event := notify.CloseIssue
	if done == activity.Reopened {
		event = notify.ReopenIssue
	}
	if err := s.NotifyOf(ctx, tx, by.ID, &i.Issuable, event, notify.Details{}); err != nil {
		return err
	}
	if err := project.Touch(ctx, tx, proj, s.Now()); err != nil {
		return err
	}
	return s.recordIssue(ctx, tx, by, i, done)
}

// updateAudience updates the title and the audience of the events of an issue.
func (s *Service) updateAudience(ctx context.Context, tx *db.Tx, was, i *Issue) error {
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

// recordIssue adds an event about an issue to the activity feed.
func (s *Service) recordIssue(ctx context.Context, tx *db.Tx, by actor.Actor, i *Issue, done activity.Action) error {
	return s.Record(ctx, tx, by.ID, &i.Issuable, i.audience(), done)
}
