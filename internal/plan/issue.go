package plan

import (
	"context"
	"fmt"
	"time"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/memo"
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
	Position     int64 // position in lists with manual order
	MovedToID    *int64
}

// IssueIn returns an issue by its ID in a transaction of another feature.
// NotFound.
func IssueIn(ctx context.Context, q db.Q, id int64) (*Issue, error) {
	i, err := findIssueByID(ctx, q, id)
	return i, db.NotFound(err, "Issue")
}

// audience returns the users who may see events about the issue.
func (i *Issue) audience() activity.Audience {
	if i.Confidential {
		return activity.Planners
	}
	return activity.IssueReaders
}

// visibleTo reports whether an actor who can read issues of the project can see
// this one.
func (i *Issue) visibleTo(by actor.Actor, proj *project.Project) bool {
	return !i.Confidential || proj.MayRead(by, project.ConfidentialPart) || i.IsOwn(by)
}

// mayPlan reports whether the actor may change all fields of issues.
func mayPlan(by actor.Actor, proj *project.Project) bool {
	return proj.Enough(by, project.Planner) == nil
}

// Issue returns an issue of a project by its number. NotFound.
func (s *Service) Issue(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*Issue, error) {
	_, i, err := s.issue(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	return i, s.FillSubscribed(ctx, by, &i.Issuable)
}

// IssueByID returns an issue by its ID. Requires an administrator. NotFound.
func (s *Service) IssueByID(ctx context.Context, by actor.Actor, id int64) (*Issue, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	i, err := findIssueByID(ctx, s.DB, id)
	if err != nil {
		return nil, db.NotFound(err, "Issue")
	}
	if err := s.FillIssues(ctx, i); err != nil {
		return nil, err
	}
	return i, s.FillSubscribed(ctx, by, &i.Issuable)
}

// issue returns an issue and its project if the actor can see both. All operations
// on an issue start here. NotFound.
func (s *Service) issue(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*project.Project, *Issue, error) {
	r, err := memo.Get(ctx, readKey{by.ID, ref, iid}, func() (r read, err error) {
		r.in, r.issue, err = s.readIssue(ctx, by, ref, iid)
		return r, err
	})
	if err != nil {
		return nil, nil, err
	}
	in, i := *r.in, *r.issue
	return &in, &i, nil
}

// readKey is the cache key of an issue that a page reads more than once.
type readKey struct {
	by  int64
	ref project.Ref
	iid int64
}

// read is an issue with its project.
type read struct {
	in    *project.Project
	issue *Issue
}

func (s *Service) readIssue(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*project.Project, *Issue, error) {
	proj, err := s.Projects.RequireView(ctx, by, ref, project.IssuePart)
	if err != nil {
		return nil, nil, err
	}
	i, err := findIssue(ctx, s.DB, proj.ID, iid)
	if err != nil {
		return nil, nil, db.NotFound(err, "Issue")
	}
	if err := s.FillIssues(ctx, i); err != nil {
		return nil, nil, err
	}
	if !i.visibleTo(by, proj) {
		return nil, nil, errs.NotFound("Issue")
	}
	return proj, i, nil
}

// Seen returns an issue and its project by the ID of the issue, if the actor can
// see it. NotFound.
func (s *Service) Seen(ctx context.Context, by actor.Actor, id int64) (*project.Project, *Issue, error) {
	found, err := findIssueByID(ctx, s.DB, id)
	if err != nil {
		return nil, nil, db.NotFound(err, "Issue")
	}
	return s.issue(ctx, by, project.RefTo(found.ProjectID), found.IID)
}

// FillIssues reads the related objects of issues.
func (s *Service) FillIssues(ctx context.Context, list ...*Issue) error {
	shared := make([]*Issuable, len(list))
	for n, i := range list {
		shared[n] = &i.Issuable
	}
	_, err := s.FillIssuables(ctx, shared)
	return err
}

// SubscribeIssue subscribes the actor to an issue or unsubscribes them. changed is
// false if there was nothing to change. NotFound.
func (s *Service) SubscribeIssue(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, subscribe bool) (i *Issue, changed bool, err error) {
	if _, i, err = s.issue(ctx, by, ref, iid); err != nil {
		return nil, false, err
	}
	if changed, err = s.Subscribe(ctx, by, i.Target(), subscribe); err == nil {
		i.Subscribed = subscribe
	}
	return i, changed, err
}

// IssueParticipants returns the author, the assignees and the authors of notes of
// an issue. NotFound.
func (s *Service) IssueParticipants(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) ([]*user.User, error) {
	proj, i, err := s.issue(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	return s.ParticipantsOf(ctx, &i.Issuable, proj.MayRead(by, project.ConfidentialPart))
}

// DeleteIssue deletes an issue and its notes. Requires Owner, or a role of exactly
// Planner. NotFound; Precondition if the issue was modified since.
func (s *Service) DeleteIssue(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, unmodifiedSince *time.Time) error {
	proj, i, err := s.issue(ctx, by, ref, iid)
	if err != nil {
		return err
	}
	if err := i.deletable(by, proj); err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "issues", i.ID); err != nil {
			return err
		}
		current, err := findIssueByID(ctx, tx, i.ID)
		if err != nil {
			return db.NotFound(err, "Issue")
		}
		if err := errs.ChangedSince(current.UpdatedAt, unmodifiedSince); err != nil {
			return err
		}
		if err := deleteIssue(ctx, tx, i.ID); err != nil {
			return err
		}
		if err := Forget(ctx, tx, IssueKind, i.ID); err != nil {
			return err
		}
		return s.RecordDeletion(ctx, tx, by, proj, &current.Issuable)
	})
	if err != nil {
		return fmt.Errorf("delete issue %d: %w", i.ID, err)
	}
	return nil
}
