// Package activity records what users did, for others to read. An event is
// written in the transaction of the act that it tells of.
package activity

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"svc/internal/db"
	"svc/internal/user"
)

// Action says what was done.
type Action string

// The actions that are recorded.
const (
	Created Action = "created"
	Pushed  Action = "pushed"
)

// Event is something that a user did.
type Event struct {
	ID          int64
	ProjectID   *int64 // nil outside of projects
	AuthorID    int64
	Action      Action
	TargetType  string // "Issue"; empty for a push
	TargetID    *int64
	TargetIID   *int64
	TargetTitle string
	Push        *Push
	CreatedAt   time.Time
}

// Push is what a push did to one ref, or to many at once. It is stored as
// JSON.
type Push struct {
	Action      PushAction `json:"action"`
	RefType     string     `json:"ref_type"` // branch or tag
	Ref         string     `json:"ref"`      // empty for many
	RefCount    int        `json:"ref_count,omitempty"`
	From        string     `json:"from"` // commit; empty for a ref that was made
	To          string     `json:"to"`   // commit; empty for a ref that was removed
	CommitCount int        `json:"commit_count"`
	CommitTitle string     `json:"commit_title"`
}

// PushAction says what became of the ref.
type PushAction string

// What can become of a ref.
const (
	RefCreated PushAction = "created"
	RefPushed  PushAction = "pushed"
	RefRemoved PushAction = "removed"
)

// Deps are what the service needs.
type Deps struct {
	DB    *db.DB
	Users *user.Service
}

// Service is the activity of the installation.
type Service struct{ Deps }

// New makes the service, and takes part in the deletion of users.
func New(d Deps) *Service {
	s := &Service{Deps: d}
	d.Users.OnDelete(leaveUser)
	return s
}

// Record writes an event in the transaction of the act. Whether the author
// may act was asked there.
func Record(ctx context.Context, tx *db.Tx, e Event) error {
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

// ProjectsOf gives the projects to which a user has contributed since then, by
// his newest acts. Who may know is for the caller to ask.
func (s *Service) ProjectsOf(ctx context.Context, userID int64, since time.Time) ([]int64, error) {
	ids, err := findContributed(ctx, s.DB, userID, since)
	if err != nil {
		return nil, fmt.Errorf("projects of user %d: %w", userID, err)
	}
	return ids, nil
}

// leaveUser gives the acts of a user who goes to the ghost; with a hard
// deletion they go along.
func leaveUser(ctx context.Context, tx *db.Tx, userID, ghostID int64, hard bool) error {
	if hard {
		return nil // the rows go with the account
	}
	return changeAuthor(ctx, tx, userID, ghostID)
}
