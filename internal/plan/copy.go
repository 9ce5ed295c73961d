package plan

import (
	"context"
	"fmt"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan/color"
	"svc/internal/project"
)

// The functions in this file read and write the labels and milestones of a group or
// project for exports and imports. They do not check permissions: the caller requires
// Owner of a group or Maintainer of a project for exports, and imports into a draft.

// Sizes are the numbers of labels and milestones.
type Sizes struct{ Labels, Milestones int64 }

// GroupSizes counts the objects of a group and its subgroups.
func (s *Service) GroupSizes(ctx context.Context, g *project.Namespace) (Sizes, error) {
	n, err := countGroupObjects(ctx, s.DB, g.ID)
	if err != nil {
		return n, fmt.Errorf("count objects of group %d: %w", g.ID, err)
	}
	return n, nil
}

// EachLabel calls f for each label of a group, without inherited ones, in order of
// creation.
func (s *Service) EachLabel(ctx context.Context, g *project.Namespace, f func(*Label) error) error {
	if err := eachGroupLabel(ctx, s.DB, g.ID, f); err != nil {
		return fmt.Errorf("labels of group %d: %w", g.ID, err)
	}
	return nil
}

// EachMilestone calls f for each milestone of a group, without inherited ones, by
// number.
func (s *Service) EachMilestone(ctx context.Context, g *project.Namespace, f func(*Milestone) error) error {
	if err := eachGroupMilestone(ctx, s.DB, g.ID, f); err != nil {
		return fmt.Errorf("milestones of group %d: %w", g.ID, err)
	}
	return nil
}

// PutLabels inserts labels into a draft. Invalid; Conflict.
func (s *Service) PutLabels(ctx context.Context, tx *db.Tx, d *project.Draft, list []*Label) error {
	for _, l := range list {
		if l.Color == "" {
			l.Color = color.Default
		}
		if err := l.apply(LabelFields{Color: &l.Color}); err != nil {
			return err
		}
		l.ProjectID, l.GroupID = owner(d)
		if err := insertLabel(ctx, tx, l); err != nil {
			return err
		}
	}
	return nil
}

// owner returns the values of the columns project_id and namespace_id of objects in
// a draft. One of them is NULL.
func owner(d *project.Draft) (projectID, groupID *int64) {
	if d.Project {
		return &d.ID, nil
	}
	return nil, &d.ID
}

// PutMilestones inserts milestones with their numbers into a draft. New milestones of
// the group or project are numbered after the highest. Invalid; Conflict.
func (s *Service) PutMilestones(ctx context.Context, tx *db.Tx, d *project.Draft, list []*Milestone) error {
	var highest int64
	for _, m := range list {
		if err := m.apply(MilestoneFields{}); err != nil {
			return err
		}
		if err := m.checkCopy(); err != nil {
			return err
		}
		m.ProjectID, m.GroupID = owner(d)
		if err := insertMilestone(ctx, tx, m); err != nil {
			if db.IsUnique(err, "milestones_namespace_id_iid") || db.IsUnique(err, "milestones_project_id_iid") {
				return errs.InvalidField("iid", "is that of another milestone")
			}
			return err
		}
		highest = max(highest, m.IID)
	}
	return raiseNumber(ctx, tx, d, "milestone", highest)
}

// maxNumber is the highest number of an imported milestone. It leaves room for new
// ones.
const maxNumber = 1 << 40

// checkCopy validates the fields of an imported milestone that are generated for new
// milestones.
func (m *Milestone) checkCopy() error {
	wrong := errs.Fields{}
	if m.IID < 1 || m.IID > maxNumber {
		wrong.Set("iid", "is invalid")
	}
	if m.State != ActiveMilestone && m.State != ClosedMilestone {
		wrong.Set("state", "is not included in the list")
	}
	for name, day := range map[string]string{"start_date": m.StartDate, "due_date": m.DueDate} {
		if _, err := time.Parse(time.DateOnly, day); err != nil && day != "" {
			wrong.Set(name, "is not a date")
		}
	}
	return wrong.Err()
}

// FindLabel returns the ID of the label of a group with this name, or 0. If above is
// set, labels of ancestor groups are included and the nearest one is returned.
func (s *Service) FindLabel(ctx context.Context, q db.Q, groupID int64, name string, above bool) (int64, error) {
	return findNamed(ctx, q, "labels", "name", groupID, name, above)
}

// FindMilestone returns the ID of the milestone of a group with this title, or 0.
// above is as in FindLabel.
func (s *Service) FindMilestone(ctx context.Context, q db.Q, groupID int64, title string, above bool) (int64, error) {
	return findNamed(ctx, q, "milestones", "title", groupID, title, above)
}
