package activity

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"svc/internal/db"
)

const eventColumns = `e.id, e.project_id, e.author_id, e.action, e.audience, e.subject_type, COALESCE(e.subject_id, 0),
	e.target_type, e.target_id, e.target_iid, e.target_title, e.push, e.created_at`

func scanEvent(s db.Scanner) (*Event, error) {
	var e Event
	var push string
	err := s.Scan(&e.ID, &e.ProjectID, &e.AuthorID, (*string)(&e.Action), (*int64)(&e.Audience), &e.Subject.Type, &e.Subject.ID,
		&e.TargetType, &e.TargetID, &e.TargetIID, &e.TargetTitle, &push, db.Time(&e.CreatedAt))
	if err == nil && push != "" {
		e.Push = &Push{}
		err = json.Unmarshal([]byte(push), e.Push)
	}
	return &e, err
}

func insertEvent(ctx context.Context, q db.Q, e Event, push string) error {
	var subject *int64
	if e.Subject.ID != 0 {
		subject = &e.Subject.ID
	}
	_, err := q.ExecContext(ctx, `
		INSERT INTO activity_events (project_id, author_id, action, audience, subject_type, subject_id, target_type, target_id, target_iid,
			target_title, push, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		e.ProjectID, e.AuthorID, string(e.Action), int64(e.Audience), e.Subject.Type, subject, e.TargetType, e.TargetID, e.TargetIID,
		e.TargetTitle, push, e.CreatedAt)
	return err
}

func saveTitle(ctx context.Context, q db.Q, of Subject, title string) error {
	_, err := q.ExecContext(ctx, `UPDATE activity_events SET target_title = ? WHERE subject_type = ? AND subject_id = ?`, title, of.Type, of.ID)
	return err
}

func saveAudience(ctx context.Context, q db.Q, of Subject, from, to Audience) error {
	_, err := q.ExecContext(ctx, `UPDATE activity_events SET audience = ? WHERE subject_type = ? AND subject_id = ? AND audience = ?`,
		int64(to), of.Type, of.ID, int64(from))
	return err
}

func deleteEvents(ctx context.Context, q db.Q, kind string, ids []int64, target *int64) error {
	if len(ids) == 0 {
		return nil
	}
	query, args := `DELETE FROM activity_events WHERE subject_type = ? AND subject_id IN `+db.In(len(ids)), append([]any{kind}, db.Any(ids)...)
	if target != nil {
		query, args = query+` AND target_id = ?`, append(args, *target)
	}
	_, err := q.ExecContext(ctx, query, args...)
	return err
}

func deleteOld(ctx context.Context, q db.Q, before time.Time, limit int) (int64, error) {
	return db.ExecCount(ctx, q, `
		DELETE FROM activity_events WHERE id IN (SELECT id FROM activity_events WHERE created_at < ? ORDER BY created_at LIMIT ?)`, before, limit)
}

// projectsOf are the projects in which a user did something. It leaps from one
// to the next, so that it costs by their number and not by that of their acts.
const projectsOf = `
	WITH RECURSIVE acted (id) AS (
		SELECT min(project_id) FROM activity_events WHERE author_id = ?
		UNION ALL
		SELECT (SELECT min(e.project_id) FROM activity_events e WHERE e.author_id = ? AND e.project_id > acted.id) FROM acted WHERE acted.id IS NOT NULL
	)
	SELECT acted.id FROM acted WHERE acted.id IS NOT NULL`

func findProjects(ctx context.Context, q db.Q, userID int64) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], projectsOf, userID, userID)
}

func findContributed(ctx context.Context, q db.Q, userID int64, since time.Time) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], projectsOf+`
		AND EXISTS (SELECT 1 FROM activity_events e WHERE e.author_id = ? AND e.project_id = acted.id AND e.created_at >= ? AND `+contributed+`)`, userID, userID, userID, since)
}

func changeAuthor(ctx context.Context, q db.Q, from, to int64) error {
	_, err := q.ExecContext(ctx, `UPDATE activity_events SET author_id = ? WHERE author_id = ?`, to, from)
	return err
}

// MaxLanes is the maximum number of projects for which a page is assembled from
// the newest events of each. With more projects, many of the newest events match.
const MaxLanes = 100

// search is a list of events.
type search struct {
	db       *db.DB
	author   int64
	lanes    []lane
	filter   Filter
	mine     string // condition on those that concern the actor
	mineArgs []any
}

// page reads one page, and the total if it is shown.
func (s *search) page(ctx context.Context, d *db.DB, p db.Paging) (db.Page[*Event], error) {
	page := db.Page[*Event]{Items: []*Event{}}
	if len(s.lanes) == 0 {
		return page, nil
	}
	order := " ORDER BY e.created_at DESC, e.id DESC"
	if s.filter.Oldest {
		order = " ORDER BY e.created_at, e.id"
	}
	all := s.where(s.lanes)
	// Which events the page has is found in the indexes; only those are read.
	find, args := `SELECT e.id FROM activity_events e`+all.SQL(), all.Args()
	if n := len(s.lanes); n > 1 && n <= MaxLanes {
		var parts []string
		args = nil
		// As a number in the text the planner of PostgreSQL knows it once and for all,
		// and does not plan each page again.
		limit := " LIMIT " + strconv.Itoa(p.Offset+p.Limit+1)
		for _, l := range s.lanes {
			w := s.where([]lane{l})
			parts = append(parts, `SELECT id, created_at FROM (SELECT e.id, e.created_at FROM activity_events e`+w.SQL()+order+limit+`) AS lane`)
			args = append(args, w.Args()...)
		}
		find = `SELECT e.id FROM (` + strings.Join(parts, " UNION ALL ") + `) AS e`
	}
	items, err := db.All(ctx, d, scanEvent, `
		SELECT `+eventColumns+` FROM activity_events e WHERE e.id IN (`+find+order+` LIMIT ? OFFSET ?)`+order, append(args, p.Limit+1, p.Offset)...)
	if err != nil {
		return page, err
	}
	if len(items) > p.Limit {
		items, page.More = items[:p.Limit], true
	}
	page.Items = items
	if !page.More && (len(items) > 0 || p.Offset == 0) {
		page.Total = p.Offset + len(items)
		page.Over = page.Total > db.CountLimit
		return page, nil
	}
	page.Total, page.Over, err = d.Total(ctx, `activity_events e`+all.SQL(), all.Args()...)
	return page, err
}

// contributed excludes events about projects and memberships.
const contributed = `e.action NOT IN ('joined', 'left', 'expired') AND e.target_type <> 'Project'`

// days counts the events of each day.
func (s *search) days(ctx context.Context, q db.Q) (map[string]int, error) {
	found := map[string]int{}
	if len(s.lanes) == 0 {
		return found, nil
	}
	w := s.where(s.lanes)
	w.And(contributed)
	type row struct{ day, n int64 }
	list, err := db.All(ctx, q, func(s db.Scanner) (r row, err error) {
		err = s.Scan(&r.day, &r.n)
		return r, err
	}, `SELECT e.created_at / 86400000000, count(*) FROM activity_events e`+w.SQL()+` GROUP BY e.created_at / 86400000000`, w.Args()...)
	for _, r := range list {
		found[time.Unix(r.day*86400, 0).UTC().Format(time.DateOnly)] = int(r.n)
	}
	return found, err
}

// where are the conditions on the events of some lanes.
func (s *search) where(lanes []lane) db.Where {
	var w db.Where
	if s.author != 0 {
		w.And(`e.author_id = ?`, s.author)
	}
	if len(lanes) == 1 {
		if lanes[0].project == 0 {
			w.And(`e.project_id IS NULL`)
		} else {
			w.And(`e.project_id = ?`, lanes[0].project)
		}
		cond, args := s.may(lanes[0])
		w.And(cond, args...)
	} else {
		s.group(&w, lanes)
	}
	if f := s.filter; f.Action != "" {
		w.And(`e.action = ?`, string(f.Action))
	}
	if types := s.filter.TargetTypes; len(types) > 0 {
		w.And(`e.target_type IN `+db.In(len(types)), db.Any(types)...)
	}
	w.Time(`e.created_at < ?`, s.filter.Before)
	w.Time(`e.created_at >= ?`, s.filter.After)
	return w
}

// group names the projects of many lanes by what may be known there: there are
// few kinds of that.
func (s *search) group(w *db.Where, lanes []lane) {
	var kinds []lane
	ids := map[lane][]int64{}
	for _, l := range lanes {
		if l.project == 0 {
			continue
		}
		kind := lane{mask: l.mask, mine: l.mine}
		if ids[kind] == nil {
			kinds = append(kinds, kind)
		}
		ids[kind] = append(ids[kind], l.project)
	}
	var conds []string
	var args []any
	for _, l := range lanes {
		if l.project == 0 {
			cond, more := s.may(l)
			conds, args = append(conds, `e.project_id IS NULL AND (`+cond+`)`), append(args, more...)
		}
	}
	for _, kind := range kinds {
		cond, more := s.may(kind)
		in, list := s.db.OneOf(`e.project_id`, ids[kind])
		conds = append(conds, in+` AND (`+cond+`)`)
		args = append(append(args, list...), more...)
	}
	w.And(`(`+strings.Join(conds, `) OR (`)+`)`, args...)
}

// may is the condition on events of a lane that may be known.
func (s *search) may(l lane) (string, []any) {
	cond, args := `(e.audience & ?) <> 0`, []any{int64(l.mask)}
	if l.mine && s.mine != "" {
		cond += ` OR e.audience = ? AND (` + s.mine + `)`
		args = append(append(args, int64(Planners)), s.mineArgs...)
	}
	return cond, args
}
