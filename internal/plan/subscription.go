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

// The kinds of objects of this package, and merge requests.
const (
	IssueKind     Kind = "Issue"
	LabelKind     Kind = "Label"
	MilestoneKind Kind = "Milestone"
	MergeKind     Kind = "MergeRequest"
)

// Subscribe subscribes or unsubscribes the actor. The caller has checked that they
// can see the target. changed is false if there was nothing to change.
func (s *Service) Subscribe(ctx context.Context, by actor.Actor, of Target, subscribe bool) (changed bool, err error) {
	if err := by.RequireUser(); err != nil {
		return false, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		changed, err = saveSubscription(ctx, tx, of, by.ID, subscribe, s.Now())
		return err
	})
	if err != nil {
		return false, fmt.Errorf("subscribe to %s %d: %w", of.Kind, of.ID, err)
	}
	return changed, nil
}

// Join subscribes a participant unless they have unsubscribed.
func (s *Service) Join(ctx context.Context, tx *db.Tx, of Target, userID int64) error {
	return joinSubscription(ctx, tx, of, userID, s.Now())
}
