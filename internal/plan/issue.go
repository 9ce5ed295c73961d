package plan

import (
	"context"
	"fmt"
	"slices"
	"time"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/user"
)

// State is the state of an issue.
type State string

// The states of an issue.
const (
	Opened State = "opened"
	Closed State = "closed"
)

// Issue is an issue of a project.
type Issue struct {
	ID           int64
	IID          int64 // its number in the project
	ProjectID    int64
	Title        string
	Description  string
	State        State
	Type         string // issue, incident, test_case or task
	Confidential bool
	Locked       *bool // the discussion; nil: no one has said
	DueDate      string
	Weight       *int64
	Position     int64 // among others, where users order them by hand
	Notes        int64 // how many users wrote
	AuthorID     int64
	MilestoneID  *int64
	MovedToID    *int64
	ClosedAt     *time.Time
	ClosedByID   *int64
	CreatedAt    time.Time
	UpdatedAt    time.Time

	// Read with the row.
	ProjectPath string
	Author      *user.User
	ClosedBy    *user.User
	Assignees   []*user.User
	Labels      []*Label // by name
	Milestone   *Milestone

	// Read for one issue alone.
	Subscribed bool
}

// maxText is the longest text, in bytes.
const maxText = 1 << 20

func (i *Issue) subject() activity.Subject {
	return activity.Subject{Type: string(IssueKind), ID: i.ID}
}

func (i *Issue) thing() Thing { return Thing{IssueKind, i.ID} }

// audience are those who may know of what happens to the issue.
func (i *Issue) audience() activity.Audience {
	if i.Confidential {
		return activity.Planners
	}
	return activity.IssueReaders
}

// of reports whether the issue is a user's own: they wrote it or are assigned.
func (i *Issue) of(by actor.Actor) bool {
	return by.Is(i.AuthorID) || slices.ContainsFunc(i.Assignees, func(u *user.User) bool { return by.Is(u.ID) })
}

// seen reports whether the actor, who reads issues of the project, sees this one.
func (i *Issue) seen(by actor.Actor, in *project.Project) bool {
	return !i.Confidential || in.MayRead(by, project.ConfidentialPart) || i.of(by)
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
	return i, s.fillSubscribed(ctx, by, i)
}

// IssueByID returns an issue by its id to an administrator; NotFound.
func (s *Service) IssueByID(ctx context.Context, by actor.Actor, id int64) (*Issue, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	i, err := findIssueByID(ctx, s.DB, id)
	if err != nil {
		return nil, notFound(err, "Issue")
	}
	if err := s.fillIssues(ctx, i); err != nil {
		return nil, err
	}
	return i, s.fillSubscribed(ctx, by, i)
}

// issue is the gate to an issue: it gives the project too.
func (s *Service) issue(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*project.Project, *Issue, error) {
	in, err := s.Projects.RequireView(ctx, by, ref, project.IssuePart)
	if err != nil {
		return nil, nil, err
	}
	i, err := findIssue(ctx, s.DB, in.ID, iid)
	if err != nil {
		return nil, nil, notFound(err, "Issue")
	}
	if err := s.fillIssues(ctx, i); err != nil {
		return nil, nil, err
	}
	if !i.seen(by, in) {
		return nil, nil, errs.NotFound("Issue")
	}
	return in, i, nil
}

// fillIssues reads the related rows of issues.
func (s *Service) fillIssues(ctx context.Context, list ...*Issue) error {
	planned := make([]Planned, len(list))
	for n, i := range list {
		planned[n] = Planned{ID: i.ID, Milestone: i.MilestoneID, Others: []*int64{&i.AuthorID, i.ClosedByID}}
	}
	plans, err := s.PlansOf(ctx, IssueKind, planned, Assignees)
	if err != nil {
		return err
	}
	for _, i := range list {
		p := plans[i.ID]
		i.Labels, i.Milestone, i.Assignees = p.Labels, p.Milestone, p.Users[Assignees]
		i.Author, i.ClosedBy = p.Other(&i.AuthorID), p.Other(i.ClosedByID)
	}
	return nil
}

func (s *Service) fillSubscribed(ctx context.Context, by actor.Actor, i *Issue) error {
	found, err := findSubscribed(ctx, s.DB, IssueKind, []int64{i.ID}, by.ID)
	if err != nil {
		return fmt.Errorf("subscription of issue %d: %w", i.ID, err)
	}
	i.Subscribed = found[i.ID]
	return nil
}

// SubscribeIssue makes the actor, who sees the issue, a subscriber of it, or
// ends it; changed is false when there was nothing to do. NotFound.
func (s *Service) SubscribeIssue(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, want bool) (i *Issue, changed bool, err error) {
	if _, i, err = s.issue(ctx, by, ref, iid); err != nil {
		return nil, false, err
	}
	if changed, err = s.Subscribe(ctx, by, i.thing(), want); err == nil {
		i.Subscribed = want
	}
	return i, changed, err
}

// Participants lists who took part in an issue, for those who see it: the
// author, the assignees and who wrote notes. NotFound.
func (s *Service) Participants(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) ([]*user.User, error) {
	in, i, err := s.issue(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	ids, err := findWriters(ctx, s.DB, i.thing(), in.MayRead(by, project.ConfidentialPart))
	if err != nil {
		return nil, fmt.Errorf("participants of issue %d: %w", i.ID, err)
	}
	all := []int64{i.AuthorID}
	for _, u := range i.Assignees {
		all = append(all, u.ID)
	}
	all = append(all, ids...)
	users, err := s.Users.FindAll(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("participants of issue %d: %w", i.ID, err)
	}
	list, listed := []*user.User{}, map[int64]bool{}
	for _, id := range all {
		if u := users[id]; u != nil && !listed[id] {
			list, listed[id] = append(list, u), true
		}
	}
	return list, nil
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
			return notFound(err, "Issue")
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
		return s.recordDeletion(ctx, tx, by, in, now)
	})
	if err != nil {
		return fmt.Errorf("delete issue %d: %w", i.ID, err)
	}
	return nil
}
