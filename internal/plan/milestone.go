package plan

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/project"
)

// Milestone is a milestone of a project or group.
type Milestone struct {
	ID          int64
	IID         int64  // number in the project or group
	ProjectID   *int64 // exactly one of ProjectID and GroupID is set
	GroupID     *int64
	Title       string
	Description string
	State       MilestoneState
	StartDate   string // YYYY-MM-DD, or empty
	DueDate     string
	CreatedAt   time.Time
	UpdatedAt   time.Time

	Path string // full path of the project or group
}

// MilestoneState is the state of a milestone: active or closed.
type MilestoneState string

// The states of a milestone.
const (
	ActiveMilestone MilestoneState = "active"
	ClosedMilestone MilestoneState = "closed"
)

// Expired reports whether the due date has passed.
func (m *Milestone) Expired(now time.Time) bool {
	return m.DueDate != "" && m.DueDate < now.UTC().Format(time.DateOnly)
}

// MilestoneFilter selects milestones. Zero values select all of the project or
// group itself.
type MilestoneFilter struct {
	IIDs        []int64
	State       MilestoneState
	Title       string
	Search      string
	SearchTitle string
	Containing  string // a date between the start date and the due date
	Ancestors   bool
	Descendants bool // groups only: include subgroups and projects that the actor can see
	Live        bool // exclude archived projects
	Oldest      bool // sort by age, oldest first
	UpdatedAt   [2]*time.Time
}

// milestonesAt checks access to the milestones of a project or group. Reading
// requires read access to issues or merge requests; a level above NoAccess is
// required to change them.
func (s *Service) milestonesAt(ctx context.Context, by actor.Actor, at project.Place, level project.Level) (place, error) {
	in, err := s.at(ctx, by, at, project.NoAccess)
	if err != nil {
		return in, err
	}
	if in.project != nil && !in.project.MayRead(by, project.IssuePart) && !in.project.MayRead(by, project.MergePart) {
		return in, errs.NotFound("")
	}
	if level == project.NoAccess {
		return in, nil
	}
	return s.at(ctx, by, at, level)
}

// Milestones lists the milestones of a project or group. Requires read access to
// issues or merge requests. NotFound.
func (s *Service) Milestones(ctx context.Context, by actor.Actor, at project.Place, f MilestoneFilter, p db.Paging) (db.Page[*Milestone], error) {
	in, err := s.milestonesAt(ctx, by, at, project.NoAccess)
	if err != nil {
		return db.Page[*Milestone]{}, err
	}
	var seen seenBelow
	if f.Descendants {
		seen.projects, seen.projectArgs = s.Projects.Readable(by, project.IssuePart)
		seen.groups, seen.groupArgs = s.Projects.VisibleGroups(by)
	}
	page, err := listMilestones(ctx, s.DB, in, f, seen, p)
	if err != nil {
		return page, fmt.Errorf("list milestones: %w", err)
	}
	return page, nil
}

// AllMilestones lists the milestones of all projects whose issues or merge
// requests the actor can read.
func (s *Service) AllMilestones(ctx context.Context, by actor.Actor, f MilestoneFilter, p db.Paging) (db.Page[*Milestone], error) {
	issues, args := s.Projects.Readable(by, project.IssuePart)
	requests, requestArgs := s.Projects.Readable(by, project.MergePart)
	seen := seenBelow{projects: `((` + issues + `) OR (` + requests + `))`, projectArgs: append(args, requestArgs...)}
	page, err := listMilestones(ctx, s.DB, place{}, f, seen, p)
	if err != nil {
		return page, fmt.Errorf("list milestones: %w", err)
	}
	return page, nil
}

// Milestone returns a milestone of the project or group by ID, but not inherited
// ones. Requires read access to issues or merge requests. NotFound.
func (s *Service) Milestone(ctx context.Context, by actor.Actor, at project.Place, id int64) (*Milestone, error) {
	in, err := s.milestonesAt(ctx, by, at, project.NoAccess)
	if err != nil {
		return nil, err
	}
	m, err := findMilestone(ctx, s.DB, in, id)
	return m, db.NotFound(err, "Milestone")
}

// MilestoneFields are changes to a milestone. A nil field keeps the current value
// or the default.
type MilestoneFields struct {
	Title       *string
	Description *string
	StartDate   *string // empty removes the date
	DueDate     *string
	Event       string // "activate" or "close"
}

// CreateMilestone creates a milestone. Requires Planner. Invalid.
func (s *Service) CreateMilestone(ctx context.Context, by actor.Actor, at project.Place, f MilestoneFields) (*Milestone, error) {
	in, err := s.milestonesAt(ctx, by, at, project.Planner)
	if err != nil {
		return nil, err
	}
	now := s.Now()
	m := &Milestone{State: ActiveMilestone, CreatedAt: now, UpdatedAt: now, Path: in.path()}
	m.ProjectID, m.GroupID = in.ids()
	if err := m.apply(f); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := checkTitle(ctx, tx, in, m); err != nil {
			return err
		}
		if m.IID, err = in.nextNumber(ctx, tx, "milestone"); err != nil {
			return err
		}
		if err := insertMilestone(ctx, tx, m); err != nil {
			return err
		}
		return s.recordMilestone(ctx, tx, by, m, activity.Created)
	})
	if err != nil {
		return nil, fmt.Errorf("create milestone: %w", err)
	}
	return m, nil
}

// path returns the full path of the project or group.
func (in place) path() string {
	if in.project != nil {
		return in.project.FullPath
	}
	return in.group.FullPath
}

func (m *Milestone) apply(f MilestoneFields) error {
	patch.Set(&m.Title, f.Title)
	m.Title = strings.TrimSpace(m.Title)
	patch.Set(&m.Description, f.Description)
	patch.Set(&m.StartDate, f.StartDate)
	patch.Set(&m.DueDate, f.DueDate)
	wrong := errs.Fields{}
	switch {
	case m.Title == "":
		wrong.Set("title", "can't be blank")
	case utf8.RuneCountInString(m.Title) > 255:
		wrong.Set("title", "is too long (maximum is 255 characters)")
	}
	if m.StartDate != "" && m.DueDate != "" && m.StartDate > m.DueDate {
		wrong.Set("due_date", "must be greater than start date")
	}
	if len(m.Description) > MaxText {
		wrong.Set("description", "is too long (maximum is 1048576 characters)")
	}
	switch f.Event {
	case "close":
		m.State = ClosedMilestone
	case "activate":
		m.State = ActiveMilestone
	}
	return wrong.Err()
}

// UpdateMilestone changes a milestone of the project or group. Requires Planner.
// NotFound; Invalid.
func (s *Service) UpdateMilestone(ctx context.Context, by actor.Actor, at project.Place, id int64, f MilestoneFields) (*Milestone, error) {
	in, err := s.milestonesAt(ctx, by, at, project.Planner)
	if err != nil {
		return nil, err
	}
	var m *Milestone
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if m, err = lockMilestone(ctx, tx, in, id); err != nil {
			return err
		}
		was := *m
		if err := m.apply(f); err != nil {
			return err
		}
		if err := checkTitle(ctx, tx, in, m); err != nil {
			return err
		}
		m.UpdatedAt = s.Now()
		if err := saveMilestone(ctx, tx, m); err != nil {
			return err
		}
		if m.Title != was.Title {
			if err := activity.Retitle(ctx, tx, m.subject(), m.Title); err != nil {
				return err
			}
		}
		switch {
		case m.State == was.State:
			return nil
		case m.State == ClosedMilestone:
			return s.recordMilestone(ctx, tx, by, m, activity.Closed)
		}
		return s.recordMilestone(ctx, tx, by, m, activity.Reopened)
	})
	if err != nil {
		return nil, fmt.Errorf("update milestone %d: %w", id, err)
	}
	return m, nil
}

// DeleteMilestone deletes a milestone of the project or group. Requires Planner.
// NotFound; Precondition if it was modified since.
func (s *Service) DeleteMilestone(ctx context.Context, by actor.Actor, at project.Place, id int64, unmodifiedSince *time.Time) error {
	in, err := s.milestonesAt(ctx, by, at, project.Planner)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		m, err := lockMilestone(ctx, tx, in, id)
		if err != nil {
			return err
		}
		if err := errs.ChangedSince(m.UpdatedAt, unmodifiedSince); err != nil {
			return err
		}
		if err := activity.Forget(ctx, tx, m.subject()); err != nil {
			return err
		}
		if err := deleteMilestone(ctx, tx, m.ID); err != nil {
			return err
		}
		return s.recordMilestone(ctx, tx, by, m, activity.Destroyed)
	})
	if err != nil {
		return fmt.Errorf("delete milestone %d: %w", id, err)
	}
	return nil
}

// PromoteMilestone turns a project milestone into a group milestone, and merges
// milestones of the same title in all projects of the group into it. Requires
// Planner in the group. NotFound; Invalid if the project is not in a group, or the
// title is taken.
func (s *Service) PromoteMilestone(ctx context.Context, by actor.Actor, ref project.Ref, id int64) (*Milestone, error) {
	in, err := s.milestonesAt(ctx, by, project.Place{Ref: ref}, project.Planner)
	if err != nil {
		return nil, err
	}
	m, err := findMilestone(ctx, s.DB, in, id)
	if err != nil {
		return nil, db.NotFound(err, "Milestone")
	}
	group, err := s.groupOf(ctx, by, in)
	if err != nil {
		return nil, err
	}
	to := place{group: group}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if m, err = lockMilestone(ctx, tx, in, id); err != nil {
			return err
		}
		m.ProjectID, m.GroupID, m.UpdatedAt, m.Path = nil, &group.ID, s.Now(), group.FullPath
		if m.IID, err = to.nextNumber(ctx, tx, "milestone"); err != nil {
			return err
		}
		if err := checkTitle(ctx, tx, to, m); err != nil {
			return err
		}
		merged, err := findMilestoneNamesakes(ctx, tx, m)
		if err != nil {
			return err
		}
		if err := s.Events.MilestonesMerged.Publish(ctx, tx, Merging{From: merged, Into: m.ID}); err != nil {
			return err
		}
		gone, err := promoteMilestone(ctx, tx, m)
		if err != nil {
			return err
		}
		// Events belong to projects, but the milestone no longer does.
		return Forget(ctx, tx, MilestoneKind, append(gone, m.ID)...)
	})
	if err != nil {
		return nil, fmt.Errorf("promote milestone %d: %w", id, err)
	}
	return m, nil
}

func (m *Milestone) subject() activity.Subject {
	return activity.Subject{Type: string(MilestoneKind), ID: m.ID}
}

// recordMilestone publishes a change to a milestone and, for a project milestone,
// adds an event to the activity feed.
func (s *Service) recordMilestone(ctx context.Context, tx *db.Tx, by actor.Actor, m *Milestone, done activity.Action) error {
	if err := s.Events.MilestoneSaved.Publish(ctx, tx, MilestoneSaving{Milestone: m, Done: done, By: by.ID}); err != nil {
		return err
	}
	if m.ProjectID == nil {
		return nil
	}
	e := activity.Event{
		ProjectID: m.ProjectID, AuthorID: by.ID, Action: done, Audience: activity.IssueReaders, Subject: m.subject(),
		TargetType: string(MilestoneKind), TargetID: &m.ID, TargetIID: &m.IID, TargetTitle: m.Title, CreatedAt: s.Now(),
	}
	return activity.Record(ctx, tx, e)
}
