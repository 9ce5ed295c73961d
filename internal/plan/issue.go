package plan

import (
	"context"
	"fmt"
	"time"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/user"
)

// Issue is an issue of a project.
type Issue struct {
	Issuable
	Type         string // issue, incident, test_case or task
	Confidential bool
	DueDate      string
	Weight       *int64
	Position     int64 // in lists with manual order
	MovedToID    *int64
}

// IssueIn returns an issue by its ID in a transaction of another feature. NotFound.
func IssueIn(ctx context.Context, q db.Q, id int64) (*Issue, error) {
	i, err := findIssueByID(ctx, q, id)
	return i, db.NotFound(err, "Issue")
}

// audience are those who may know of what happens to the issue.
func (i *Issue) audience() activity.Audience {
	if i.Confidential {
		return activity.Planners
	}
	return activity.IssueReaders
}

// seen reports whether the actor, who reads issues of the project, sees this one.
func (i *Issue) seen(by actor.Actor, in *project.Project) bool {
	return !i.Confidential || in.MayRead(by, project.ConfidentialPart) || i.IsOwn(by)
}

// planner reports whether the actor may change whatever they want in an issue.
func planner(by actor.Actor, in *project.Project) bool {
	return in.Enough(by, project.Planner) == nil
}

// Issue returns an issue of a project by its number to those who see it; NotFound.
func (s *Service) Issue(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*Issue, error) {
	_, i, err := s.issue(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	return i, s.FillSubscribed(ctx, by, &i.Issuable)
}

// IssueByID returns an issue by its id to an administrator; NotFound.
func (s *Service) IssueByID(ctx context.Context, by actor.Actor, id int64) (*Issue, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	i, err := findIssueByID(ctx, s.DB, id)
	if err != nil {
		return nil, db.NotFound(err, "Issue")
	}
	if err := s.fillIssues(ctx, i); err != nil {
		return nil, err
	}
	return i, s.FillSubscribed(ctx, by, &i.Issuable)
}

// issue is the gate to an issue: it gives the project too.
func (s *Service) issue(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*project.Project, *Issue, error) {
	in, err := s.Projects.RequireView(ctx, by, ref, project.IssuePart)
	if err != nil {
		return nil, nil, err
	}
	i, err := findIssue(ctx, s.DB, in.ID, iid)
	if err != nil {
		return nil, nil, db.NotFound(err, "Issue")
	}
	if err := s.fillIssues(ctx, i); err != nil {
		return nil, nil, err
	}
	if !i.seen(by, in) {
		return nil, nil, errs.NotFound("Issue")
	}
	return in, i, nil
}

// Seen returns an issue by its ID with its project, to those who see it. NotFound.
func (s *Service) Seen(ctx context.Context, by actor.Actor, id int64) (*project.Project, *Issue, error) {
	found, err := findIssueByID(ctx, s.DB, id)
	if err != nil {
		return nil, nil, db.NotFound(err, "Issue")
	}
	return s.issue(ctx, by, project.RefTo(found.ProjectID), found.IID)
}

// fillIssues reads the related rows of issues.
func (s *Service) fillIssues(ctx context.Context, list ...*Issue) error {
	shared := make([]*Issuable, len(list))
	for n, i := range list {
		shared[n] = &i.Issuable
	}
	_, err := s.FillIssuables(ctx, shared)
	return err
}

// SubscribeIssue makes the actor, who sees the issue, a subscriber of it, or
// ends it; changed is false when there was nothing to do. NotFound.
func (s *Service) SubscribeIssue(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, want bool) (i *Issue, changed bool, err error) {
	if _, i, err = s.issue(ctx, by, ref, iid); err != nil {
		return nil, false, err
	}
	if changed, err = s.Subscribe(ctx, by, i.Target(), want); err == nil {
		i.Subscribed = want
	}
	return i, changed, err
}

// IssueParticipants returns the participants of an issue to those who see it:
// the author, the assignees and the authors of notes. NotFound.
func (s *Service) IssueParticipants(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) ([]*user.User, error) {
	in, i, err := s.issue(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	return s.ParticipantsOf(ctx, &i.Issuable, in.MayRead(by, project.ConfidentialPart))
}

// DeleteIssue removes an issue with its notes: Owners may, and those who plan
// and do nothing else. NotFound; Precondition when it has changed since.
func (s *Service) DeleteIssue(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, unmodifiedSince *time.Time) error {
	in, i, err := s.issue(ctx, by, ref, iid)
	if err != nil {
		return err
	}
	if err := i.deletable(by, in); err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "issues", i.ID); err != nil {
			return err
		}
		now, err := findIssueByID(ctx, tx, i.ID)
		if err != nil {
			return db.NotFound(err, "Issue")
		}
		if err := errs.ChangedSince(now.UpdatedAt, unmodifiedSince); err != nil {
			return err
		}
		if err := deleteIssue(ctx, tx, i.ID); err != nil {
			return err
		}
		if err := Forget(ctx, tx, IssueKind, i.ID); err != nil {
			return err
		}
		return s.RecordDeletion(ctx, tx, by, in, &now.Issuable)
	})
	if err != nil {
		return fmt.Errorf("delete issue %d: %w", i.ID, err)
	}
	return nil
}
