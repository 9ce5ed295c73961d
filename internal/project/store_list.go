package project

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
)

func (s *Service) groupsWhere(by actor.Actor, f GroupsFilter) db.Where {
	var w db.Where
	w.And("n.kind = 'group'")
	w.And("n.deleted_at IS NULL")
	least := f.MinLevel
	if f.Owned {
		least = max(least, Owner)
	}
	member, memberArgs := memberGroups(by.ID, s.today(), max(least, Minimal))
	inside, insideArgs := insideGroups(by.ID, s.today())
	switch {
	case least > NoAccess:
		w.And(member, memberArgs...)
	case by.Anonymous():
		w.And("n.visibility = 'public'")
	case !f.AllAvailable:
		w.And(anyOf(member, inside), append(memberArgs, insideArgs...)...)
	case by.Admin || by.Auditor:
	case by.External:
		w.And(anyOf("n.visibility = 'public'", member, inside), append(memberArgs, insideArgs...)...)
	default:
		w.And(anyOf("n.visibility IN ('public', 'internal')", member, inside), append(memberArgs, insideArgs...)...)
	}
	if f.Search != "" {
		w.And(anyOf(`fold(n.name) LIKE ? ESCAPE '\'`, `fold(n.path) LIKE ? ESCAPE '\'`), db.Like(f.Search), db.Like(f.Search))
	}
	if len(f.Skip) > 0 {
		w.And(`n.id NOT IN `+db.In(len(f.Skip)), db.Any(f.Skip)...)
	}
	if f.TopLevelOnly {
		w.And("n.parent_id IS NULL")
	}
	if f.Visibility != "" {
		w.And("n.visibility = ?", string(f.Visibility))
	}
	return w
}

func (s *Service) listGroups(ctx context.Context, w db.Where, order Sort, p db.Paging) (db.Page[*Namespace], error) {
	id := db.Order{Name: "n.id"}
	q := db.Query[*Namespace]{
		Columns: namespaceColumns, From: "namespaces n", Where: w, Desc: order.Desc, Scan: scanNamespace,
	}
	switch order.By {
	case "", "name":
		q.Order = []db.Order{{Name: "n.name", Text: true}, id}
		q.Keys = func(n *Namespace) []any { return []any{n.Name, n.ID} }
	case "path":
		q.Order = []db.Order{{Name: "n.path", Text: true}, id}
		q.Keys = func(n *Namespace) []any { return []any{n.Path, n.ID} }
	case "id":
		q.Order = []db.Order{id}
		q.Keys = func(n *Namespace) []any { return []any{n.ID} }
	default:
		return db.Page[*Namespace]{}, errs.Invalid("order_by does not have a valid value")
	}
	page, err := db.List(ctx, s.DB, q, p)
	if err != nil {
		return page, fmt.Errorf("list groups: %w", err)
	}
	return page, nil
}

// where are the conditions of a filter and of what the actor sees.
func (s *Service) where(by actor.Actor, f Filter) db.Where {
	var w db.Where
	w.And("p.deleted_at IS NULL")
	s.seen(&w, by, f)
	if f.Archived != nil {
		w.And("p.archived = ?", *f.Archived)
	}
	if f.Visibility != "" {
		w.And("p.visibility = ?", string(f.Visibility))
	}
	if f.Search != "" {
		conds, args := []string{`fold(p.name) LIKE ? ESCAPE '\'`, `fold(p.path) LIKE ? ESCAPE '\'`}, []any{db.Like(f.Search), db.Like(f.Search)}
		if f.Deep {
			conds, args = append(conds, `fold(p.full_path) LIKE ? ESCAPE '\'`), append(args, db.Like(f.Search))
		}
		w.And(anyOf(conds...), args...)
	}
	for _, topic := range f.Topics {
		w.And(`p.id IN (SELECT t.project_id FROM project_topics t WHERE lower(t.name) = lower(?))`, topic)
	}
	if f.TopicID != 0 {
		w.And(`p.id IN (SELECT t.project_id FROM project_topics t JOIN topics o ON lower(o.name) = lower(t.name) WHERE o.id = ?)`, f.TopicID)
	}
	if f.Language != "" {
		w.And(`p.id IN (SELECT l.project_id FROM project_languages l WHERE lower(l.name) = lower(?))`, f.Language)
	}
	w.Time("p.last_activity_at >= ?", f.ActiveAt[0])
	w.Time("p.last_activity_at <= ?", f.ActiveAt[1])
	w.Time("p.updated_at >= ?", f.UpdatedAt[0])
	w.Time("p.updated_at <= ?", f.UpdatedAt[1])
	if f.IDAfter != 0 {
		w.And("p.id > ?", f.IDAfter)
	}
	if f.IDBefore != 0 {
		w.And("p.id < ?", f.IDBefore)
	}
	if f.WithIssues {
		w.And("p.issues_access_level <> 'disabled'")
	}
	if f.WithMergeRequests {
		w.And("p.merge_requests_access_level <> 'disabled'")
	}
	if f.Storage != "" && by.Admin {
		w.And("p.storage = ?", f.Storage)
	}
	return w
}

// seen keeps to what the actor sees, and to what they are a member of where the
// filter asks for that.
func (s *Service) seen(w *db.Where, by actor.Actor, f Filter) {
	least := f.MinLevel
	if f.Owned {
		least = max(least, Owner)
	}
	switch {
	case f.Membership || least > NoAccess:
		cond, args := memberProjects(by.ID, s.today(), least)
		w.And(cond, args...)
	case by.Admin || by.Auditor:
	case by.Anonymous():
		w.And("p.visibility = 'public'")
	default:
		open := "p.visibility IN ('public', 'internal')"
		if by.External {
			open = "p.visibility = 'public'"
		}
		cond, args := memberProjects(by.ID, s.today(), Guest)
		w.And(anyOf(open, cond), args...)
	}
	if f.Starred {
		w.And(`p.id IN (SELECT s.project_id FROM stars s WHERE s.user_id = ?)`, by.ID)
	}
}
