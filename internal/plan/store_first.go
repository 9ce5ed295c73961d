package plan

import (
	"context"
	"slices"
	"strings"

	"svc/internal/db"
)

const (
	// maxFirst is the number of rows up to the end of a page that is read by parts or
	// by a window of its order. Later pages are read in the order of the list.
	maxFirst = 1000
	// firstWindow and lastWindow are the numbers of rows at the start of an order in
	// which a page of matches is looked for.
	firstWindow, lastWindow = 120, 2400
	// maxMilestones is the number of milestones that a project uses, up to which an
	// order by their due dates is read milestone by milestone.
	maxMilestones = 200
)

// Selection is what is known of a list of issues or merge requests before it is read.
type Selection struct {
	// Among are the candidates of the list; nil if all its conditions are common.
	Among []int64

	kind     Kind // empty if nothing is known
	in       Area
	filtered bool    // it has conditions that candidates were looked for by
	search   bool    // it looks for a text
	projects []int64 // those of the group, at least if there are at most maxRanges
}

// byParts reports whether a list is read as one part after another, because no index
// has its order.
func (f Selection) byParts(order string) bool {
	return f.in.Project != 0 && (order == "priority" || order == "label_priority" || order == "milestone_due")
}

// First returns a function that finds the first rows of the list with some conditions
// and an order: see db.Query.
func (f Selection) First(tables string, w db.Where, column db.Order, order Sort) func(ctx context.Context, d *db.DB, rows int) ([]int64, error) {
	if f.Among != nil || f.kind == "" {
		return nil
	}
	l := firstRows{f, tables, w, []string{column.Name, `i.id`}, ""}
	if order.Desc {
		l.way = ` DESC`
	}
	switch {
	case f.byParts(order.By) && order.By == "milestone_due":
		return l.byMilestones
	case f.byParts(order.By):
		return l.byPriorities
	case order.By == "priority", order.By == "label_priority", order.By == "milestone_due":
		return nil
	case f.in.Project == 0, f.filtered, f.search:
		return l.byWindow
	}
	return nil
}

// firstRows finds the first rows of a list.
type firstRows struct {
	Selection
	tables string
	where  db.Where
	order  []string
	way    string // DESC, or empty
}

func (l firstRows) sorted(columns ...string) string {
	return ` ORDER BY ` + strings.Join(columns, l.way+`, `) + l.way
}

// byWindow looks for the rows at the start of the order, and then in the projects of
// the group one by one if they are few.
func (l firstRows) byWindow(ctx context.Context, d *db.DB, rows int) ([]int64, error) {
	if rows > maxFirst {
		return nil, nil
	}
	window := db.Window{Table: l.kind.table() + `s i`, Key: `i.id`, Order: l.sorted(l.order...), First: firstWindow, Second: lastWindow}
	if l.in.Project != 0 {
		window.Where.And(`i.project_id = ?`, l.in.Project)
	}
	found, err := window.Find(ctx, d, l.tables, l.where, rows)
	if err != nil || found != nil {
		return found, err
	}
	if l.in.Group == 0 || len(l.projects) > maxRanges || len(l.projects)*rows > maxFirst {
		return nil, nil
	}
	all := []int64{}
	for _, id := range l.projects {
		w := l.where.With(`i.project_id = ?`, id)
		found, err := db.All(ctx, d, db.Value[int64], `SELECT i.id FROM `+l.tables+w.SQL()+l.sorted(l.order...)+` LIMIT ?`, w.Args(rows)...)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// part is a part of a list of a project, by a part of an index. In it the rows are
// sorted by ID.
type part struct {
	link string // a table x with the keys of the rows, or empty
	cond string
	args []any
}

// collect returns the rows of runs of parts that follow each other in the order of the
// list, up to the run that completes the page.
func (l firstRows) collect(ctx context.Context, d *db.DB, rows int, runs [][]part) ([]int64, error) {
	if l.way != "" {
		slices.Reverse(runs)
	}
	all := []int64{}
	for _, run := range runs {
		if len(all) >= rows {
			break
		}
		need := rows - len(all)
		for _, p := range run {
			w := l.where.With(p.cond, p.args...)
			from, key := l.tables, `i.id`
			if p.link != "" {
				key = `x.` + l.kind.table() + `_id`
				from = d.Joined(p.link, l.tables, key+` = i.id`)
			}
			found, err := db.All(ctx, d, db.Value[int64], `SELECT i.id FROM `+from+w.SQL()+l.sorted(key)+` LIMIT ?`, w.Args(need)...)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// byPriorities reads the rows label by label, in the order of priorities that the
// project gives them.
func (l firstRows) byPriorities(ctx context.Context, d *db.DB, rows int) ([]int64, error) {
	labels, err := db.All(ctx, d, scanPair, `SELECT o.label_id, o.priority FROM label_priorities o WHERE o.project_id = ? ORDER BY o.priority LIMIT ?`, l.in.Project, maxRanges+1)
	if err != nil || rows > maxFirst || len(labels) > maxRanges || len(labels) > 0 && labels[len(labels)-1].second >= noPriority {
		return nil, err
	}
	links, key := l.kind.table()+`_labels`, l.kind.table()+`_id`
	without := func(ids []any) string {
		return `NOT EXISTS (SELECT 1 FROM ` + links + ` y WHERE y.` + key + ` = i.id AND y.label_id IN ` + db.In(len(ids)) + `)`
	}
	var runs [][]part
	var before []any // labels of a higher priority
	for len(labels) > 0 {
		same := slices.IndexFunc(labels, func(o pair) bool { return o.second != labels[0].second })
		if same < 0 {
			same = len(labels)
		}
		var run []part
		for _, o := range labels[:same] {
			p := part{links + ` x`, `x.label_id = ?`, []any{o.first}}
			if len(before) > 0 {
				p.cond, p.args = p.cond+` AND `+without(before), append(p.args, before...)
			}
			run = append(run, p)
		}
		for _, o := range labels[:same] {
			before = append(before, o.first)
		}
		runs, labels = append(runs, run), labels[same:]
	}
	rest := part{cond: `1 = 1`}
	if len(before) > 0 {
		rest = part{cond: without(before), args: before}
	}
	return l.collect(ctx, d, rows, append(runs, []part{rest}))
}

// byMilestones reads the rows milestone by milestone, in the order of their due dates.
func (l firstRows) byMilestones(ctx context.Context, d *db.DB, rows int) ([]int64, error) {
	table := l.kind.table() + `s`
	used, err := db.All(ctx, d, scanDue, `
		WITH RECURSIVE used (id) AS (
			SELECT min(i.milestone_id) FROM `+table+` i WHERE i.project_id = ?
			UNION ALL SELECT (SELECT min(i.milestone_id) FROM `+table+` i WHERE i.project_id = ? AND i.milestone_id > used.id) FROM used WHERE used.id IS NOT NULL)
		SELECT m.id, COALESCE(m.due_date, '') FROM (SELECT u.id FROM used u WHERE u.id IS NOT NULL LIMIT ?) AS u JOIN milestones m ON m.id = u.id`,
		l.in.Project, l.in.Project, maxMilestones+1)
	if err != nil || rows > maxFirst || len(used) > maxMilestones {
		return nil, err
	}
	slices.SortFunc(used, func(a, b due) int { return strings.Compare(a.date, b.date) })
	var runs [][]part
	rest := []part{{cond: `i.milestone_id IS NULL`}}
	for i, m := range used {
		p := part{cond: `i.milestone_id = ?`, args: []any{m.id}}
		switch {
		case m.date == "":
			rest = append(rest, p)
		case i > 0 && used[i-1].date == m.date:
			runs[len(runs)-1] = append(runs[len(runs)-1], p)
		default:
			runs = append(runs, []part{p})
		}
	}
	return l.collect(ctx, d, rows, append(runs, rest))
}

// due is a milestone with its due date.
type due struct {
	id   int64
	date string // empty without one
}

func scanDue(s db.Scanner) (due, error) {
	var m due
	err := s.Scan(&m.id, &m.date)
	return m, err
}
