package plan

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/plan/color"
	"svc/internal/project"
)

// Label is a label of a project or group.
type Label struct {
	ID          int64
	ProjectID   *int64 // exactly one of ProjectID and GroupID is set
	GroupID     *int64
	Name        string
	Color       string // #rrggbb
	Description string
	CreatedAt   time.Time
	UpdatedAt   time.Time

	// In the requested project or group.
	Priority     *int64
	Subscribed   bool
	OpenIssues   int64 // only if requested; counts only issues that the actor can see
	ClosedIssues int64
	OpenRequests int64 // open merge requests
}

// TextColor returns a text color that is readable on the color of the label.
func (l *Label) TextColor() string { return color.TextOn(l.Color) }

// LabelFilter selects labels. Zero values select those of the project or group
// itself.
type LabelFilter struct {
	Search      string
	Ancestors   bool // include ancestor groups
	Descendants bool // include subgroups that the actor can see
	Counts      bool
}

// Labels lists the labels of a project or group that the actor can see. NotFound.
func (s *Service) Labels(ctx context.Context, by actor.Actor, at project.Place, f LabelFilter, p db.Paging) (db.Page[*Label], error) {
	in, err := s.at(ctx, by, at, project.NoAccess)
	if err != nil {
		return db.Page[*Label]{}, err
	}
	visible, args := s.Projects.VisibleGroups(by)
	page, err := listLabels(ctx, s.DB, in, f, visible, args, p)
	if err != nil {
		return page, fmt.Errorf("list labels: %w", err)
	}
	return page, s.fillLabels(ctx, by, in, f.Counts, page.Items...)
}

// fillLabels reads the subscriptions and, optionally, the issue counts of labels.
func (s *Service) fillLabels(ctx context.Context, by actor.Actor, in place, counts bool, list ...*Label) error {
	ids := make([]int64, len(list))
	byID := map[int64]*Label{}
	for i, l := range list {
		ids[i], byID[l.ID] = l.ID, l
	}
	subscribed, err := findSubscribed(ctx, s.DB, LabelKind, ids, by.ID)
	if err != nil {
		return fmt.Errorf("subscriptions of labels: %w", err)
	}
	for _, l := range list {
		l.Subscribed = subscribed[l.ID]
	}
	if !counts || len(list) == 0 {
		return nil
	}
	if err := countByLabel(ctx, s.DB, s.issuesIn(by, in), s.requestsIn(by, in), byID); err != nil {
		return fmt.Errorf("count what has labels: %w", err)
	}
	return nil
}

// Label returns a label by ID or name. Labels of ancestor groups are included.
// NotFound.
func (s *Service) Label(ctx context.Context, by actor.Actor, at project.Place, ref string) (*Label, error) {
	in, err := s.at(ctx, by, at, project.NoAccess)
	if err != nil {
		return nil, err
	}
	l, err := findLabel(ctx, s.DB, in, ref, true)
	if err != nil {
		return nil, db.NotFound(err, "Label")
	}
	return l, s.fillLabels(ctx, by, in, true, l)
}

// LabelFields are changes to a label. A nil field keeps the current value or the
// default.
type LabelFields struct {
	Name        *string
	Color       *string
	Description *string
	// Priority is the priority in the project. SetPriority with nil removes it.
	SetPriority bool
	Priority    *int64
}

// CreateLabel creates a label. Requires Planner. Conflict if the project or group,
// or an ancestor group, has a label of this name; Invalid.
func (s *Service) CreateLabel(ctx context.Context, by actor.Actor, at project.Place, f LabelFields) (*Label, error) {
	in, err := s.at(ctx, by, at, project.Planner)
	if err != nil {
		return nil, err
	}
	now := s.Now()
	l := &Label{CreatedAt: now, UpdatedAt: now}
	l.ProjectID, l.GroupID = in.ids()
	if err := l.apply(f); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if taken, err := hasLabel(ctx, tx, in, l.Name, 0); err != nil || taken {
			return labelExists(err)
		}
		if err := insertLabel(ctx, tx, l); err != nil {
			return err
		}
		return savePriority(ctx, tx, in, l, f)
	})
	if err != nil {
		return nil, fmt.Errorf("create label: %w", err)
	}
	return l, s.fillLabels(ctx, by, in, true, l)
}

func labelExists(err error) error {
	if err != nil {
		return err
	}
	return errs.Conflict("Label already exists")
}

// apply sets and validates the fields of a label.
func (l *Label) apply(f LabelFields) error {
	patch.Set(&l.Name, f.Name)
	l.Name = strings.TrimSpace(l.Name)
	patch.Set(&l.Description, f.Description)
	wrong := errs.Fields{}
	switch {
	case l.Name == "":
		wrong.Set("title", "can't be blank")
	case strings.Contains(l.Name, ","):
		wrong.Set("title", "is invalid")
	case utf8.RuneCountInString(l.Name) > 255:
		wrong.Set("title", "is too long (maximum is 255 characters)")
	}
	if utf8.RuneCountInString(l.Description) > 512*1024 {
		wrong.Set("description", "is too long")
	}
	if f.Color != nil {
		var ok bool
		if l.Color, ok = color.Parse(*f.Color); !ok {
			wrong.Set("color", "must be a valid color code")
		}
	}
	if f.Priority != nil && *f.Priority < 0 {
		wrong.Set("priority", "must be greater than or equal to 0")
	}
	return wrong.Err()
}

// UpdateLabel changes a label of the project or group. For an inherited label, a
// project can change only the priority. Requires Planner. NotFound; Conflict;
// Invalid.
func (s *Service) UpdateLabel(ctx context.Context, by actor.Actor, at project.Place, ref string, f LabelFields) (*Label, error) {
	in, err := s.at(ctx, by, at, project.Planner)
	if err != nil {
		return nil, err
	}
	onlyPriority := f.SetPriority && f.Name == nil && f.Color == nil && f.Description == nil
	var l *Label
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if l, err = findLabel(ctx, tx, in, ref, onlyPriority); err != nil {
			return db.NotFound(err, "Label")
		}
		if err := l.apply(f); err != nil {
			return err
		}
		if taken, err := hasLabel(ctx, tx, in, l.Name, l.ID); err != nil || taken {
			return labelExists(err)
		}
		l.UpdatedAt = s.Now()
		if err := saveLabel(ctx, tx, l); err != nil {
			return err
		}
		return savePriority(ctx, tx, in, l, f)
	})
	if err != nil {
		return nil, fmt.Errorf("update label: %w", err)
	}
	return l, s.fillLabels(ctx, by, in, true, l)
}

// DeleteLabel deletes a label of the project or group. Inherited labels are not
// found. Requires Planner. NotFound; Precondition if the label was modified since.
func (s *Service) DeleteLabel(ctx context.Context, by actor.Actor, at project.Place, ref string, unmodifiedSince *time.Time) error {
	in, err := s.at(ctx, by, at, project.Planner)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		l, err := findLabel(ctx, tx, in, ref, false)
		if err != nil {
			return db.NotFound(err, "Label")
		}
		if err := errs.ChangedSince(l.UpdatedAt, unmodifiedSince); err != nil {
			return err
		}
		if err := deleteSubscriptions(ctx, tx, LabelKind, []int64{l.ID}); err != nil {
			return err
		}
		return deleteLabel(ctx, tx, l.ID)
	})
	if err != nil {
		return fmt.Errorf("delete label: %w", err)
	}
	return nil
}

// PromoteLabel turns a project label into a group label, and merges labels of the
// same name in all projects of the group into it. Requires Planner in the group.
// NotFound; Invalid if the project is not in a group.
func (s *Service) PromoteLabel(ctx context.Context, by actor.Actor, ref project.Ref, label string) (*Label, error) {
	in, err := s.at(ctx, by, project.Place{Ref: ref}, project.Planner)
	if err != nil {
		return nil, err
	}
	l, err := findLabel(ctx, s.DB, in, label, false)
	if err != nil {
		return nil, db.NotFound(err, "Label")
	}
	group, err := s.groupOf(ctx, by, in)
	if err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if l, err = findLabel(ctx, tx, in, label, false); err != nil {
			return db.NotFound(err, "Label")
		}
		if taken, err := hasLabel(ctx, tx, place{group: group}, l.Name, l.ID); err != nil || taken {
			return labelExists(err)
		}
		merged, err := findNamesakes(ctx, tx, l, group.ID)
		if err != nil {
			return err
		}
		if err := s.Events.LabelsMerged.Publish(ctx, tx, Merging{From: merged, Into: l.ID}); err != nil {
			return err
		}
		return promoteLabel(ctx, tx, l, group.ID, s.Now())
	})
	if err != nil {
		return nil, fmt.Errorf("promote label: %w", err)
	}
	return l, s.fillLabels(ctx, by, place{group: group}, false, l)
}

// groupOf returns the group of a project. Requires Planner in the group. Invalid
// if the project is not in a group.
func (s *Service) groupOf(ctx context.Context, by actor.Actor, in place) (*project.Namespace, error) {
	if in.project.Namespace.Kind != project.GroupNamespace {
		return nil, errs.Invalid("The project does not belong to a group")
	}
	return s.Projects.RequireGroup(ctx, by, project.RefTo(in.project.NamespaceID), project.Planner)
}

// SubscribeLabel subscribes the actor to a label or unsubscribes them. changed is
// false if there was nothing to change. NotFound.
func (s *Service) SubscribeLabel(ctx context.Context, by actor.Actor, at project.Place, ref string, subscribe bool) (l *Label, changed bool, err error) {
	if l, err = s.Label(ctx, by, at, ref); err != nil {
		return nil, false, err
	}
	if changed, err = s.Subscribe(ctx, by, Target{LabelKind, l.ID}, subscribe); err == nil {
		l.Subscribed = subscribe
	}
	return l, changed, err
}

// LabelsByID returns the labels that exist, for features that store their IDs. The
// caller checks permissions.
func (s *Service) LabelsByID(ctx context.Context, ids []int64) (map[int64]*Label, error) {
	found, err := findLabels(ctx, s.DB, ids)
	if err != nil {
		return nil, fmt.Errorf("find labels: %w", err)
	}
	return found, nil
}

// LabelsNamed returns the labels of an owner or its ancestor groups with these names, by
// name. The caller checks permissions.
func (s *Service) LabelsNamed(ctx context.Context, o Owner, names []string) (map[string]*Label, error) {
	return findLabelsNamed(ctx, s.DB, o.place(), names)
}

// UsableLabel reports whether a label belongs to an owner or an ancestor group. The
// caller checks permissions.
func (s *Service) UsableLabel(ctx context.Context, o Owner, id int64) (bool, error) {
	found, err := findUsableLabels(ctx, s.DB, o.place(), []int64{id})
	if err != nil {
		return false, fmt.Errorf("find label %d: %w", id, err)
	}
	return found[id] != nil, nil
}
