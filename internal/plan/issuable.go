package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/markup"
	"svc/internal/notify"
	"svc/internal/patch"
	"svc/internal/plan/listing"
	"svc/internal/project"
	"svc/internal/user"
)

// Issuable has the fields that issues and merge requests share. The rules for them
// are in this file. The package that owns the object checks access.
type Issuable struct {
	Kind        Kind
	ID          int64
	IID         int64 // number in the project
	ProjectID   int64
	Title       string
	Description string
	State       State
	Locked      *bool // whether the discussion is locked; nil if it was never set
	Notes       int64 // number of comments
	Upvotes     int64 // number of thumbsup reactions
	Downvotes   int64 // number of thumbsdown reactions
	AuthorID    int64
	MilestoneID *int64
	ClosedAt    *time.Time
	ClosedByID  *int64
	CreatedAt   time.Time
	UpdatedAt   time.Time

	TimeEstimate int64 // in seconds
	TimeSpent    int64

	// Read with the row.
	ProjectPath string
	Author      *user.User
	ClosedBy    *user.User
	Assignees   []*user.User
	Reviewers   []*user.User // merge requests only
	Labels      []*Label     // by name
	Milestone   *Milestone

	// Read for a single one.
	Subscribed bool

	// Commands is the outcome of quick actions in the new description; nil if there
	// were none.
	Commands *Outcome

	// Replanned is set by ChangePlan.
	Replanned Replanned
}

// State is the state of an issue or merge request.
type State = listing.State

// The states of issues. Merge requests can also be merged.
const (
	Opened = listing.Opened
	Closed = listing.Closed
	Merged = listing.Merged
)

// NewIssuable returns the shared part of an open issue or merge request that
// the actor creates.
func NewIssuable(kind Kind, by actor.Actor, proj *project.Project, now time.Time) Issuable {
	return Issuable{Kind: kind, ProjectID: proj.ID, State: Opened, AuthorID: by.ID, CreatedAt: now, UpdatedAt: now}
}

// Target returns the target of notes, subscriptions and events.
func (i *Issuable) Target() Target { return Target{i.Kind, i.ID} }

// Subject returns the subject of events in the activity feed.
func (i *Issuable) Subject() activity.Subject {
	return activity.Subject{Type: string(i.Kind), ID: i.ID}
}

// IsLocked reports whether only members may comment.
func (i *Issuable) IsLocked() bool { return i.Locked != nil && *i.Locked }

// IsOwn reports whether the actor is the author or an assignee.
func (i *Issuable) IsOwn(by actor.Actor) bool {
	return by.Is(i.AuthorID) || slices.ContainsFunc(i.Assignees, func(u *user.User) bool { return by.Is(u.ID) })
}

// Tick checks or unchecks a task list item of a description.
type Tick struct {
	Task int // index from 0
	Done bool
}

// Fields are changes to an Issuable. A nil field keeps the current value or the
// default.
type Fields struct {
	Title       *string
	Description *string
	Event       string // "close" or "reopen"
	Tick        *Tick

	// Planning fields. They require a higher role.
	Assignees *[]int64
	Labels    Labelling
	Milestone *int64 // 0 removes it
	Locked    *bool
	Time      TimeChange

	// Set by prepare before the transaction.
	mentioned []string // users mentioned in the new description but not in the old one
	ticked    *ticked
}

// ticked is a description before and after a task list item was checked or
// unchecked.
type ticked struct{ was, is string }

// errStale means that the description has changed since it was read.
var errStale = errors.New("the description has changed")

// DropPlan removes the planning fields.
func (f *Fields) DropPlan() {
	f.Assignees, f.Labels, f.Milestone, f.Locked, f.Time = nil, Labelling{}, nil, nil, TimeChange{}
}

// Texts returns the title and the description if they change.
func (f *Fields) Texts() string {
	var texts []string
	for _, text := range []*string{f.Title, f.Description} {
		if text != nil {
			texts = append(texts, *text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// prepare parses the old and the new description. It can take half a second of CPU
// time and therefore runs outside the transaction.
func (f *Fields) prepare(ctx context.Context, description string) (err error) {
	if f.Description != nil {
		f.mentioned, err = NewMentions(ctx, description, *f.Description)
	}
	if f.Tick != nil && err == nil {
		text, ok := markup.SetTask(ctx, description, f.Tick.Task, f.Tick.Done)
		if !ok {
			return errs.Conflict("The task list has been changed in the meantime.")
		}
		f.ticked = &ticked{description, text}
	}
	return err
}

// Update prepares the fields and then runs change, which applies them, in a
// transaction. It retries if the description was changed concurrently with a task
// list item. Conflict.
func (s *Service) Update(ctx context.Context, i *Issuable, f *Fields, change func(tx *db.Tx) error) error {
	description := i.Description
	for range 10 {
		if err := f.prepare(ctx, description); err != nil {
			return err
		}
		err := s.DB.Tx(ctx, change)
		if !errors.Is(err, errStale) {
			return err
		}
		if description, err = findDescription(ctx, s.DB, i.Target()); err != nil {
			return db.NotFound(err, i.Kind.name())
		}
	}
	return errs.Conflict("The description has been changed in the meantime.")
}

// MaxTitle is the maximum length of a title in characters.
const MaxTitle = 255

// MaxText is the maximum length of a description in bytes.
const MaxText = 1 << 20

// Apply sets the fields and returns the validation errors by field.
func (i *Issuable) Apply(f Fields) (wrong errs.Fields, err error) {
	patch.Set(&i.Title, f.Title)
	i.Title = strings.TrimSpace(i.Title)
	patch.Set(&i.Description, f.Description)
	if f.Locked != nil {
		i.Locked = f.Locked
	}
	if f.Milestone != nil {
		i.MilestoneID = f.Milestone
		if *f.Milestone == 0 {
			i.MilestoneID = nil
		}
	}
	if f.ticked != nil {
		if i.Description != f.ticked.was {
			return nil, errStale
		}
		i.Description = f.ticked.is
	}
	wrong = errs.Fields{}
	switch {
	case i.Title == "":
		wrong.Set("title", "can't be blank")
	case utf8.RuneCountInString(i.Title) > MaxTitle:
		wrong.Set("title", "is too long (maximum is %d characters)", MaxTitle)
	}
	if len(i.Description) > MaxText {
		wrong.Set("description", "is too long (maximum is 1048576 characters)")
	}
	return wrong, nil
}

// Move closes or reopens the object and returns the action, or an empty string if
// the event does not change the state.
func (i *Issuable) Move(event string, by int64, at time.Time) activity.Action {
	switch {
	case event == "close" && i.State == Opened:
		i.State, i.ClosedAt = Closed, &at
		if by > 0 {
			i.ClosedByID = &by
		}
		return activity.Closed
	case event == "reopen" && i.State == Closed:
		i.State, i.ClosedAt, i.ClosedByID = Opened, nil, nil
		return activity.Reopened
	}
	return ""
}

// FillIssuables reads the labels, milestones and users of issues or merge requests
// of one kind. It returns the users by ID; others are IDs of additional users to
// read.
func (s *Service) FillIssuables(ctx context.Context, list []*Issuable, others ...*int64) (map[int64]*user.User, error) {
	if len(list) == 0 {
		return nil, nil
	}
	kind, roles := list[0].Kind, list[0].Kind.relations()
	var ids, milestoneIDs, userIDs []int64
	for _, id := range others {
		if id != nil {
			userIDs = append(userIDs, *id)
		}
	}
	for _, i := range list {
		ids, userIDs = append(ids, i.ID), append(userIDs, i.AuthorID)
		if i.ClosedByID != nil {
			userIDs = append(userIDs, *i.ClosedByID)
		}
		if i.MilestoneID != nil && !slices.Contains(milestoneIDs, *i.MilestoneID) {
			milestoneIDs = append(milestoneIDs, *i.MilestoneID)
		}
	}
	labels, err := findLabelsOf(ctx, s.DB, kind, ids)
	if err != nil {
		return nil, fmt.Errorf("labels of %ss: %w", kind, err)
	}
	milestones, err := findMilestones(ctx, s.DB, milestoneIDs)
	if err != nil {
		return nil, fmt.Errorf("milestones of %ss: %w", kind, err)
	}
	related := map[Relation]map[int64][]int64{}
	for _, as := range roles {
		if related[as], err = findRelated(ctx, s.DB, kind, as, ids); err != nil {
			return nil, fmt.Errorf("%s of %ss: %w", as, kind, err)
		}
		for _, userList := range related[as] {
			userIDs = append(userIDs, userList...)
		}
	}
	slices.Sort(userIDs)
	users, err := s.Users.FindAll(ctx, slices.Compact(userIDs))
	if err != nil {
		return nil, fmt.Errorf("users of %ss: %w", kind, err)
	}
	known := func(ids []int64) []*user.User {
		found := []*user.User{}
		for _, id := range ids {
			if u := users[id]; u != nil {
				found = append(found, u)
			}
		}
		return found
	}
	for _, i := range list {
		i.Labels, i.Author = labels[i.ID], users[i.AuthorID]
		if i.ClosedByID != nil {
			i.ClosedBy = users[*i.ClosedByID]
		}
		if i.MilestoneID != nil {
			i.Milestone = milestones[*i.MilestoneID]
		}
		i.Assignees, i.Reviewers = known(related[Assignees][i.ID]), known(related[Reviewers][i.ID])
	}
	return users, nil
}

// Related returns the IDs of the assignees or reviewers of a target.
func Related(ctx context.Context, q db.Q, of Target, as Relation) ([]int64, error) {
	if !slices.Contains(of.Kind.relations(), as) {
		return nil, nil
	}
	found, err := findRelated(ctx, q, of.Kind, as, []int64{of.ID})
	return found[of.ID], err
}

// LabelsOf returns the labels of a target, by name.
func LabelsOf(ctx context.Context, q db.Q, of Target) ([]*Label, error) {
	found, err := findLabelsOf(ctx, q, of.Kind, []int64{of.ID})
	return found[of.ID], err
}

// FillSubscribed reads whether the actor is subscribed.
func (s *Service) FillSubscribed(ctx context.Context, by actor.Actor, i *Issuable) error {
	found, err := findSubscribed(ctx, s.DB, i.Kind, []int64{i.ID}, by.ID)
	if err != nil {
		return fmt.Errorf("subscription of %s %d: %w", i.Kind, i.ID, err)
	}
	i.Subscribed = found[i.ID]
	return nil
}

// ParticipantsOf returns the author, the assignees, the reviewers and the authors
// of notes. Authors of internal notes are included if insider is set.
func (s *Service) ParticipantsOf(ctx context.Context, i *Issuable, insider bool) ([]*user.User, error) {
	authors, err := findNoteAuthors(ctx, s.DB, i.Target(), insider)
	if err != nil {
		return nil, fmt.Errorf("participants of %s %d: %w", i.Kind, i.ID, err)
	}
	ids := []int64{i.AuthorID}
	for _, u := range slices.Concat(i.Assignees, i.Reviewers) {
		ids = append(ids, u.ID)
	}
	ids = append(ids, authors...)
	users, err := s.Users.FindAll(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("participants of %s %d: %w", i.Kind, i.ID, err)
	}
	list, added := []*user.User{}, map[int64]bool{}
	for _, id := range ids {
		if u := users[id]; u != nil && !added[id] {
			list, added[id] = append(list, u), true
		}
	}
	return list, nil
}

// NotifyOf queues the notification of a change.
func (s *Service) NotifyOf(ctx context.Context, tx *db.Tx, userID int64, i *Issuable, e notify.EventType, d notify.Details) error {
	return s.Notify.Notify(ctx, tx, notify.Event{
		Type: e, TargetKind: string(i.Kind), TargetID: i.ID, ProjectID: i.ProjectID, AuthorID: userID, Details: d,
	})
}

// Record adds an event to the activity feed.
func (s *Service) Record(ctx context.Context, tx *db.Tx, userID int64, i *Issuable, readers activity.Audience, done activity.Action) error {
	return activity.Record(ctx, tx, activity.Event{
		ProjectID: &i.ProjectID, AuthorID: userID, Action: done, Audience: readers, Subject: i.Subject(),
		TargetType: string(i.Kind), TargetID: &i.ID, TargetIID: &i.IID, TargetTitle: i.Title, CreatedAt: s.Now(),
	})
}

// RecordDeletion adds an audit event for a deletion.
func (s *Service) RecordDeletion(ctx context.Context, tx *db.Tx, by actor.Actor, proj *project.Project, i *Issuable) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: "delete_" + i.Kind.table(), Entity: audit.Entity{Type: audit.ProjectEntity, ID: proj.ID, Path: proj.FullPath},
		Target: audit.Target{Type: string(i.Kind), ID: i.ID, Details: i.Title}, Details: audit.Details{Remove: i.Kind.table()},
	})
}

// OpenThreads counts the unresolved threads of targets.
func (s *Service) OpenThreads(ctx context.Context, kind Kind, ids ...int64) (map[int64]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := countOpenThreads(ctx, s.DB, kind, ids)
	if err != nil {
		return nil, fmt.Errorf("count open threads: %w", err)
	}
	return found, nil
}
