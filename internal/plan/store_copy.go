package plan

import (
	"context"
	"errors"

	"svc/internal/db"
	"svc/internal/project"
)

func countGroupObjects(ctx context.Context, q db.Q, groupID int64) (n Sizes, err error) {
	for _, c := range []struct {
		table string
		to    *int64
	}{{"labels", &n.Labels}, {"milestones", &n.Milestones}} {
		if err := q.QueryRowContext(ctx, `SELECT count(*) FROM `+c.table+` WHERE namespace_id IN `+below, groupID).Scan(c.to); err != nil {
			return n, err
		}
	}
	return n, nil
}

func eachGroupLabel(ctx context.Context, q db.Q, groupID int64, f func(*Label) error) error {
	return db.Each(ctx, q, scanLabel, f, `SELECT `+labelColumns+` FROM labels l`+labelJoin+` WHERE l.namespace_id = ? ORDER BY l.id`, 0, groupID)
}

func eachGroupMilestone(ctx context.Context, q db.Q, groupID int64, f func(*Milestone) error) error {
	return db.Each(ctx, q, scanMilestone, f, `SELECT `+milestoneColumns+` FROM `+milestoneTables+` WHERE m.namespace_id = ? ORDER BY m.iid`, groupID)
}

// raiseNumber raises the counter of a kind of object in a draft to at least value.
func raiseNumber(ctx context.Context, q db.Q, d *project.Draft, kind string, value int64) error {
	table, column := "group_counters", "namespace_id"
	if d.Project {
		table, column = "project_counters", "project_id"
	}
	_, err := q.ExecContext(ctx, `
		INSERT INTO `+table+` (`+column+`, kind, value) VALUES (?, ?, ?)
		ON CONFLICT (`+column+`, kind) DO UPDATE SET value = excluded.value WHERE `+table+`.value < excluded.value`, d.ID, kind, value)
	return err
}

// findNamed returns the ID of an object of a group by name, or 0. With inherited,
// ancestor groups are searched too.
func findNamed(ctx context.Context, q db.Q, table, column string, groupID int64, name string, inherited bool) (id int64, err error) {
	where := `x.namespace_id = ?`
	if inherited {
		where = `x.namespace_id IN ` + above
	}
	err = q.QueryRowContext(ctx, `
		SELECT x.id FROM `+table+` x JOIN namespaces n ON n.id = x.namespace_id WHERE `+where+` AND x.`+column+` = ?
		ORDER BY length(n.full_path) DESC LIMIT 1`, groupID, name).Scan(&id)
	if errors.Is(err, db.ErrNoRows) {
		return 0, nil
	}
	return id, err
}
