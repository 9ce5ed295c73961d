package plan

import (
	"context"
	"fmt"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/notify"
	"svc/internal/project"
)

// MoveIssue moves an issue with its notes, reactions and time tracking to another
// project, and its links to other issues. The old issue is closed and refers to the
// new one. Labels and the milestone are kept if the other project has them under the
// same name. Requires Planner in both projects. NotFound; Forbidden; TooLarge if it
// has too many uploaded files; Invalid if the project is the same or the issue was
// moved before.
func (s *Service) MoveIssue(ctx context.Context, by actor.Actor, ref project.Ref, iid, toProject int64) (*Issue, error) {
	return s.copyIssue(ctx, by, ref, iid, toProject, copying{move: true, notes: true})
}

// CloneIssue copies an issue to a project, optionally with its notes. Requires
// Planner in both projects. NotFound; Forbidden; TooLarge as for MoveIssue.
func (s *Service) CloneIssue(ctx context.Context, by actor.Actor, ref project.Ref, iid, toProject int64, notes bool) (*Issue, error) {
	return s.copyIssue(ctx, by, ref, iid, toProject, copying{notes: notes})
}

type copying struct{ move, notes bool }

func (s *Service) copyIssue(ctx context.Context, by actor.Actor, ref project.Ref, iid, toProject int64, c copying) (*Issue, error) {
	proj, old, err := s.issue(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	if err := proj.Enough(by, project.Planner); err != nil {
		return nil, err
	}
	if err := proj.Change(by, project.IssuePart, project.Planner); c.move && err != nil {
		return nil, err
	}
	to, err := s.Projects.RequireView(ctx, by, project.RefTo(toProject), project.IssuePart)
	if err != nil {
		return nil, err
	}
	if err := to.Change(by, project.IssuePart, project.Planner); err != nil {
		return nil, err
	}
	if c.move && to.ID == proj.ID {
		return nil, errs.Invalid("Cannot move issue to project it originates from!")
	}
	var userIDs []int64
	for _, u := range old.Assignees {
		userIDs = append(userIDs, u.ID)
	}
	f := IssueFields{Fields: Fields{Assignees: &userIDs}}
	if err := s.checkPlan(ctx, to, &f); err != nil {
		return nil, err
	}
	texts, err := s.textsFor(ctx, by, old, proj, to, c.notes)
	if err != nil {
		return nil, fmt.Errorf("copy texts of issue %d: %w", old.ID, err)
	}
	var copied *Issue
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "issues", old.ID); err != nil {
			return err
		}
		current, err := findIssueByID(ctx, tx, old.ID)
		if err != nil {
			return db.NotFound(err, "Issue")
		}
		if c.move && current.MovedToID != nil {
			return errs.Invalid("Cannot move issue that has been moved already!")
		}
		copied, err = s.insertCopy(ctx, tx, by, to, current, *f.Assignees, texts, c)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("copy issue %d: %w", old.ID, err)
	}
	return s.Issue(ctx, by, project.RefTo(to.ID), copied.IID)
}

func (s *Service) insertCopy(ctx context.Context, tx *db.Tx, by actor.Actor, to *project.Project, old *Issue, assignees []int64, texts *copiedTexts, c copying) (*Issue, error) {
	now := s.Now()
	made := *old
	made.ProjectID, made.State, made.ClosedAt, made.ClosedByID, made.MovedToID, made.MilestoneID = to.ID, Opened, nil, nil, nil, nil
	made.UpdatedAt, made.Description = now, texts.of(old.Description)
	if !c.move {
		made.AuthorID, made.CreatedAt = by.ID, now
	}
	var err error
	if old.MilestoneID != nil {
		found, err := findMilestones(ctx, tx, []int64{*old.MilestoneID})
		if err != nil {
			return nil, err
		}
		if made.MilestoneID, err = findMilestoneTitled(ctx, tx, place{project: to}, found[*old.MilestoneID].Title); err != nil {
			return nil, err
		}
	}
	if made.IID, err = issueNumber(ctx, tx, to.ID, nil); err != nil {
		return nil, err
	}
	if err := insertIssue(ctx, tx, &made); err != nil {
		return nil, err
	}
	if made.TimeEstimate != 0 || made.TimeSpent != 0 {
		if err := copyTime(ctx, tx, old, &made, c.move); err != nil {
			return nil, err
		}
	}
	if err := copyLabels(ctx, tx, to, old.ID, made.ID); err != nil {
		return nil, err
	}
	if _, err := s.Appoint(ctx, tx, made.Target(), Assignees, assignees); err != nil {
		return nil, err
	}
	if c.notes {
		if err := copyNotes(ctx, tx, old.Target(), &made, texts.notes); err != nil {
			return nil, err
		}
	}
	if c.move {
		if err := copyAwards(ctx, tx, old.ID, made.ID); err != nil {
			return nil, err
		}
		if err := moveLinks(ctx, tx, old.ID, made.ID); err != nil {
			return nil, err
		}
	}
	if err := joinSubscription(ctx, tx, made.Target(), by.ID, now); err != nil {
		return nil, err
	}
	verb := choose(c.move, "moved", "cloned")
	if err := s.AddSystemNote(ctx, tx, by, made.Target(), made.IID, to.ID, verb+" from "+nameFor(&made, old)); err != nil {
		return nil, err
	}
	if err := s.AddSystemNote(ctx, tx, by, old.Target(), old.IID, old.ProjectID, verb+" to "+nameFor(old, &made)); err != nil {
		return nil, err
	}
	if err := s.recordIssue(ctx, tx, by, &made, activity.Created); err != nil {
		return nil, err
	}
	if !c.move {
		return &made, s.NotifyOf(ctx, tx, by.ID, &made.Issuable, notify.NewIssue, notify.Details{})
	}
	return &made, s.closeMoved(ctx, tx, by, old, made.ID)
}

// copyLabels adds the labels of an issue to its copy if the other project has
// labels of the same name. It does not create labels.
func copyLabels(ctx context.Context, tx *db.Tx, to *project.Project, fromID, toID int64) error {
	found, err := findLabelsOf(ctx, tx, IssueKind, []int64{fromID})
	if err != nil {
		return err
	}
	var labels []*Label
	for _, l := range found[fromID] {
		label, err := findLabelNamed(ctx, tx, place{project: to}, l.Name)
		switch {
		case errs.Is(db.NotFound(err, "Label"), errs.KindNotFound):
			continue
		case err != nil:
			return err
		}
		labels = append(labels, label)
	}
	return changeLabels(ctx, tx, Target{Kind: IssueKind, ID: toID}, labels, nil)
}

// nameFor returns the reference to another issue in a system note. It does not
// name an issue of another project, because not all readers of the note can see
// it.
func nameFor(on, other *Issue) string {
	if on.ProjectID != other.ProjectID {
		return "an issue of another project"
	}
	return fmt.Sprintf("#%d", other.IID)
}

// closeMoved closes an issue that was moved.
func (s *Service) closeMoved(ctx context.Context, tx *db.Tx, by actor.Actor, i *Issue, madeID int64) error {
	if err := s.NotifyOf(ctx, tx, by.ID, &i.Issuable, notify.MovedIssue, notify.Details{}); err != nil {
		return err
	}
	done := i.Move("close", by.ID, s.Now())
	i.MovedToID, i.UpdatedAt = &madeID, s.Now()
	if err := saveIssue(ctx, tx, i); err != nil || done == "" {
		return err
	}
	if err := s.RecordState(ctx, tx, by.ID, &i.Issuable, Opened); err != nil {
		return err
	}
	return s.recordIssue(ctx, tx, by, i, done)
}

// ReorderIssue moves an issue between two others, given by ID, in lists with
// manual order. Requires Planner. NotFound; Forbidden; Invalid if neither is
// given.
func (s *Service) ReorderIssue(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, after, before *int64) (*Issue, error) {
	proj, i, err := s.issue(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	if err := proj.Change(by, project.IssuePart, project.Planner); err != nil {
		return nil, err
	}
	if after == nil && before == nil {
		return nil, errs.Invalid("move_after_id, move_before_id are missing")
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		at, err := between(ctx, tx, proj.ID, after, before)
		if err != nil {
			return err
		}
		return savePosition(ctx, tx, i.ID, at)
	})
	if err != nil {
		return nil, fmt.Errorf("reorder issue %d: %w", i.ID, err)
	}
	return s.Issue(ctx, by, project.RefTo(proj.ID), iid)
}
