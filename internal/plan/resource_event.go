package plan

import (
	"context"
	"fmt"
	"slices"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/user"
)

// EventKind is the kind of a resource event.
type EventKind string

// The kinds of resource events.
const (
	LabelEvent     EventKind = "label"
	StateEvent     EventKind = "state"
	MilestoneEvent EventKind = "milestone"
	WeightEvent    EventKind = "weight" // issues only
)

// The actions of resource events.
const (
	eventAdd    = "add"
	eventRemove = "remove"
)

// ResourceEvent is a change to the labels, the state, the milestone or the weight
// of an issue or merge request.
type ResourceEvent struct {
	ID          int64
	Kind        EventKind
	On          Target
	ProjectID   int64
	UserID      *int64
	Action      string // add or remove; for a state: closed, reopened or merged
	LabelID     *int64
	MilestoneID *int64
	Weight      *int64
	CreatedAt   time.Time

	// Read with the row.
	User      *user.User // nil if deleted
	Label     *Label     // nil if deleted, or no longer available in the project
	Milestone *Milestone // nil if deleted, or no longer available in the project
}

// ResourceEvents lists the events of one kind on a target, oldest first. The
// caller has checked access.
func (s *Service) ResourceEvents(ctx context.Context, on Noteable, kind EventKind, p db.Paging) (db.Page[*ResourceEvent], error) {
	page, err := listResourceEvents(ctx, s.DB, on.Target, kind, p)
	if err != nil {
		return page, fmt.Errorf("list %s events: %w", kind, err)
	}
	return page, s.fillResourceEvents(ctx, on, page.Items...)
}

// ResourceEvent returns an event on a target. The caller has checked access.
// NotFound.
func (s *Service) ResourceEvent(ctx context.Context, on Noteable, kind EventKind, id int64) (*ResourceEvent, error) {
	e, err := findResourceEvent(ctx, s.DB, on.Target, kind, id)
	if err != nil {
		return nil, db.NotFound(err, "Resource Event")
	}
	return e, s.fillResourceEvents(ctx, on, e)
}

func (s *Service) fillResourceEvents(ctx context.Context, on Noteable, list ...*ResourceEvent) error {
	var userIDs, labelIDs, milestoneIDs []int64
	add := func(ids *[]int64, id *int64) {
		if id != nil && !slices.Contains(*ids, *id) {
			*ids = append(*ids, *id)
		}
	}
	for _, e := range list {
		add(&userIDs, e.UserID)
		add(&labelIDs, e.LabelID)
		add(&milestoneIDs, e.MilestoneID)
	}
	users, err := s.Users.FindAll(ctx, userIDs)
	if err != nil {
		return fmt.Errorf("users of resource events: %w", err)
	}
	in := place{project: on.In}
	labels, err := findUsableLabels(ctx, s.DB, in, labelIDs)
	if err != nil {
		return fmt.Errorf("labels of resource events: %w", err)
	}
	milestones, err := findUsableMilestones(ctx, s.DB, in, milestoneIDs)
	if err != nil {
		return fmt.Errorf("milestones of resource events: %w", err)
	}
	for _, e := range list {
		if e.UserID != nil {
			e.User = users[*e.UserID]
		}
		if e.LabelID != nil {
			e.Label = labels[*e.LabelID]
		}
		if e.MilestoneID != nil {
			e.Milestone = milestones[*e.MilestoneID]
		}
	}
	return nil
}

// recordEvent adds an event in the transaction of the change.
func (s *Service) recordEvent(ctx context.Context, tx *db.Tx, by int64, projectID int64, on Target, e ResourceEvent) error {
	e.On, e.ProjectID, e.CreatedAt = on, projectID, s.Now()
	if by > 0 {
		e.UserID = &by
	}
	return insertResourceEvent(ctx, tx, &e)
}

// RecordState records that an issue or merge request was closed, reopened or
// merged, in the transaction of the change.
func (s *Service) RecordState(ctx context.Context, tx *db.Tx, by int64, i *Issuable, was State) error {
	if was == i.State {
		return nil
	}
	state := string(i.State)
	if i.State == Opened {
		state = "reopened"
	}
	return s.recordEvent(ctx, tx, by, i.ProjectID, i.Target(), ResourceEvent{Kind: StateEvent, Action: state})
}

// RecordMilestone records a change of the milestone, in the transaction of the
// change.
func (s *Service) RecordMilestone(ctx context.Context, tx *db.Tx, by actor.Actor, i *Issuable, was *int64) error {
	if same(was, i.MilestoneID) {
		return nil
	}
	e := ResourceEvent{Kind: MilestoneEvent, Action: eventAdd, MilestoneID: i.MilestoneID}
	if i.MilestoneID == nil {
		e.Action, e.MilestoneID = eventRemove, was
	}
	return s.recordEvent(ctx, tx, by.ID, i.ProjectID, i.Target(), e)
}

func (s *Service) recordLabels(ctx context.Context, tx *db.Tx, by actor.Actor, projectID int64, on Target, added, removed []*Label) error {
	for n, labels := range [][]*Label{added, removed} {
		for _, l := range labels {
			e := ResourceEvent{Kind: LabelEvent, Action: []string{eventAdd, eventRemove}[n], LabelID: &l.ID}
			if err := s.recordEvent(ctx, tx, by.ID, projectID, on, e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Service) recordWeight(ctx context.Context, tx *db.Tx, by actor.Actor, i *Issue, was *int64) error {
	if same(was, i.Weight) {
		return nil
	}
	e := ResourceEvent{Kind: WeightEvent, Action: choose(i.Weight == nil, eventRemove, eventAdd), Weight: i.Weight}
	return s.recordEvent(ctx, tx, by.ID, i.ProjectID, i.Target(), e)
}
