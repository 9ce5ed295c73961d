package plan

import (
	"context"
	"strconv"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan/listing"
)

// labelColumns requires labelJoin, whose argument is the ID of the project whose
// priorities are read, or 0.
const (
	labelColumns = `l.id, l.project_id, l.namespace_id, l.name, l.color, l.description, l.created_at, l.updated_at, o.priority`
	labelJoin    = ` LEFT JOIN label_priorities o ON o.label_id = l.id AND o.project_id = ?`
)

func scanLabel(s db.Scanner) (*Label, error) {
	var l Label
	err := s.Scan(&l.ID, &l.ProjectID, &l.GroupID, &l.Name, &l.Color, &l.Description, db.Time(&l.CreatedAt), db.Time(&l.UpdatedAt), &l.Priority)
	return &l, err
}

// projectID returns the ID of the project, or 0 for a group.
func (in place) projectID() int64 {
	if in.project == nil {
		return 0
	}
	return in.project.ID
}

// owns returns the condition on objects of the place. With inherited, objects of
// ancestor groups are included.
func (in place) owns(alias string, inherited bool) (string, []any) {
	column, id := in.column()
	cond, args := alias+"."+column+" = ?", []any{id}
	if inherited {
		cond += " OR " + alias + ".namespace_id IN " + above
		args = append(args, in.tree())
	}
	return cond, args
}

// listLabels lists labels. Those of subgroups are listed if the subgroup matches
// the condition visible on groups n.
func listLabels(ctx context.Context, d *db.DB, in place, f LabelFilter, visible string, visibleArgs []any, p db.Paging) (db.Page[*Label], error) {
	var w db.Where
	cond, args := in.owns("l", f.Ancestors)
	if f.Descendants && in.group != nil {
		cond, args = cond+" OR l.namespace_id IN "+belowSeen(visible), append(append(args, in.group.ID), visibleArgs...)
	}
	w.And(cond, args...)
	if f.Search != "" {
		w.And(`fold(l.name) LIKE ? ESCAPE '\' OR fold(l.description) LIKE ? ESCAPE '\'`, db.Like(f.Search), db.Like(f.Search))
	}
	return db.List(ctx, d, db.Query[*Label]{
		Columns: labelColumns, From: "labels l" + labelJoin, ColumnArgs: []any{in.projectID()}, CountFrom: "labels l", Where: w,
		Order: []db.Order{{Name: "l.name", Text: true}, {Name: "l.id"}}, Scan: scanLabel,
		Keys: func(l *Label) []any { return []any{l.Name, l.ID} },
	}, p)
}

// findLabel finds a label by ID or name. Labels of the place itself take
// precedence over those of the nearest ancestor group.
func findLabel(ctx context.Context, q db.Q, in place, ref string, inherited bool) (*Label, error) {
	cond, args := in.owns("l", inherited)
	id, err := strconv.ParseInt(ref, 10, 64)
	if err != nil {
		id = 0
	}
	return scanLabel(q.QueryRowContext(ctx, `
		SELECT `+labelColumns+` FROM labels l`+labelJoin+`
		WHERE (`+cond+`) AND (l.id = ? OR l.name = ?)
		ORDER BY CASE WHEN l.id = ? THEN 0 ELSE 1 END, CASE WHEN l.project_id IS NULL THEN 1 ELSE 0 END, l.namespace_id DESC LIMIT 1`,
		append(append([]any{in.projectID()}, args...), id, ref, id)...))
}

// hasLabel reports whether the place or an ancestor group has a label of that name
// with another ID.
func hasLabel(ctx context.Context, q db.Q, in place, name string, exceptID int64) (bool, error) {
	cond, args := in.owns("l", true)
	return db.Exists(ctx, q, `SELECT 1 FROM labels l WHERE (`+cond+`) AND l.name = ? AND l.id <> ? LIMIT 1`, append(args, name, exceptID)...)
}

func insertLabel(ctx context.Context, q db.Q, l *Label) error {
	err := q.QueryRowContext(ctx, `
		INSERT INTO labels (project_id, namespace_id, name, color, description, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		l.ProjectID, l.GroupID, l.Name, l.Color, l.Description, l.CreatedAt, l.UpdatedAt).Scan(&l.ID)
	return labelTaken(err)
}

func saveLabel(ctx context.Context, q db.Q, l *Label) error {
	err := db.ExecOne(ctx, q, `UPDATE labels SET name = ?, color = ?, description = ?, updated_at = ? WHERE id = ?`,
		l.Name, l.Color, l.Description, l.UpdatedAt, l.ID)
	return labelTaken(db.NotFound(err, "Label"))
}

func labelTaken(err error) error {
	if db.IsUnique(err, "labels_project_id_name") || db.IsUnique(err, "labels_namespace_id_name") {
		return errs.Conflict("Label already exists")
	}
	return err
}

// savePriority saves the priority of a label in a project.
func savePriority(ctx context.Context, tx *db.Tx, in place, l *Label, f LabelFields) error {
	if !f.SetPriority || in.project == nil {
		return nil
	}
	l.Priority = f.Priority
	if f.Priority == nil {
		_, err := tx.ExecContext(ctx, `DELETE FROM label_priorities WHERE project_id = ? AND label_id = ?`, in.project.ID, l.ID)
		return err
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO label_priorities (project_id, label_id, priority) VALUES (?, ?, ?)
		ON CONFLICT (project_id, label_id) DO UPDATE SET priority = excluded.priority`, in.project.ID, l.ID, *f.Priority)
	return err
}

func deleteLabel(ctx context.Context, q db.Q, id int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM labels WHERE id = ?`, id)
	return err
}

// findNamesakes returns the IDs of the other labels with the same name in the
// projects of a group.
func findNamesakes(ctx context.Context, q db.Q, l *Label, groupID int64) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT o.id FROM labels o JOIN projects p ON p.id = o.project_id WHERE o.name = ? AND o.id <> ? AND p.namespace_id IN `+below+` ORDER BY o.id`, l.Name, l.ID, groupID)
}

// promoteLabel moves a label to a group, and merges the labels of the same name in
// the projects of the group into it.
func promoteLabel(ctx context.Context, tx *db.Tx, l *Label, groupID int64, at time.Time) error {
	same := `(SELECT o.id FROM labels o JOIN projects p ON p.id = o.project_id WHERE o.name = ? AND o.id <> ? AND p.namespace_id IN ` + below + `)`
	args := []any{l.Name, l.ID, groupID}
	for _, move := range []string{
		`INSERT INTO merge_request_labels (merge_request_id, label_id) SELECT x.merge_request_id, CAST(? AS BIGINT) FROM merge_request_labels x
			WHERE x.label_id IN ` + same + ` ON CONFLICT DO NOTHING`,
		`INSERT INTO issue_labels (issue_id, label_id) SELECT x.issue_id, CAST(? AS BIGINT) FROM issue_labels x WHERE x.label_id IN ` + same + ` ON CONFLICT DO NOTHING`,
		`INSERT INTO label_priorities (project_id, label_id, priority) SELECT x.project_id, CAST(? AS BIGINT), x.priority FROM label_priorities x
			WHERE x.label_id IN ` + same + ` ON CONFLICT DO NOTHING`,
		`UPDATE resource_events SET label_id = ? WHERE label_id IN ` + same,
		`INSERT INTO subscriptions (kind, thing_id, user_id, subscribed, created_at) SELECT 'Label', CAST(? AS BIGINT), x.user_id, TRUE, min(x.created_at) FROM subscriptions x
			WHERE x.kind = 'Label' AND x.subscribed AND x.thing_id IN ` + same + ` GROUP BY x.user_id ON CONFLICT (kind, thing_id, user_id) DO UPDATE SET subscribed = TRUE`,
	} {
		if _, err := tx.ExecContext(ctx, move, append([]any{l.ID}, args...)...); err != nil {
			return err
		}
	}
	for _, gone := range []string{`DELETE FROM subscriptions WHERE kind = 'Label' AND thing_id IN ` + same, `DELETE FROM labels WHERE id IN ` + same} {
		if _, err := tx.ExecContext(ctx, gone, args...); err != nil {
			return err
		}
	}
	l.ProjectID, l.GroupID, l.UpdatedAt = nil, &groupID, at
	return labelTaken(db.ExecOne(ctx, tx, `UPDATE labels SET project_id = NULL, namespace_id = ?, updated_at = ? WHERE id = ?`, groupID, at, l.ID))
}

// countByLabel counts issues i and merge requests i of projects p that match the
// conditions, for each label and state up to db.CountLimit + 1.
func countByLabel(ctx context.Context, d *db.DB, issues, requests db.Where, labels map[int64]*Label) error {
	// SQLite might start with an index of the issues of the project.
	issueTables := d.Joined(`issue_labels x`, `issues i JOIN projects p ON p.id = i.project_id`, `i.id = x.issue_id`)
	requestTables := d.Joined(`merge_request_labels x`, `merge_requests i JOIN projects p ON p.id = i.project_id`, `i.id = x.merge_request_id`)
	for id, l := range labels {
		var label db.Where
		label.And(`x.label_id = ?`, id)
		of := *label.With(issues.Cond(), issues.Args()...)
		if err := listing.TotalStates(ctx, d, issueTables, of, listing.Selection{}, map[State]*int64{Opened: &l.OpenIssues, Closed: &l.ClosedIssues}); err != nil {
			return err
		}
		of = *label.With(requests.Cond(), requests.Args()...)
		if err := listing.TotalStates(ctx, d, requestTables, of, listing.Selection{}, map[State]*int64{Opened: &l.OpenRequests}); err != nil {
			return err
		}
	}
	return nil
}

func findLabels(ctx context.Context, q db.Q, ids []int64) (map[int64]*Label, error) {
	found := map[int64]*Label{}
	if len(ids) == 0 {
		return found, nil
	}
	list, err := db.All(ctx, q, scanLabel, `SELECT `+labelColumns+` FROM labels l`+labelJoin+` WHERE l.id IN `+db.In(len(ids)), append([]any{0}, db.Any(ids)...)...)
	for _, l := range list {
		found[l.ID] = l
	}
	return found, err
}
