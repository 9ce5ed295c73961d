package project

import (
	"context"

	"svc/internal/db"
)

// countChildren counts the groups n and projects p that match the conditions, by
// their namespaces.
func countChildren(ctx context.Context, q db.Q, groups, projects db.Where, ids []int64) (map[int64]ChildCounts, error) {
	type row struct{ parent, count int64 }
	scan := func(s db.Scanner) (r row, err error) {
		err = s.Scan(&r.parent, &r.count)
		return r, err
	}
	found := map[int64]ChildCounts{}
	groups.And(`n.parent_id IN `+db.In(len(ids)), db.Any(ids)...)
	list, err := db.All(ctx, q, scan, `SELECT n.parent_id, count(*) FROM namespaces n`+groups.SQL()+` GROUP BY n.parent_id`, groups.Args()...)
	if err != nil {
		return nil, err
	}
	for _, r := range list {
		found[r.parent] = ChildCounts{Groups: r.count}
	}
	projects.And(`p.namespace_id IN `+db.In(len(ids)), db.Any(ids)...)
	list, err = db.All(ctx, q, scan, `SELECT p.namespace_id, count(*) FROM projects p`+projects.SQL()+` GROUP BY p.namespace_id`, projects.Args()...)
	for _, r := range list {
		found[r.parent] = ChildCounts{found[r.parent].Groups, r.count}
	}
	return found, err
}
