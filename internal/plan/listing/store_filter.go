package listing

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/emoji"
	"svc/internal/errs"
)

// Narrow adds the conditions of a filter on issues or merge requests i of
// projects p.
func Narrow(w *db.Where, t Table, by actor.Actor, f Filter) {
	if f.State != "" {
		w.And(inState(f.State))
	}
	switch f.Scope {
	case "created_by_me":
		w.And(`i.author_id = ?`, by.ID)
	case "assigned_to_me":
		w.And(RelatedTo(t, Assignees), by.ID)
	case "reviews_for_me":
		w.And(RelatedTo(t, Reviewers), by.ID)
	}
	if f.Search != "" {
		w.Contains(f.Search, f.columns("i.")...)
	}
	w.Time(`i.created_at >= ?`, f.CreatedAt[0])
	w.Time(`i.created_at <= ?`, f.CreatedAt[1])
	w.Time(`i.updated_at >= ?`, f.UpdatedAt[0])
	w.Time(`i.updated_at <= ?`, f.UpdatedAt[1])
	if f.Live {
		w.And(`NOT p.archived`)
	}
}

// inState returns the condition on the state. The state is a literal and not an
// argument, because only a literal matches the partial indexes on opened rows.
func inState(state State) string {
	if !slices.Contains(MergeRequests.states(), state) {
		return `1 = 0`
	}
	return `i.state = '` + string(state) + `'`
}

// columns returns the columns that a search uses.
func (f Filter) columns(alias string) (list []string) {
	either := !f.InTitle && !f.InText
	if f.InTitle || either {
		list = append(list, alias+"title")
	}
	if f.InText || either {
		list = append(list, alias+"description")
	}
	return list
}

// Not returns a function that adds negated conditions to w.
func Not(w *db.Where) func(cond string, args ...any) {
	return func(cond string, args ...any) { w.And(Negated(cond), args...) }
}

// Negated returns a condition that is true if cond is false or NULL.
func Negated(cond string) string { return `NOT COALESCE((` + cond + `), FALSE)` }

// RelatedTo returns the condition on issues or merge requests i with a given
// assignee or reviewer.
func RelatedTo(t Table, as Relation) string { return anyUser(t, as, `a.user_id = ?`) }

func anyUser(t Table, as Relation, and string) string {
	cond := `EXISTS (SELECT 1 FROM ` + as.Table(t) + ` a WHERE a.` + string(t) + `_id = i.id`
	if and != "" {
		cond += ` AND ` + and
	}
	return cond + `)`
}

// MatchUsers adds the conditions on the assignees or reviewers of issues or merge
// requests i: an ID, None or Any, and usernames.
func (n named) MatchUsers(t Table, as Relation, given string, names []string, and func(cond string, args ...any)) {
	switch id, err := strconv.ParseInt(given, 10, 64); {
	case given == "":
	case strings.EqualFold(given, None), err == nil && id == 0:
		and(`NOT ` + anyUser(t, as, ``))
	case strings.EqualFold(given, Any):
		and(anyUser(t, as, ``))
	default:
		and(RelatedTo(t, as), id)
	}
	for _, name := range names {
		if ids, ok := n.users[name]; ok {
			and(anyUser(t, as, `a.user_id IN `+db.In(len(ids))), db.Any(ids)...)
			continue
		}
		and(anyUser(t, as, `a.user_id IN (SELECT u.id FROM users u WHERE lower(u.username) = lower(?))`), name)
	}
}

// Conditions calls and for each condition of a match on issues or merge requests i.
// now determines which milestones are upcoming or started.
func (m Match) Conditions(t Table, now time.Time, and func(cond string, args ...any)) {
	labels := string(t) + `_labels x`
	own := `x.` + string(t) + `_id = i.id`
	if len(m.IIDs) > 0 {
		and(`i.iid IN `+db.In(len(m.IIDs)), db.Any(m.IIDs)...)
	}
	for _, name := range m.Labels {
		switch {
		case strings.EqualFold(name, None):
			and(`NOT EXISTS (SELECT 1 FROM ` + labels + ` WHERE ` + own + `)`)
		case strings.EqualFold(name, Any):
			and(`EXISTS (SELECT 1 FROM ` + labels + ` WHERE ` + own + `)`)
		case m.named.known(name):
			ids := m.named.labels[name]
			and(`EXISTS (SELECT 1 FROM `+labels+` WHERE `+own+` AND x.label_id IN `+db.In(len(ids))+`)`, db.Any(ids)...)
		default:
			and(`EXISTS (SELECT 1 FROM `+labels+` JOIN labels l ON l.id = x.label_id WHERE `+own+` AND l.name = ?)`, name)
		}
	}
	for i, given := range []string{m.Milestone, m.MilestoneID} {
		if given != "" {
			cond, args := milestoneMatch(given, i == 1, now)
			if ids, ok := m.named.milestones[given]; ok && i == 0 {
				cond, args = `i.milestone_id IN `+db.In(len(ids)), db.Any(ids)
			}
			and(cond, args...)
		}
	}
	if m.ReleaseTag != "" {
		and(`i.milestone_id IN (SELECT y.milestone_id FROM release_milestones y JOIN releases r ON r.id = y.release_id
			WHERE r.project_id = i.project_id AND r.tag = ?)`, m.ReleaseTag)
	}
	if m.AuthorID != 0 {
		and(`i.author_id = ?`, m.AuthorID)
	}
	if ids, ok := m.named.users[m.AuthorUsername]; ok {
		and(`i.author_id IN `+db.In(len(ids)), db.Any(ids)...)
	} else if m.AuthorUsername != "" {
		and(`i.author_id IN (SELECT u.id FROM users u WHERE lower(u.username) = lower(?))`, m.AuthorUsername)
	}
	m.named.MatchUsers(t, Assignees, m.AssigneeID, m.AssigneeUsernames, and)
	matchReaction(t, m, and)
	switch weight, err := strconv.ParseInt(m.Weight, 10, 64); {
	case m.Weight == "" || t != Issues:
	case strings.EqualFold(m.Weight, Any):
		and(`i.weight IS NOT NULL`)
	case err == nil:
		and(ByWeight+` = ?`, weight)
	default:
		and(`i.weight IS NULL`)
	}
}

// matchReaction adds the condition on issues or merge requests i with a reaction
// of the user ReactionBy.
func matchReaction(t Table, m Match, and func(cond string, args ...any)) {
	if m.Reaction == "" {
		return
	}
	own := `SELECT w.` + string(t) + `_id FROM award_emoji w WHERE w.user_id = ? AND w.` + string(t) + `_id IS NOT NULL`
	switch {
	case strings.EqualFold(m.Reaction, None):
		and(`i.id NOT IN (`+own+`)`, m.ReactionBy)
	case strings.EqualFold(m.Reaction, Any):
		and(`i.id IN (`+own+`)`, m.ReactionBy)
	default:
		and(`i.id IN (`+own+` AND w.name = ?)`, m.ReactionBy, reactionName(m.Reaction))
	}
}

// reactionName returns the name under which a reaction is stored.
func reactionName(given string) string {
	if e := emoji.Find(given); e != nil {
		return e.Name
	}
	return given
}

// milestoneMatch returns the condition on the milestone of issues.
func milestoneMatch(given string, id bool, now time.Time) (string, []any) {
	today := now.UTC().Format(time.DateOnly)
	with := `i.milestone_id IN (SELECT m.id FROM milestones m WHERE `
	switch number, err := strconv.ParseInt(given, 10, 64); {
	case strings.EqualFold(given, None), id && err == nil && number == 0:
		return `i.milestone_id IS NULL`, nil
	case strings.EqualFold(given, Any):
		return `i.milestone_id IS NOT NULL`, nil
	case given == Upcoming || given == "#upcoming":
		return with + `m.state = 'active' AND m.due_date > ?)`, []any{today}
	case given == Started || given == "#started":
		return with + `m.state = 'active' AND m.start_date <= ?)`, []any{today}
	case id:
		return `i.milestone_id = ?`, []any{number}
	}
	return with + `m.title = ?)`, []any{given}
}

// ByWeight is the weight of an issue i, which can be NULL, as in the index for
// sorting.
const ByWeight = `COALESCE(i.weight, -1)`

// noPriority is the sort key of objects without a prioritized label.
const noPriority = 1_000_000_000

// OrderBy returns the column that a list of issues or merge requests i is sorted
// by. Invalid.
func OrderBy(t Table, by string) (db.Order, error) {
	switch by {
	case "", "created_at":
		return db.Order{Name: "i.created_at"}, nil
	case "updated_at":
		return db.Order{Name: "i.updated_at"}, nil
	case "title":
		return db.Order{Name: "i.title", Text: true}, nil
	case "popularity":
		return db.Order{Name: "i.upvotes"}, nil
	case "milestone_due":
		return db.Order{Name: "COALESCE((SELECT m.due_date FROM milestones m WHERE m.id = i.milestone_id), '9999')", Text: true}, nil
	case "priority", "label_priority":
		return db.Order{Name: `COALESCE((SELECT min(o.priority) FROM ` + string(t) + `_labels x JOIN label_priorities o ON o.label_id = x.label_id
			WHERE x.` + string(t) + `_id = i.id AND o.project_id = i.project_id), ` + strconv.Itoa(noPriority) + `)`}, nil
	}
	return db.Order{}, errs.Invalid("order_by does not have a valid value")
}

// TotalStates counts the issues or merge requests i in tables by state, each up to
// db.CountLimit + 1. The counts are cached until the next write.
func TotalStates(ctx context.Context, d *db.DB, tables string, w db.Where, found Selection, states map[State]*int64) error {
	if found.Among != nil && len(found.Among) == 0 {
		return nil
	}
	var candidates []any
	if found.Among != nil {
		tables, candidates = d.Among(tables, "i.id", found.Among)
	} else {
		behind, args, err := found.Behind(ctx, d)
		if err != nil {
			return err
		}
		if behind != "" {
			tables, candidates = d.Behind(behind, tables, "i.id"), args
		}
	}
	for state, n := range states {
		var of db.Where
		of.And(w.Cond(), w.Args()...)
		of.And(`i.state = ?`, string(state))
		total, over, err := d.Total(ctx, tables+of.SQL(), append(slices.Clone(candidates), of.Args()...)...)
		if err != nil {
			return err
		}
		if *n = int64(total); over {
			*n = db.CountLimit + 1
		}
	}
	return nil
}
