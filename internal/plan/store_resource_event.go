package plan

import (
	"context"

	"svc/internal/db"
)

const resourceEventColumns = `e.id, e.kind, e.noteable_type, e.noteable_id, e.project_id, e.user_id, e.action, e.label_id, e.milestone_id, e.weight, e.created_at`

func scanResourceEvent(s db.Scanner) (*ResourceEvent, error) {
	var e ResourceEvent
	err := s.Scan(&e.ID, (*string)(&e.Kind), (*string)(&e.On.Kind), &e.On.ID, &e.ProjectID, &e.UserID, &e.Action, &e.LabelID, &e.MilestoneID, &e.Weight,
		db.Time(&e.CreatedAt))
	return &e, err
}

func listResourceEvents(ctx context.Context, d *db.DB, on Target, kind EventKind, p db.Paging) (db.Page[*ResourceEvent], error) {
	var w db.Where
	w.And(`e.noteable_type = ? AND e.noteable_id = ? AND e.kind = ?`, string(on.Kind), on.ID, string(kind))
	return db.List(ctx, d, db.Query[*ResourceEvent]{
		Columns: resourceEventColumns, From: "resource_events e", Where: w, Order: []db.Order{{Name: "e.id"}}, Scan: scanResourceEvent,
	}, p)
}

func findResourceEvent(ctx context.Context, q db.Q, on Target, kind EventKind, id int64) (*ResourceEvent, error) {
	return scanResourceEvent(q.QueryRowContext(ctx, `
		SELECT `+resourceEventColumns+` FROM resource_events e WHERE e.id = ? AND e.noteable_type = ? AND e.noteable_id = ? AND e.kind = ?`,
		id, string(on.Kind), on.ID, string(kind)))
}

func insertResourceEvent(ctx context.Context, tx *db.Tx, e *ResourceEvent) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO resource_events (kind, noteable_type, noteable_id, project_id, user_id, action, label_id, milestone_id, weight, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		string(e.Kind), string(e.On.Kind), e.On.ID, e.ProjectID, e.UserID, e.Action, e.LabelID, e.MilestoneID, e.Weight, e.CreatedAt)
	return err
}

func deleteResourceEvents(ctx context.Context, tx *db.Tx, kind Kind, ids []int64) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM resource_events WHERE noteable_type = ? AND noteable_id IN `+db.In(len(ids)), append([]any{string(kind)}, db.Any(ids)...)...)
	return err
}

// findUsableLabels returns the labels among ids that are available in a place, by
// ID.
func findUsableLabels(ctx context.Context, q db.Q, in place, ids []int64) (map[int64]*Label, error) {
	found := map[int64]*Label{}
	if len(ids) == 0 {
		return found, nil
	}
	cond, args := in.owns("l", true)
	list, err := db.All(ctx, q, scanLabel, `SELECT `+labelColumns+` FROM labels l`+labelJoin+` WHERE (`+cond+`) AND l.id IN `+db.In(len(ids)),
		append(append([]any{in.projectID()}, args...), db.Any(ids)...)...)
	for _, l := range list {
		found[l.ID] = l
	}
	return found, err
}

// findUsableMilestones returns the milestones among ids that are available in a
// place, by ID.
func findUsableMilestones(ctx context.Context, q db.Q, in place, ids []int64) (map[int64]*Milestone, error) {
	found := map[int64]*Milestone{}
	if len(ids) == 0 {
		return found, nil
	}
	cond, args := in.owns("m", true)
	list, err := db.All(ctx, q, scanMilestone, `SELECT `+milestoneColumns+` FROM `+milestoneTables+` WHERE (`+cond+`) AND m.id IN `+db.In(len(ids)),
		append(args, db.Any(ids)...)...)
	for _, m := range list {
		found[m.ID] = m
	}
	return found, err
}
