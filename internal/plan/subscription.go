package plan

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/db"
)

// Target identifies an object that can have notes and subscribers.
type Target struct {
	Kind Kind
	ID   int64
}

// Kind is the type of a Target, as notes and events store it.
type Kind string

// The kinds of this feature and of merge requests.
const (
	IssueKind     Kind = "Issue"
	LabelKind     Kind = "Label"
	MilestoneKind Kind = "Milestone"
	MergeKind     Kind = "MergeRequest"
)

// Subscribe subscribes or unsubscribes the actor, who sees the target; changed
// is false if nothing changes.
func (s *Service) Subscribe(ctx context.Context, by actor.Actor, of Target, want bool) (changed bool, err error) {
	if err := by.RequireUser(); err != nil {
		return false, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		changed, err = saveSubscription(ctx, tx, of, by.ID, want, s.Now())
		return err
	})
	if err != nil {
		return false, fmt.Errorf("subscribe to %s %d: %w", of.Kind, of.ID, err)
	}
	return changed, nil
}

// Join subscribes a user who takes part in the target, unless they have
// unsubscribed.
func (s *Service) Join(ctx context.Context, tx *db.Tx, of Target, userID int64) error {
	return joinSubscription(ctx, tx, of, userID, s.Now())
}
