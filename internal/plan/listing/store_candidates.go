package listing

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
)

const (
	// maxRanges is the maximum number of index ranges that candidates are read from,
	// and therefore of labels or milestones with the same name.
	maxRanges = 50
	// maxNames is the maximum number of labels, and of users, in a filter: each one
	// adds a condition.
	maxNames = 100
)

// Range is an index range with the IDs of issues or merge requests: a query without
// LIMIT and without duplicates, whose column is id, in the order of the index. Without ORDER BY,
// PostgreSQL may scan the table because it expects to find enough rows early.
type Range struct {
	Query string
	Args  []any
}

// Candidates are all issues or merge requests that match one condition of a list.
type Candidates []Range

// Area is the project or group that a list searches; all projects if both are 0.
type Area struct{ Project, Group int64 }

// named maps the names in a filter to IDs. A name with too many matches is missing.
type named struct{ users, labels, milestones map[string][]int64 }

// resolve looks up the names in a filter.
func resolve(ctx context.Context, d *db.DB, in Area, list ...*Match) error {
	for _, m := range list {
		if m.Milestone == "" && (m.MilestoneID == "0" || strings.EqualFold(m.MilestoneID, None)) { // by ID or title, it is the same
			m.Milestone, m.MilestoneID = None, ""
		}
		switch {
		case len(m.Labels) > maxNames:
			return errs.Invalid("A filter must have at most %d labels", maxNames)
		case len(m.AssigneeUsernames) > maxNames || len(m.Usernames) > maxNames:
			return errs.Invalid("A filter must have at most %d users", maxNames)
		}
		m.named = named{map[string][]int64{}, map[string][]int64{}, map[string][]int64{}}
		for _, name := range slices.Concat(m.AssigneeUsernames, m.Usernames, []string{m.AuthorUsername}) {
			if name == "" {
				continue
			}
			ids, err := findUserNamed(ctx, d, name)
			if err != nil {
				return err
			}
			m.named.users[name] = ids
		}
		for _, name := range m.Labels {
			if strings.EqualFold(name, None) || strings.EqualFold(name, Any) {
				continue
			}
			if err := m.named.find(ctx, d, in, "labels", name); err != nil {
				return err
			}
		}
		if name := m.Milestone; name != "" && !slices.ContainsFunc([]string{None, Any}, func(w string) bool { return strings.EqualFold(w, name) }) &&
			!slices.Contains([]string{Upcoming, "#upcoming", Started, "#started"}, name) {
			if err := m.named.find(ctx, d, in, "milestones", name); err != nil {
				return err
			}
		}
	}
	return nil
}

func findUserNamed(ctx context.Context, q db.Q, name string) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT u.id FROM users u WHERE lower(u.username) = lower(?)`, name)
}

// find resolves the name of labels or milestones. If there are too many, only those
// of the project and its ancestor groups are used.
func (n named) find(ctx context.Context, q db.Q, in Area, table, name string) error {
	column, found := "name", n.labels
	if table == "milestones" {
		column, found = "title", n.milestones
	}
	query := `SELECT l.id FROM ` + table + ` l WHERE l.` + column + ` = ?`
	ids, err := db.All(ctx, q, db.Value[int64], query+` LIMIT ?`, name, maxRanges+1)
	if err == nil && len(ids) > maxRanges && in.Project != 0 {
		ids, err = db.All(ctx, q, db.Value[int64], query+` AND (l.project_id = ? OR l.namespace_id IN
			(SELECT t.ancestor_id FROM namespace_tree t JOIN projects p ON p.namespace_id = t.descendant_id WHERE p.id = ?)) LIMIT ?`, name, in.Project, in.Project, maxRanges+1)
	}
	if err == nil && len(ids) <= maxRanges {
		found[name] = ids
	}
	return err
}

// Rows returns the index range of the issues or merge requests in an area that match
// a condition; order has the columns of the index.
func (in Area) Rows(t Table, order, cond string, args ...any) Range {
	query := `SELECT i.id AS id FROM ` + string(t) + `s i WHERE `
	if in.Project != 0 {
		query, args = query+`i.project_id = ? AND `, append([]any{in.Project}, args...)
	}
	return Range{query + cond + ` ORDER BY ` + order, args}
}

// UsersOf returns the candidates for a condition on an assignee or reviewer.
func UsersOf(t Table, as Relation, id int64) Candidates {
	key := `a.` + string(t) + `_id`
	return Candidates{{`SELECT ` + key + ` AS id FROM ` + as.Table(t) + ` a WHERE a.user_id = ? ORDER BY ` + key, []any{id}}}
}

// sources returns the candidates for each condition of a filter.
func (f Filter) sources(t Table, by actor.Actor, in Area, order string) (list []Candidates) {
	switch f.Scope {
	case "created_by_me":
		list = append(list, Candidates{in.Rows(t, `i.author_id, i.id`, `i.author_id = ?`, by.ID)})
	case "assigned_to_me":
		list = append(list, UsersOf(t, Assignees, by.ID))
	case "reviews_for_me":
		list = append(list, UsersOf(t, Reviewers, by.ID))
	}
	if f.State != "" && in.Project != 0 && order != "created_at" {
		list = append(list, Candidates{in.Rows(t, `i.created_at, i.id`, inState(f.State))})
	}
	if f.CreatedAt != ([2]*time.Time{}) && order != "created_at" {
		list = append(list, in.times(t, `i.created_at`, f.CreatedAt))
	}
	if f.UpdatedAt != ([2]*time.Time{}) && order != "updated_at" {
		list = append(list, in.times(t, `i.updated_at`, f.UpdatedAt))
	}
	return list
}

// times returns the candidates for a condition on a time.
func (in Area) times(t Table, column string, within [2]*time.Time) Candidates {
	var w db.Where
	w.Time(column+` >= ?`, within[0])
	w.Time(column+` <= ?`, within[1])
	return Candidates{in.Rows(t, column+`, i.id`, w.Cond(), w.Args()...)}
}

// sources returns the candidates for each condition of a match. state is the state
// of the list, or empty for all.
func (m Match) sources(t Table, in Area, state State) (list []Candidates) {
	for _, name := range m.Labels {
		if ids, ok := m.named.labels[name]; ok {
			source := Candidates{}
			for _, id := range ids {
				key := `x.` + string(t) + `_id`
				source = append(source, Range{`SELECT ` + key + ` AS id FROM ` + string(t) + `_labels x WHERE x.label_id = ? ORDER BY ` + key, []any{id}})
			}
			list = append(list, source)
		}
	}
	if ids, ok := m.named.milestones[m.Milestone]; ok {
		list = append(list, ofMilestones(t, ids, state))
	}
	if strings.EqualFold(m.Milestone, None) && in.Project != 0 {
		list = append(list, Candidates{in.Rows(t, byMilestone, `i.milestone_id IS NULL`+andState(state))})
	}
	if id, err := strconv.ParseInt(m.MilestoneID, 10, 64); err == nil && id != 0 {
		list = append(list, ofMilestones(t, []int64{id}, state))
	}
	authors, ok := m.named.users[m.AuthorUsername]
	if m.AuthorID != 0 {
		authors, ok = []int64{m.AuthorID}, true
	}
	if ok {
		source := Candidates{}
		for _, id := range authors {
			source = append(source, in.Rows(t, `i.author_id, i.id`, `i.author_id = ?`, id))
		}
		list = append(list, source)
	}
	list = append(list, m.named.Related(t, Assignees, m.AssigneeID, m.AssigneeUsernames)...)
	if m.Reaction != "" && !strings.EqualFold(m.Reaction, None) {
		key := `w.` + string(t) + `_id`
		source := Range{`SELECT DISTINCT ` + key + ` AS id FROM award_emoji w WHERE w.user_id = ? AND ` + key + ` IS NOT NULL`, []any{m.ReactionBy}}
		if !strings.EqualFold(m.Reaction, Any) {
			source.Query, source.Args = source.Query+` AND w.name = ?`, append(source.Args, reactionName(m.Reaction))
		}
		list = append(list, Candidates{source})
	}
	if weight, err := strconv.ParseInt(m.Weight, 10, 64); t == Issues && in.Project != 0 && err == nil {
		list = append(list, Candidates{in.Rows(t, ByWeight+`, i.id`, ByWeight+` = ?`, weight)})
	}
	return list
}

// milestones returns the milestones of a match; nil if it has none, or if their IDs
// are unknown.
func (m Match) milestones() []int64 {
	if ids, ok := m.named.milestones[m.Milestone]; ok {
		return append([]int64{}, ids...)
	}
	if id, err := strconv.ParseInt(m.MilestoneID, 10, 64); err == nil && id != 0 {
		return []int64{id}
	}
	return nil
}

// byMilestone has the columns of the indexes on milestones.
const byMilestone = `i.milestone_id, i.state, i.id`

// ofMilestones returns the candidates for a condition on milestones. The state of
// the list, which the indexes contain, reduces their number.
func ofMilestones(t Table, ids []int64, state State) Candidates {
	source := Candidates{}
	for _, id := range ids {
		source = append(source, Area{}.Rows(t, byMilestone, `i.milestone_id = ?`+andState(state), id))
	}
	return source
}

// andState returns an additional condition on the state; empty for all states.
func andState(state State) string {
	if state == "" {
		return ""
	}
	return ` AND ` + inState(state)
}

// Related returns the candidates for conditions on assignees or reviewers, by ID
// and by username.
func (n named) Related(t Table, as Relation, given string, names []string) (list []Candidates) {
	if id, err := strconv.ParseInt(given, 10, 64); err == nil && id != 0 {
		list = append(list, UsersOf(t, as, id))
	}
	for _, name := range names {
		ids, ok := n.users[name]
		switch {
		case ok && len(ids) == 0:
			list = append(list, Candidates{})
		case ok:
			list = append(list, UsersOf(t, as, ids[0]))
		}
	}
	return list
}

// empty reports whether a match has no condition.
func (m Match) empty(t Table) bool {
	empty := !m.More
	m.Conditions(t, time.Time{}, func(string, ...any) { empty = false })
	return empty
}

// others returns the candidates for negated conditions.
func (m Match) others(t Table, in Area) (list []Candidates) {
	if in.Project == 0 {
		return nil
	}
	author := m.AuthorID
	if ids := m.named.users[m.AuthorUsername]; len(ids) == 1 {
		author = ids[0]
	}
	if author != 0 {
		list = append(list, Candidates{in.Rows(t, `i.author_id, i.id`, `i.author_id < ?`, author), in.Rows(t, `i.author_id, i.id`, `i.author_id > ?`, author)})
	}
	if ids := m.named.milestones[m.Milestone]; len(ids) == 1 {
		list = append(list, Candidates{
			in.Rows(t, byMilestone, `i.milestone_id IS NULL`), in.Rows(t, byMilestone, `i.milestone_id < ?`, ids[0]),
			in.Rows(t, byMilestone, `i.milestone_id > ?`, ids[0]),
		})
	}
	return list
}

// Select resolves the names in a filter and finds the candidates for its list in an
// area, using the most selective condition. more returns additional candidates and
// is called after the names are resolved.
func Select(ctx context.Context, d *db.DB, by actor.Actor, t Table, in Area, f Filter, order string, m, not *Match, more func() []Candidates) (Selection, error) {
	found := Selection{table: t, in: in, state: f.State, search: f.Search != ""}
	switch f.Scope {
	case "assigned_to_me":
		found.relation, found.user = Assignees.Table(t), by.ID
	case "reviews_for_me":
		found.relation, found.user = Reviewers.Table(t), by.ID
	}
	m.ReactionBy, not.ReactionBy = by.ID, by.ID
	if err := resolve(ctx, d, in, m, not); err != nil {
		return found, err
	}
	list := slices.Concat(more(), m.sources(t, in, f.State))
	found.named = len(list)
	list = slices.Concat(list, f.sources(t, by, in, order), not.others(t, in))
	found.conditions = list
	found.filtered = len(list) > 0 || !not.empty(t)
	for _, name := range m.Labels {
		if ids, ok := m.named.labels[name]; ok {
			found.labels = append(found.labels, ids)
		}
	}
	found.milestones = m.milestones()
	if found.byParts(order) {
		list = append(list, Candidates{in.Rows(t, `i.id`, `1 = 1`)})
	}
	if in.Group != 0 {
		projects, err := db.All(ctx, d, db.Value[int64], `SELECT p.id FROM projects p WHERE p.namespace_id IN
			(SELECT t.descendant_id FROM namespace_tree t WHERE t.ancestor_id = ?) LIMIT ?`, in.Group, maxRanges+1)
		if err != nil {
			return found, err
		}
		all := Candidates{}
		for _, id := range projects {
			all = append(all, Area{Project: id}.Rows(t, `i.created_at, i.id`, `1 = 1`))
		}
		list, found.projects = append(list, all), projects
	}
	var err error
	found.Among, err = Rarest(ctx, d, list)
	if err != nil || f.Search == "" || found.Among != nil && len(found.Among) == 0 {
		return found, err
	}
	texts, err := d.WithText(ctx, string(t)+"s", f.Search, f.columns("")...)
	if err == nil && texts != nil && (found.Among == nil || len(texts) < len(found.Among)) {
		found.Among = texts
	}
	return found, err
}

// Rarest returns the IDs of the smallest set of candidates, in ascending order;
// nil if all sets are large.
func Rarest(ctx context.Context, d *db.DB, list []Candidates) (found []int64, err error) {
	limit := db.MaxCandidates
	for _, source := range list {
		if len(source) > maxRanges {
			continue
		}
		ids, few := []int64{}, true
		for _, r := range source {
			var part []int64
			if part, few, err = d.Few(ctx, r.Query, r.Args, limit-len(ids)); err != nil {
				return nil, err
			}
			if ids = append(ids, part...); !few {
				break
			}
		}
		if !few {
			continue
		}
		slices.Sort(ids)
		found = slices.Compact(ids)
		if limit = len(found); limit == 0 {
			break
		}
	}
	return found, nil
}

// known reports whether the labels with a name were resolved.
func (n named) known(label string) bool {
	_, ok := n.labels[label]
	return ok
}

// UserNamed returns the IDs of users with a username, if it was resolved.
func (n named) UserNamed(name string) ([]int64, bool) {
	ids, ok := n.users[name]
	return ids, ok
}
