package listing

import (
	"context"
	"slices"
	"strings"

	"svc/internal/db"
)

const (
	// maxFirst is the highest row number up to which pages are read in parts or from a
	// window of their order. Later pages are read in the order of the list.
	maxFirst = 1000
	// windowSize is the number of rows at the start of an order that are searched for a
	// page of matches.
	windowSize = 2400
	// maxMilestones is the maximum number of milestones of a project for which the
	// order by due date is read milestone by milestone.
	maxMilestones = 200
)

// Selection has the known properties of a list of issues or merge requests before it
// is read.
type Selection struct {
	// Among are the IDs of the candidates; nil if no condition is selective.
	Among []int64

	table    Table // empty if nothing is known
	in       Area
	filtered bool      // the filter has conditions with an index or negated ones
	search   bool      // the filter has a search text
	projects []int64   // projects of the group, at most maxRanges+1
	state    State     // empty for all
	labels   [][]int64 // for each label of the filter, the IDs of the labels with its name
	// milestones are those of the filter; nil if it has none or their IDs are unknown.
	milestones []int64
	relation   string // table of assignees or reviewers, for a list of one user; empty otherwise
	user       int64
	indexed    db.Where // a condition of the filter; see Indexed

	// conditions are the candidates for each condition; the first named of them are for names
	// and IDs in the filter, such as a label.
	conditions []Candidates
	named      int
}

// Behind returns a query of the rows that match one condition of the filter, from which the
// rows of the list are counted; empty if no condition is selective. Without it, SQLite might
// count a label in the order of an index of all rows.
func (f Selection) Behind(ctx context.Context, d *db.DB) (query string, args []any, err error) {
	var best *Range
	fewest := db.CountLimit
	for i, source := range f.conditions {
		if len(source) != 1 {
			continue
		}
		n, over, err := d.Total(ctx, `(`+source[0].Query+`) AS matches`, source[0].Args...)
		if err != nil {
			return "", nil, err
		}
		if !over && n <= fewest {
			best, fewest = &source[0], n
		} else if best == nil && i < f.named {
			best = &source[0]
		}
	}
	if best == nil {
		return "", nil, nil
	}
	return best.Query, best.Args, nil
}

// Indexed returns the selection with a condition of its filter that has an index
// sorted by creation within each project. The first rows in that order are searched
// in this index.
func (f Selection) Indexed(cond string, args ...any) Selection {
	f.indexed = db.Where{}
	f.indexed.And(cond, args...)
	return f
}

// byParts reports whether a list is read in several parts, because no index has
// its order.
func (f Selection) byParts(order string) bool {
	return f.in.Project != 0 && !indexed(order)
}

// indexed reports whether an order has an index.
func indexed(order string) bool {
	return order != "priority" && order != "label_priority" && order != "milestone_due"
}

// First returns a function that finds the first rows of the list; see db.Query. It
// returns nil if reading the list is the fastest way.
func (f Selection) First(tables string, w db.Where, column db.Order, order Sort) func(ctx context.Context, d *db.DB, rows int) ([]int64, error) {
	if f.table == "" {
		return nil
	}
	l := firstRows{Selection: f, tables: tables, where: w, by: order.By, order: []string{column.Name, `i.id`}, desc: order.Desc}
	switch {
	case f.Among != nil && !indexed(order.By):
		return nil
	case f.byParts(order.By) && order.By == "milestone_due":
		return l.byMilestones
	case f.byParts(order.By):
		return l.byPriorities
	case !indexed(order.By):
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
	by     string   // name of the order
	order  []string // its columns
	desc   bool
}

func (l firstRows) sorted(columns ...string) string {
	return db.OrderBy(columns, l.desc)
}

// byWindow searches the rows at the start of the order. If there are few matches, it
// then searches the rows of the user, or of each project of the group.
func (l firstRows) byWindow(ctx context.Context, d *db.DB, rows int) ([]int64, error) {
	if rows > maxFirst {
		return nil, nil
	}
	window := db.Window{Table: string(l.table) + `s i`, Key: `i.id`, Order: l.order, Desc: l.desc, Size: windowSize}
	if l.in.Project != 0 {
		window.Where.And(`i.project_id = ?`, l.in.Project)
		switch {
		case l.indexed.SQL() != "" && (l.by == "" || l.by == "created_at"):
			// Without the state: with it, the database could read an index of all rows in the
			// state.
			window.Where.And(l.indexed.Cond(), l.indexed.Args()...)
		case l.stateIndexed():
			window.Where.And(inState(l.state))
		}
	}
	if l.Among != nil {
		return l.amongWindow(ctx, d, window, rows)
	}
	found, err := window.Find(ctx, d, l.tables, l.where, rows)
	if err != nil || found != nil {
		return found, err
	}
	if l.relation != "" {
		p := part{link: l.relation + ` x`, cond: `x.user_id = ?`, args: []any{l.user}}
		return l.read(ctx, d, p, rows, l.order...)
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

// amongWindow searches the candidates in a window, reading only its first part if
// that is sufficient; nil if too few of them match.
func (l firstRows) amongWindow(ctx context.Context, d *db.DB, window db.Window, rows int) ([]int64, error) {
	whole := window.Size
	window.Size = min(whole, 24*rows)
	for {
		ids, err := window.Keys(ctx, d)
		if err != nil {
			return nil, err
		}
		end := len(ids) < window.Size // the list has no more rows
		ids = slices.DeleteFunc(ids, func(id int64) bool {
			_, candidate := slices.BinarySearch(l.Among, id)
			return !candidate
		})
		found, err := l.matching(ctx, d, ids, rows)
		if err != nil || found != nil || end || window.Size == whole {
			return found, err
		}
		window.Size = whole
	}
}

// matching returns matching candidates that include the first rows of the list; nil
// if there are too few among the first candidates.
func (l firstRows) matching(ctx context.Context, d *db.DB, ids []int64, rows int) ([]int64, error) {
	for _, size := range []int{rows, 8 * rows} {
		if len(ids) < rows {
			break
		}
		from, args := d.Among(l.tables, `i.id`, ids[:min(size, len(ids))])
		found, err := db.All(ctx, d, db.Value[int64], `SELECT i.id FROM `+from+l.where.SQL(), append(args, l.where.Args()...)...)
		if err != nil || len(found) >= rows {
			return found, err
		}
		if size >= len(ids) {
			break
		}
	}
	return nil, nil
}

// stateIndexed reports whether an index on the project and the state has the order
// of the list.
func (l firstRows) stateIndexed() bool {
	switch l.by {
	case "", "created_at":
		return l.state != ""
	case "updated_at", "title", "popularity":
		return l.state == Opened
	case "due_date", "weight", "relative_position":
		return l.state == Opened && l.table == Issues
	}
	return false
}

// part is a part of the list of a project that an index contains, sorted by ID.
type part struct {
	link  string // a joined table x with the IDs of the rows; may be empty
	cond  string
	args  []any
	order []string // the columns of the index; the ID if it is nil
}

// collect returns the rows of consecutive groups of parts in the order of the list,
// up to the group that completes the page.
func (l firstRows) collect(ctx context.Context, d *db.DB, rows int, groups [][]part) ([]int64, error) {
	if l.desc {
		slices.Reverse(groups)
	}
	all := []int64{}
	for _, group := range groups {
		if len(all) >= rows {
			break
		}
		need := rows - len(all)
		for _, p := range group {
			order := p.order
			switch {
			case order != nil:
			case p.link != "":
				order = []string{`x.` + string(l.table) + `_id`}
			default:
				order = []string{`i.id`}
			}
			found, err := l.read(ctx, d, p, need, order...)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// read returns the first rows of a part in an order.
func (l firstRows) read(ctx context.Context, d *db.DB, p part, rows int, order ...string) ([]int64, error) {
	w, from := l.where.With(p.cond, p.args...), l.tables
	if p.link != "" {
		from = d.Joined(p.link, l.tables, `x.`+string(l.table)+`_id = i.id`)
	}
	return db.All(ctx, d, db.Value[int64], `SELECT i.id FROM `+from+w.SQL()+l.sorted(order...)+` LIMIT ?`, w.Args(rows)...)
}

// byPriorities reads the rows label by label, in the order of their priorities in
// the project. A row that matches a filter on labels has at least the priority of
// each of them, so the parts after these labels are empty and are not searched.
func (l firstRows) byPriorities(ctx context.Context, d *db.DB, rows int) ([]int64, error) {
	labels, err := db.All(ctx, d, scanPriority, `SELECT o.label_id, o.priority FROM label_priorities o WHERE o.project_id = ? ORDER BY o.priority LIMIT ?`, l.in.Project, maxRanges+1)
	if err != nil || rows > maxFirst || len(labels) > maxRanges || len(labels) > 0 && labels[len(labels)-1].value >= noPriority {
		return nil, err
	}
	links, key := string(l.table)+`_labels`, string(l.table)+`_id`
	without := func(ids []any) string {
		return `NOT EXISTS (SELECT 1 FROM ` + links + ` y WHERE y.` + key + ` = i.id AND y.label_id IN ` + db.In(len(ids)) + `)`
	}
	var groups [][]part
	var before []any // labels with a higher priority
	for len(labels) > 0 && !l.excluded(before) {
		same := slices.IndexFunc(labels, func(o priority) bool { return o.value != labels[0].value })
		if same < 0 {
			same = len(labels)
		}
		var group []part
		for _, o := range labels[:same] {
			p := part{link: links + ` x`, cond: `x.label_id = ?`, args: []any{o.label}}
			if len(before) > 0 {
				p.cond, p.args = p.cond+` AND `+without(before), append(p.args, before...)
			}
			group = append(group, p)
		}
		for _, o := range labels[:same] {
			before = append(before, o.label)
		}
		groups, labels = append(groups, group), labels[same:]
	}
	switch {
	case len(before) == 0:
		groups = append(groups, []part{{cond: `1 = 1`}})
	case !l.excluded(before):
		groups = append(groups, []part{{cond: without(before), args: before}})
	}
	return l.collect(ctx, d, rows, groups)
}

// excluded reports whether the filter excludes rows without any of the labels,
// because it requires one of them.
func (l firstRows) excluded(labels []any) bool {
	return slices.ContainsFunc(l.labels, func(required []int64) bool {
		return !slices.ContainsFunc(required, func(id int64) bool { return !slices.Contains(labels, any(id)) })
	})
}

// byMilestones reads the rows milestone by milestone, in the order of their due
// dates.
func (l firstRows) byMilestones(ctx context.Context, d *db.DB, rows int) ([]int64, error) {
	table := string(l.table) + `s`
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
	l.where = l.where.Without(inState(l.state)) // each part has its own condition on the state
	var groups [][]part
	var rest []part
	if l.milestones == nil {
		rest = l.states(nil)
	} else {
		used = slices.DeleteFunc(used, func(m due) bool { return !slices.Contains(l.milestones, m.id) })
	}
	for i, m := range used {
		parts := l.states(&m.id)
		switch {
		case m.date == "":
			rest = append(rest, parts...)
		case i > 0 && used[i-1].date == m.date:
			groups[len(groups)-1] = append(groups[len(groups)-1], parts...)
		default:
			groups = append(groups, parts)
		}
	}
	return l.collect(ctx, d, rows, append(groups, rest))
}

// states returns the parts with a milestone, or without one, for each state of the
// list: in the index, the state precedes the ID.
//
// The condition on the state is a range of one value. PostgreSQL drops columns that
// are equal to a constant from the sort order: with an equality, only the ID would be
// left, and PostgreSQL might scan the table by ID because it expects to find enough
// rows early.
func (l firstRows) states(milestone *int64) (list []part) {
	all := l.table.states()
	if l.state != "" {
		all = []State{l.state}
	}
	for _, state := range all {
		p := part{cond: `i.milestone_id IS NULL`, order: []string{`i.milestone_id`, `i.state`, `i.id`}}
		if milestone != nil {
			p.cond, p.args = `i.milestone_id = ?`, []any{*milestone}
		}
		p.cond, p.args = p.cond+` AND i.state >= ? AND i.state <= ?`, append(p.args, string(state), string(state))
		list = append(list, p)
	}
	return list
}

// due is a milestone with its due date.
type due struct {
	id   int64
	date string // may be empty
}

func scanDue(s db.Scanner) (due, error) {
	var m due
	err := s.Scan(&m.id, &m.date)
	return m, err
}

// priority is the priority of a label in a project.
type priority struct{ label, value int64 }

func scanPriority(s db.Scanner) (p priority, err error) {
	err = s.Scan(&p.label, &p.value)
	return p, err
}
