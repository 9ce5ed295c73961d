package plan

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/db"
)

// Thing names something that can be subscribed to or talked about.
type Thing struct {
	Kind Kind
	ID   int64
}

// Kind is the kind of a Thing. Notes and events know it by this name.
type Kind string

// The kinds of things.
const (
	IssueKind     Kind = "Issue"
	LabelKind     Kind = "Label"
	MilestoneKind Kind = "Milestone"
	MergeKind     Kind = "MergeRequest"
)

// Subscribe writes what a user wants who sees the thing; changed is false when
// they want nothing new.
func (s *Service) Subscribe(ctx context.Context, by actor.Actor, of Thing, want bool) (changed bool, err error) {
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

// Join subscribes one who takes part in a thing, unless they have said that they
// do not want it.
func (s *Service) Join(ctx context.Context, tx *db.Tx, of Thing, userID int64) error {
	return joinSubscription(ctx, tx, of, userID, s.Now())
}

// Subscribed returns those of the things that a user is subscribed to.
func (s *Service) Subscribed(ctx context.Context, kind Kind, ids []int64, userID int64) (map[int64]bool, error) {
	return findSubscribed(ctx, s.DB, kind, ids, userID)
}
