package plan

import (
	"context"
	"fmt"

	"svc/internal/db"
	"svc/internal/project"
)

// Transferred replaces the labels and milestones that a project or group has used and
// that belong to groups no longer above it. Otherwise they would remain visible in the
// new place, could be changed by members of the old groups, and would be lost with
// these groups.
//
// Those of the same name in the new place are used. The others are copied into what was
// moved: into a group once for all its projects, so that its boards and lists keep
// working.
func (s *Service) Transferred(ctx context.Context, tx *db.Tx, t project.Transferred) error {
	if t.From == nil {
		return nil
	}
	m := moved{to: place{project: t.Project, group: t.Group}, from: *t.From}
	if err := s.transferLabels(ctx, tx, m); err != nil {
		return fmt.Errorf("transfer labels: %w", err)
	}
	if err := s.transferMilestones(ctx, tx, m); err != nil {
		return fmt.Errorf("transfer milestones: %w", err)
	}
	return nil
}

// moved is a project or group in its new place, and the ID of its previous namespace.
type moved struct {
	to   place
	from int64
}

func (s *Service) transferLabels(ctx context.Context, tx *db.Tx, m moved) error {
	list, err := m.lostLabels(ctx, tx)
	if err != nil || len(list) == 0 {
		return err
	}
	names := make([]string, len(list))
	for i, l := range list {
		names[i] = l.Name
	}
	found, err := findLabelsNamed(ctx, tx, m.to, names)
	if err != nil {
		return err
	}
	now := s.Now()
	pairs := make([]pair, len(list))
	for i, l := range list {
		if found[l.Name] == nil {
			made := &Label{Name: l.Name, Color: l.Color, Description: l.Description, CreatedAt: now, UpdatedAt: now}
			made.ProjectID, made.GroupID = m.to.ids()
			if err := insertLabel(ctx, tx, made); err != nil {
				return err
			}
			found[l.Name] = made
		}
		pairs[i] = pair{l.ID, found[l.Name].ID}
	}
	return m.replaceLabels(ctx, tx, pairs)
}

func (s *Service) transferMilestones(ctx context.Context, tx *db.Tx, m moved) error {
	list, err := m.lostMilestones(ctx, tx)
	if err != nil || len(list) == 0 {
		return err
	}
	now := s.Now()
	pairs := make([]pair, len(list))
	for i, old := range list {
		id, err := findMilestoneTitled(ctx, tx, m.to, old.Title)
		if err != nil {
			return err
		}
		if id == nil {
			made := *old
			made.CreatedAt, made.UpdatedAt = now, now
			made.ProjectID, made.GroupID = m.to.ids()
			if made.IID, err = m.to.nextNumber(ctx, tx, "milestone"); err != nil {
				return err
			}
			if err := insertMilestone(ctx, tx, &made); err != nil {
				return err
			}
			id = &made.ID
		}
		pairs[i] = pair{old.ID, *id}
	}
	return m.replaceMilestones(ctx, tx, pairs)
}
