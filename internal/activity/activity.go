// Package activity stores the activity feed. An event is written in the
// transaction of the change that it describes, and is shown to users who may see
// its target.
package activity

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/user"
)

// Action is what was done.
type Action string

// The recorded actions.
const (
	Approved  Action = "approved"
	Closed    Action = "closed"
	Commented Action = "commented"
	Created   Action = "created"
	Destroyed Action = "destroyed"
	Expired   Action = "expired"
	Joined    Action = "joined"
	Left      Action = "left"
	Merged    Action = "merged"
	Pushed    Action = "pushed"
	Reopened  Action = "reopened"
	Updated   Action = "updated"
)

// Actions returns all actions.
func Actions() []Action {
	return []Action{Approved, Closed, Commented, Created, Destroyed, Expired, Joined, Left, Merged, Pushed, Reopened, Updated}
}

// Audience is the set of users who may see an event. It is stored as a number with
// one bit set, so that the audiences that a user belongs to in a project are a
// mask.
type Audience int64

// The audiences.
const (
	Viewers         Audience = 1 << iota // users who can see the project
	CodeReaders                          // users who can read its code
	IssueReaders                         // users who can read its issues
	Planners                             // users who can read confidential issues, the author and the assignees
	Insiders                             // users who can read internal notes
	MergeReaders                         // users who can read its merge requests
	SnippetReaders                       // users who can read its snippets
	SnippetAccounts                      // signed-in SnippetReaders who are not external
	SnippetMembers                       // users who can read all of its snippets
	WikiReaders                          // users who can read its wiki
	Everyone                             // outside of projects: everyone
	Accounts                             // outside of projects: signed-in users who are not external
	Alone                                // outside of projects: only the author
)

// Subject is the object that an event belongs to: for a comment, the object that
// was commented on. Its events change with it.
type Subject struct {
	Type string // "Issue", "MergeRequest", "Milestone" …
	ID   int64
}

// Event is something that a user did.
type Event struct {
	ID          int64
	ProjectID   *int64 // nil outside of projects
	AuthorID    int64
	Action      Action
	Audience    Audience
	Subject     Subject
	TargetType  string // "Issue"; empty for a push
	TargetID    *int64
	TargetIID   *int64
	TargetTitle string
	Push        *Push
	CreatedAt   time.Time

	Author *user.User // in lists
}

// Push describes a push to one or several refs. It is stored as JSON.
type Push struct {
	Action      PushAction `json:"action"`
	RefType     string     `json:"ref_type"` // branch or tag
	Ref         string     `json:"ref"`      // empty for several refs
	RefCount    int        `json:"ref_count,omitempty"`
	From        string     `json:"from"` // commit; empty for a new ref
	To          string     `json:"to"`   // commit; empty for a deleted ref
	CommitCount int        `json:"commit_count"`
	CommitTitle string     `json:"commit_title"`
}

// PushAction is what a push did to a ref.
type PushAction string

// The changes of a ref.
const (
	RefCreated PushAction = "created"
	RefPushed  PushAction = "pushed"
	RefRemoved PushAction = "removed"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Queue    *queue.Queue
	Users    *user.Service
	Projects *project.Service
	Now      func() time.Time
}

// Service manages the activity feed.
type Service struct {
	Deps
	concerns Concern
}

// Concern returns a condition on e.subject_id for the issues that an actor wrote
// or is assigned to. The feature that owns issues provides it.
type Concern func(by actor.Actor) (cond string, args []any)

// OnConcern registers a Concern. It is called at startup.
func (s *Service) OnConcern(c Concern) { s.concerns = c }

// New returns the service and registers its background jobs.
func New(d Deps) *Service {
	s := &Service{Deps: d}
	d.Queue.Every("activity_retention", 6*time.Hour, s.Purge)
	return s
}

// Record writes an event in the transaction of the change. The caller has checked
// the permissions of the author.
func Record(ctx context.Context, tx *db.Tx, e Event) error {
	if e.AuthorID <= 0 { // the server itself
		return nil
	}
	var push []byte
	if e.Push != nil {
		var err error
		if push, err = json.Marshal(e.Push); err != nil {
			return err
		}
	}
	if err := insertEvent(ctx, tx, e, string(push)); err != nil {
		return fmt.Errorf("record activity: %w", err)
	}
	return nil
}

// Retitle updates the title in the events of an object.
func Retitle(ctx context.Context, tx *db.Tx, of Subject, title string) error {
	return saveTitle(ctx, tx, of, title)
}

// Readdress changes the audience of the events of an object.
func Readdress(ctx context.Context, tx *db.Tx, of Subject, from, to Audience) error {
	return saveAudience(ctx, tx, of, from, to)
}

// Forget deletes the events of a deleted object.
func Forget(ctx context.Context, tx *db.Tx, of Subject) error {
	return deleteEvents(ctx, tx, of.Type, []int64{of.ID}, nil)
}

// ForgetAll deletes the events of objects of one type. The IDs are arguments of
// one statement, so there must not be too many.
func ForgetAll(ctx context.Context, tx *db.Tx, kind string, ids []int64) error {
	return deleteEvents(ctx, tx, kind, ids, nil)
}

// ForgetTarget deletes the events of a part of an object, such as a comment.
func ForgetTarget(ctx context.Context, tx *db.Tx, of Subject, targetID int64) error {
	return deleteEvents(ctx, tx, of.Type, []int64{of.ID}, &targetID)
}

// ProjectsOf returns the projects that a user has contributed to since a time. The
// caller checks permissions.
func (s *Service) ProjectsOf(ctx context.Context, userID int64, since time.Time) ([]int64, error) {
	ids, err := findContributed(ctx, s.DB, userID, since)
	if err != nil {
		return nil, fmt.Errorf("projects of user %d: %w", userID, err)
	}
	return ids, nil
}

// ProjectChanged records an event about a project or its members.
func (s *Service) ProjectChanged(ctx context.Context, tx *db.Tx, a project.Event) error {
	e := Event{ProjectID: &a.ProjectID, AuthorID: a.UserID, Audience: Viewers, CreatedAt: s.Now()}
	switch a.Kind {
	case project.ProjectCreated:
		e.Action, e.TargetType, e.TargetID, e.TargetTitle = Created, "Project", &a.ProjectID, a.Name
		e.Subject = Subject{"Project", a.ProjectID}
	case project.MemberJoined:
		e.Action = Joined
	case project.MemberLeft:
		e.Action = Left
	case project.MemberExpired:
		e.Action = Expired
	case project.ProjectRenamed:
		return saveTitle(ctx, tx, Subject{"Project", a.ProjectID}, a.Name)
	case project.ProjectMoved:
		return nil
	}
	return Record(ctx, tx, e)
}

const (
	// keepYears is how many years events are kept.
	keepYears = 3
	// purgeBatch is the number of rows that one statement deletes, so that others are
	// not blocked.
	purgeBatch = 1000
)

// Purge deletes events older than keepYears.
func (s *Service) Purge(ctx context.Context) error {
	before := s.Now().AddDate(-keepYears, 0, 0)
	for {
		n, err := deleteOld(ctx, s.DB, before, purgeBatch)
		if err != nil {
			return fmt.Errorf("purge activity: %w", err)
		}
		if n < purgeBatch {
			return nil
		}
	}
}

// UserDeleted makes the ghost user the author of the events of a deleted user. A
// hard deletion deletes the events with the user.
func UserDeleted(ctx context.Context, tx *db.Tx, d user.Deletion) error {
	if d.Hard {
		return nil // the foreign key deletes the rows
	}
	return changeAuthor(ctx, tx, d.UserID, d.GhostID)
}
