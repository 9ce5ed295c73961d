package project

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
)

func (s *Service) groupsWhere(by actor.Actor, f GroupsFilter) db.Where {
	var w db.Where
	w.And("n.kind = 'group'")
	owned, ownedArgs := "", []any(nil)
	if !by.Admin {
		owned, ownedArgs = memberGroups(by.ID, s.today(), Owner)
	}
	f.Marked.match(&w, `n`, groupMarked, f.MarkedOn, owned, ownedArgs)
	least := f.MinLevel
	if f.Owned {
		least = max(least, Owner)
	}
	visible, args := visibleGroups(by, s.today())
	switch {
	case least > NoAccess:
		visible, args = memberGroups(by.ID, s.today(), least)
	case !f.AllAvailable && !by.Anonymous():
		visible, args = joinedGroups(by.ID, s.today())
	}
	w.And(visible, args...)
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
	groupAttributes.having(&w, by, "n.id", f.Attributes)
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

// where returns the conditions of a filter, limited to projects that the actor can
// see.
func (s *Service) where(by actor.Actor, f Filter) db.Where {
	var w db.Where
	owned, ownedArgs := "", []any(nil)
	if !by.Admin {
		owned, ownedArgs = memberProjects(by.ID, s.today(), Owner)
	}
	f.present(&w, owned, ownedArgs)
	s.seen(&w, by, f)
	if f.Archived != nil {
		w.And("p.archived = ?", *f.Archived)
	}
	if f.Visibility != "" {
		w.And("p.visibility = ?", string(f.Visibility))
	}
	if f.Search != "" {
		columns := []string{"p.name", "p.path", "p.description"}
		if f.Deep {
			columns = append(columns, "p.full_path")
		}
		w.Text("projects", f.Search, columns...)
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
	projectAttributes.having(&w, by, "p.id", f.Attributes)
	return w
}

// seen limits w to projects that the actor can see or, if requested, is a member
// of.
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
		onlyStarred(w, by.ID)
	}
}

// listProjects returns a page of projects. Invalid for an unknown order;
// NotAllowed for an order without keyset pagination.
func listProjects(ctx context.Context, d *db.DB, w db.Where, order Sort, p db.Paging) (db.Page[*Project], error) {
	id := db.Order{Name: "p.id"}
	q := db.Query[*Project]{
		Columns: projectColumns, From: projectTables, CountFrom: "projects p", Where: w, Desc: order.Desc, Scan: scanProject,
		Order: []db.Order{id}, Keys: func(p *Project) []any { return []any{p.ID} },
	}
	switch by := order.By; {
	case by == "" || by == "id":
	case slices.Contains([]string{"name", "path"}, by):
		q.Order = []db.Order{{Name: "p." + by, Text: true}, id}
	case slices.Contains([]string{"created_at", "updated_at", "last_activity_at", "star_count"}, by):
		q.Order = []db.Order{{Name: "p." + by}, id}
	default:
		return db.Page[*Project]{}, errs.Invalid("order_by does not have a valid value")
	}
	if p.Keyset && len(q.Order) > 1 {
		return db.Page[*Project]{}, errs.NotAllowed("Keyset pagination is not yet available for this type of request")
	}
	return db.List(ctx, d, q, p)
}

// onlyBelow limits w to the direct subgroups of a group, or to all descendants.
func onlyBelow(w *db.Where, id int64, descendants bool) {
	if descendants {
		w.And(`n.id <> ? AND n.id IN `+below, id, id)
		return
	}
	w.And(`n.parent_id = ?`, id)
}

// onlyInGroup limits w to the projects of a group.
func onlyInGroup(w *db.Where, id int64, g GroupFilter, today string) {
	cond, args := `p.namespace_id = ?`, []any{id}
	if g.Subgroups {
		cond = `p.namespace_id IN ` + below
	}
	shared := `p.id IN (SELECT s.project_id FROM group_shares s WHERE s.group_id = ? AND s.project_id IS NOT NULL AND ` + activeShare + `)`
	switch {
	case g.OnlyShared:
		cond, args = shared, []any{id, today}
	case g.WithShared:
		cond, args = anyOf(cond, shared), append(args, id, today)
	}
	w.And(cond, args...)
}

func onlyInNamespace(w *db.Where, id int64) { w.And(`p.namespace_id = ?`, id) }

// onlyStarred limits w to the projects that a user has starred.
func onlyStarred(w *db.Where, userID int64) {
	w.And(`p.id IN (SELECT s.project_id FROM stars s WHERE s.user_id = ?)`, userID)
}

func onlyIDs(w *db.Where, ids []int64) { w.And(`p.id IN `+db.In(len(ids)), db.Any(ids)...) }

// onlyForks limits w to the forks of a project.
func onlyForks(w *db.Where, id int64) { w.And(`p.forked_from_id = ?`, id) }

// listNamespaces returns the namespaces in which the actor is a member.
func listNamespaces(ctx context.Context, d *db.DB, by actor.Actor, f NamespaceFilter, today string, p db.Paging) (db.Page[*Namespace], error) {
	var w db.Where
	w.And("n.deleted_at IS NULL")
	if !by.Admin || f.OwnedOnly {
		least := Guest
		if f.OwnedOnly {
			least = Owner
		}
		member, args := memberGroups(by.ID, today, least)
		w.And(anyOf("n.user_id = ?", member), append([]any{by.ID}, args...)...)
	}
	if f.Search != "" {
		w.And(anyOf(`fold(n.name) LIKE ? ESCAPE '\'`, `fold(n.full_path) LIKE ? ESCAPE '\'`), db.Like(f.Search), db.Like(f.Search))
	}
	if f.TopLevelOnly {
		w.And("n.parent_id IS NULL")
	}
	return db.List(ctx, d, db.Query[*Namespace]{
		Columns: namespaceColumns, From: "namespaces n", Where: w, Order: []db.Order{{Name: "n.id"}},
		Scan: scanNamespace, Keys: func(n *Namespace) []any { return []any{n.ID} },
	}, p)
}
