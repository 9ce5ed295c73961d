package plan

import (
	"context"
	"slices"

	"svc/internal/db"
	"svc/internal/errs"
)

const (
	milestoneColumns = `m.id, m.iid, m.project_id, m.namespace_id, m.title, m.description, m.state, COALESCE(m.start_date, ''), COALESCE(m.due_date, ''),
		m.created_at, m.updated_at, COALESCE(mp.full_path, mn.full_path)`
	milestoneTables = `milestones m LEFT JOIN projects mp ON mp.id = m.project_id LEFT JOIN namespaces mn ON mn.id = m.namespace_id`
)

func scanMilestone(s db.Scanner) (*Milestone, error) {
	var m Milestone
	err := s.Scan(&m.ID, &m.IID, &m.ProjectID, &m.GroupID, &m.Title, &m.Description, (*string)(&m.State), &m.StartDate, &m.DueDate,
		db.Time(&m.CreatedAt), db.Time(&m.UpdatedAt), &m.Path)
	return &m, err
}

// seenBelow are the conditions on projects p and groups n whose milestones the
// actor can see.
type seenBelow struct {
	projects, groups       string
	projectArgs, groupArgs []any
}

func listMilestones(ctx context.Context, d *db.DB, in place, f MilestoneFilter, seen seenBelow, p db.Paging) (db.Page[*Milestone], error) {
	w := whereMilestones(in, f, seen, true)
	q := db.Query[*Milestone]{
		Columns: milestoneColumns, From: milestoneTables, CountFrom: "milestones m", Where: w, Order: []db.Order{{Name: "m.id"}}, Desc: !f.Oldest, Scan: scanMilestone,
		Keys: func(m *Milestone) []any { return []any{m.ID} },
	}
	if seen.projects != "" && !p.Keyset {
		q.Where, q.CountWhere = whereMilestones(in, f, seen, false), w
		q.First = func(ctx context.Context, d *db.DB, rows int) ([]int64, error) {
			if rows > maxFirstMilestones {
				return nil, nil
			}
			order := []string{"m.id"}
			window := db.Window{Table: "milestones m", Key: "m.id", Order: order, Desc: q.Desc, Size: milestoneWindow}
			found, err := window.Find(ctx, d, q.CountFrom, q.Where, rows)
			if err != nil || found != nil {
				return found, err
			}
			return db.All(ctx, d, db.Value[int64], `SELECT m.id FROM milestones m`+w.SQL()+db.OrderBy(order, q.Desc)+` LIMIT ?`, w.Args(rows)...)
		}
	}
	return db.List(ctx, d, q, p)
}

// milestoneWindow is the number of milestones at the start of a list that are
// searched one by one.
const milestoneWindow = 600

// maxFirstMilestones is the highest row number up to which the IDs of the milestones
// of a page are read first.
const maxFirstMilestones = 1000

// whereMilestones returns the conditions of a list. With collect, the projects that
// the actor can read are collected first, which suits a list that reads most of its
// milestones. Otherwise the project of each milestone is looked up.
func whereMilestones(in place, f MilestoneFilter, seen seenBelow, collect bool) (w db.Where) {
	of := func(cond string) string {
		if collect {
			return `m.project_id IN (SELECT p.id FROM projects p WHERE ` + cond + `)`
		}
		return `EXISTS (SELECT 1 FROM projects p WHERE p.id = m.project_id AND ` + cond + `)`
	}
	var cond string
	var args []any
	if in.project == nil && in.group == nil {
		cond, args = of(seen.projects), seen.projectArgs
	} else {
		cond, args = in.owns("m", f.Ancestors)
	}
	if f.Descendants && in.group != nil {
		cond += ` OR m.namespace_id IN ` + belowSeen(seen.groups) + ` OR ` + of(`p.namespace_id IN `+below+` AND `+seen.projects)
		args = slices.Concat(args, []any{in.group.ID}, seen.groupArgs, []any{in.group.ID}, seen.projectArgs)
	}
	w.And(cond, args...)
	if f.Live {
		w.And(`m.project_id IS NULL OR ` + of(`NOT p.archived`))
	}
	if len(f.IIDs) > 0 {
		w.And(`m.iid IN `+db.In(len(f.IIDs)), db.Any(f.IIDs)...)
	}
	if f.State != "" {
		w.And(`m.state = ?`, string(f.State))
	}
	if f.Title != "" {
		w.And(`m.title = ?`, f.Title)
	}
	if f.Search != "" {
		w.Text("milestones", f.Search, "m.title", "m.description")
	}
	if f.SearchTitle != "" {
		w.Text("milestones", f.SearchTitle, "m.title")
	}
	if f.Containing != "" {
		w.And(`(m.start_date IS NOT NULL OR m.due_date IS NOT NULL) AND COALESCE(m.start_date, ?) <= ? AND COALESCE(m.due_date, ?) >= ?`,
			f.Containing, f.Containing, f.Containing, f.Containing)
	}
	w.Time(`m.updated_at >= ?`, f.UpdatedAt[0])
	w.Time(`m.updated_at <= ?`, f.UpdatedAt[1])
	return w
}

func findMilestone(ctx context.Context, q db.Q, in place, id int64) (*Milestone, error) {
	cond, args := in.owns("m", false)
	return scanMilestone(q.QueryRowContext(ctx, `SELECT `+milestoneColumns+` FROM `+milestoneTables+` WHERE m.id = ? AND `+cond, append([]any{id}, args...)...))
}

// usableMilestone reports whether issues of a project can have the milestone.
func usableMilestone(ctx context.Context, q db.Q, in place, id int64) (bool, error) {
	cond, args := in.owns("m", true)
	return db.Exists(ctx, q, `SELECT 1 FROM milestones m WHERE m.id = ? AND (`+cond+`)`, append([]any{id}, args...)...)
}

func findMilestones(ctx context.Context, q db.Q, ids []int64) (map[int64]*Milestone, error) {
	found := map[int64]*Milestone{}
	if len(ids) == 0 {
		return found, nil
	}
	list, err := db.All(ctx, q, scanMilestone, `SELECT `+milestoneColumns+` FROM `+milestoneTables+` WHERE m.id IN `+db.In(len(ids)), db.Any(ids)...)
	for _, m := range list {
		found[m.ID] = m
	}
	return found, err
}

func lockMilestone(ctx context.Context, tx *db.Tx, in place, id int64) (*Milestone, error) {
	if err := tx.Lock(ctx, "milestones", id); err != nil {
		return nil, err
	}
	m, err := findMilestone(ctx, tx, in, id)
	return m, db.NotFound(err, "Milestone")
}

// checkTitle returns Invalid if another milestone that the same issues can have
// has this title.
func checkTitle(ctx context.Context, q db.Q, in place, m *Milestone) error {
	cond, args := in.owns("m", true)
	taken, err := db.Exists(ctx, q, `SELECT 1 FROM milestones m WHERE (`+cond+`) AND m.title = ? AND m.id <> ? LIMIT 1`, append(args, m.Title, m.ID)...)
	if err == nil && taken {
		return errs.InvalidField("title", "already being used for another group or project milestone.")
	}
	return err
}

func milestoneTaken(err error) error {
	if db.IsUnique(err, "milestones_project_id_title") || db.IsUnique(err, "milestones_namespace_id_title") {
		return errs.InvalidField("title", "already being used for another group or project milestone.")
	}
	return err
}

func insertMilestone(ctx context.Context, q db.Q, m *Milestone) error {
	err := q.QueryRowContext(ctx, `
		INSERT INTO milestones (project_id, namespace_id, iid, title, description, state, start_date, due_date, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		m.ProjectID, m.GroupID, m.IID, m.Title, m.Description, string(m.State), db.NullText(m.StartDate), db.NullText(m.DueDate), m.CreatedAt, m.UpdatedAt).Scan(&m.ID)
	return milestoneTaken(err)
}

func saveMilestone(ctx context.Context, q db.Q, m *Milestone) error {
	return milestoneTaken(db.ExecOne(ctx, q, `
		UPDATE milestones SET project_id = ?, namespace_id = ?, iid = ?, title = ?, description = ?, state = ?, start_date = ?, due_date = ?, updated_at = ?
		WHERE id = ?`,
		m.ProjectID, m.GroupID, m.IID, m.Title, m.Description, string(m.State), db.NullText(m.StartDate), db.NullText(m.DueDate), m.UpdatedAt, m.ID))
}

func deleteMilestone(ctx context.Context, q db.Q, id int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM milestones WHERE id = ?`, id)
	return err
}

// findMilestoneNamesakes returns the IDs of the other milestones with the same title
// in the projects of its group.
func findMilestoneNamesakes(ctx context.Context, q db.Q, m *Milestone) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT o.id FROM milestones o JOIN projects p ON p.id = o.project_id WHERE o.title = ? AND o.id <> ? AND p.namespace_id IN `+below+` ORDER BY o.id`, m.Title, m.ID, *m.GroupID)
}

// promoteMilestone saves a milestone that now belongs to a group, and merges the
// milestones of the same title in the projects of the group into it. It returns
// the IDs of the deleted milestones.
func promoteMilestone(ctx context.Context, tx *db.Tx, m *Milestone) ([]int64, error) {
	same := `(SELECT o.id FROM milestones o JOIN projects p ON p.id = o.project_id WHERE o.title = ? AND o.id <> ? AND p.namespace_id IN ` + below + `)`
	args := []any{m.Title, m.ID, *m.GroupID}
	for _, table := range []string{"issues", "merge_requests", "release_milestones", "resource_events"} {
		if _, err := tx.ExecContext(ctx, `UPDATE `+table+` SET milestone_id = ? WHERE milestone_id IN `+same, append([]any{m.ID}, args...)...); err != nil {
			return nil, err
		}
	}
	gone, err := db.All(ctx, tx, db.Value[int64], `DELETE FROM milestones WHERE id IN `+same+` RETURNING id`, args...)
	if err != nil {
		return nil, err
	}
	return gone, saveMilestone(ctx, tx, m)
}

// countByMilestone counts the issues that match a condition on issues i and
// projects p, for each milestone.
func countByMilestone(ctx context.Context, q db.Q, w db.Where, ids []int64) (map[int64]Counts, error) {
	w.And(`i.milestone_id IN `+db.In(len(ids)), db.Any(ids)...)
	type row struct {
		id int64
		Counts
	}
	list, err := db.All(ctx, q, func(s db.Scanner) (r row, err error) {
		err = s.Scan(&r.id, &r.All, &r.Opened)
		r.Closed = r.All - r.Opened
		return r, err
	}, `SELECT i.milestone_id, count(*), COALESCE(sum(CASE WHEN i.state = 'opened' THEN 1 ELSE 0 END), 0) FROM `+issueTables+w.SQL()+` GROUP BY i.milestone_id`, w.Args()...)
	found := map[int64]Counts{}
	for _, r := range list {
		found[r.id] = r.Counts
	}
	return found, err
}
