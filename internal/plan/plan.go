// Package plan implements issues, labels and milestones, and the notes, reactions,
// subscriptions and quick actions of issues and merge requests.
package plan

import (
	"context"
	"slices"
	"time"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/event"
	"svc/internal/markup"
	"svc/internal/notify"
	"svc/internal/plan/listing"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/repo"
	"svc/internal/user"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Queue    *queue.Queue
	Users    *user.Service
	Projects *project.Service
	Activity *activity.Service
	Repos    *repo.Service
	Notify   *notify.Service
	Markup   *markup.Renderer
	Now      func() time.Time
}

// Service implements the operations on issues, labels, milestones and notes.
type Service struct {
	Deps
	Events Events

	referrers map[markup.Kind]Referrer
	commands  map[Kind]map[string]*Command // by name and alias

	copyUploads CopyUploads
}

// Events are the events of issues and merge requests.
type Events struct {
	// Planned is published when a user changes the labels, the milestone, the
	// assignees or the reviewers of an issue or merge request.
	Planned event.Event[Act]
	// IssueSaved is published when an issue is created, and when its fields or its
	// state change.
	IssueSaved event.Event[IssueSaving]
	// NoteSaved is published when a comment is created or changed. It is not published
	// for system notes.
	NoteSaved event.Event[NoteSaving]
	// Awarded is published when a user adds or removes a reaction.
	Awarded event.Event[Awarding]
	// MilestoneSaved is published when a milestone is created, closed, reopened or
	// deleted.
	MilestoneSaved event.Event[MilestoneSaving]
	// LabelsMerged is published when labels of projects are merged into a group label,
	// before they are deleted.
	LabelsMerged event.Event[Merging]
	// MilestonesMerged is published when milestones of projects are merged into a group
	// milestone, before they are deleted.
	MilestonesMerged event.Event[Merging]
}

// IssueSaving is a new issue or a change to one.
type IssueSaving struct {
	Issue *Issue
	Was   *Issue // before the change; nil for a new issue
	By    int64  // user ID; 0 for the system
}

// NoteSaving is a new comment or a change to one.
type NoteSaving struct {
	Note   *Note
	Update bool
	By     int64
}

// Awarding is a reaction that a user adds or removes.
type Awarding struct {
	Award     *Award
	ProjectID int64
	On        Noteable // the target of the reaction, or of the note that was reacted to
	Removed   bool
}

// MilestoneSaving is a change to a milestone.
type MilestoneSaving struct {
	Milestone *Milestone
	Done      activity.Action
	By        int64
}

// Merging is a set of labels or milestones that are merged into one.
type Merging struct {
	From []int64 // may be empty
	Into int64
}

// Replanned describes the changes to the labels and users of an issue or merge
// request.
type Replanned struct {
	LabelsAdded, LabelsRemoved []*Label
	Appointed                  []Appointment
}

// Act is a change by a user to the planning fields of an issue or merge request.
type Act struct {
	On Target
	By int64 // user ID; 0 for the system
}

// New returns the service and registers its background jobs.
func New(d Deps) *Service {
	s := &Service{Deps: d, referrers: map[markup.Kind]Referrer{}, commands: map[Kind]map[string]*Command{}}
	for _, c := range commandTable() {
		if c.do == nil && c.substitute == nil && !c.text {
			continue // OnCommand registers it
		}
		for _, kind := range c.on {
			s.addCommand(kind, c)
		}
	}
	for _, kind := range []Kind{IssueKind, MergeKind} {
		s.OnCommand(kind, "react", s.reactCommand)
	}
	d.Queue.Every("issues_due", time.Hour, s.NotifyDue)
	return s
}

// place is a project or a group that owns labels and milestones. The zero
// value stands for all projects.
type place struct {
	project *project.Project
	group   *project.Namespace
}

// ids returns the values of the columns project_id and namespace_id of objects in
// the place. One of them is NULL.
func (in place) ids() (projectID, namespaceID *int64) {
	if in.project != nil {
		return &in.project.ID, nil
	}
	return nil, &in.group.ID
}

// area returns the area that lists of the place search.
func (in place) area() (a listing.Area) {
	if in.project != nil {
		a.Project = in.project.ID
	}
	if in.group != nil {
		a.Group = in.group.ID
	}
	return a
}

// column returns the column that refers to the place, and its value.
func (in place) column() (name string, id int64) {
	if in.project != nil {
		return "project_id", in.project.ID
	}
	return "namespace_id", in.group.ID
}

// tree returns the namespace whose ancestors objects are inherited from.
func (in place) tree() int64 {
	if in.project != nil {
		return in.project.NamespaceID
	}
	return in.group.ID
}

// at returns a project or group in which the actor has the level. A level above
// NoAccess is a request for a change, which an archived project refuses.
func (s *Service) at(ctx context.Context, by actor.Actor, at project.Place, level project.Level) (place, error) {
	if at.Group {
		g, err := s.Projects.RequireGroup(ctx, by, at.Ref, level)
		return place{group: g}, err
	}
	p, err := s.Projects.Require(ctx, by, at.Ref, project.NoAccess)
	if err == nil && level > project.NoAccess {
		err = requireLevel(by, p, level)
	}
	return place{project: p}, err
}

// today returns the current date in UTC, which due dates are compared with.
func (s *Service) today() string { return s.Now().UTC().Format(time.DateOnly) }

// nextNumber returns the next number of a kind of object in the place.
func (in place) nextNumber(ctx context.Context, tx *db.Tx, kind string) (int64, error) {
	if in.project != nil {
		return project.NextNumber(ctx, tx, in.project.ID, kind)
	}
	return nextGroupNumber(ctx, tx, in.group.ID, kind)
}

// UserDeleted reassigns the issues and notes of a deleted user to the ghost user
// and deletes their reactions. A hard deletion deletes the issues and notes as
// well, including notes of others on these issues.
func UserDeleted(ctx context.Context, tx *db.Tx, d user.Deletion) error {
	if err := deleteAwardsBy(ctx, tx, d.UserID); err != nil {
		return err
	}
	if !d.Hard {
		return changeAuthor(ctx, tx, d.UserID, d.GhostID)
	}
	// Issues are deleted first, so that a concurrent comment on them fails.
	issueIDs, err := deleteIssuesBy(ctx, tx, d.UserID)
	if err != nil {
		return err
	}
	if err := Forget(ctx, tx, IssueKind, issueIDs...); err != nil {
		return err
	}
	return deleteNotesBy(ctx, tx, d.UserID)
}

// ProjectsDeleted deletes the rows of deleted projects that have no foreign key to
// the project.
func (s *Service) ProjectsDeleted(ctx context.Context, tx *db.Tx, gone []project.Deleted) error {
	for _, p := range gone {
		if err := deleteProjectSubscriptions(ctx, tx, p.ID); err != nil {
			return err
		}
	}
	return nil
}

// Forget deletes the rows that refer to deleted issues or merge requests without a
// foreign key: events, notifications, notes, cross-references, timelogs, resource
// events and subscriptions.
func Forget(ctx context.Context, tx *db.Tx, kind Kind, ids ...int64) error {
	const batch = 500
	for part := range slices.Chunk(ids, batch) {
		if err := activity.ForgetAll(ctx, tx, string(kind), part); err != nil {
			return err
		}
		if err := notify.DeleteEvents(ctx, tx, string(kind), part); err != nil {
			return err
		}
		if err := deleteNotesOf(ctx, tx, kind, part); err != nil {
			return err
		}
		if err := deleteCrossReferences(ctx, tx, kind, part); err != nil {
			return err
		}
		if err := deleteTimelogs(ctx, tx, kind, part); err != nil {
			return err
		}
		if err := deleteResourceEvents(ctx, tx, kind, part); err != nil {
			return err
		}
		if err := deleteSubscriptions(ctx, tx, kind, part); err != nil {
			return err
		}
	}
	return nil
}
