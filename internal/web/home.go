package web

import (
	"svc/internal/project"
)

func (w *Web) homePages() {
	w.pendingDeletionPages()
	w.page("GET /", anyone, w.home)
	w.page("GET /dashboard", signedIn, w.dashboard)
	w.page("GET /dashboard/projects", signedIn, w.dashboard)
	w.page("GET /dashboard/groups", signedIn, w.ownGroups)
	w.page("GET /explore", anyone, w.explore)
	w.page("GET /explore/projects", anyone, w.explore)
	w.page("GET /explore/groups", anyone, w.exploreGroups)
}

// home redirects to the start page of the visitor.
func (w *Web) home(v *visit) error {
	if v.session == nil {
		return v.redirect("/explore")
	}
	if to := startPage(v.session.User); to != "" {
		return v.redirect(to)
	}
	return w.dashboard(v)
}

// listPage is a list of projects or groups: all that the visitor can see, or their
// own.
type listPage struct {
	Own      bool
	Search   string
	Sort     string
	Projects []*project.Project
	Groups   []*project.Namespace
	OfGroups bool
	Pager    pager
	Filtered bool
	Starred  bool
	User     bool // signed in
}

func (listPage) view() string { return "shared/list" }

func (p listPage) title() string {
	switch {
	case p.Own && p.OfGroups:
		return "Your groups"
	case p.Own:
		return "Your projects"
	case p.OfGroups:
		return "Explore groups"
	}
	return "Explore projects"
}

// orders are the orders of a list of projects, by their names in the query.
func orders() map[string]project.Sort {
	return map[string]project.Sort{
		"":      {By: "last_activity_at", Desc: true},
		"name":  {By: "name"},
		"stars": {By: "star_count", Desc: true},
		"new":   {By: "created_at", Desc: true},
	}
}

func (w *Web) projectList(v *visit, f project.Filter, own bool) error {
	p := listPage{Own: own, Search: v.param("search"), Sort: v.param("sort"), User: v.session != nil}
	order, ok := orders()[p.Sort]
	if !ok {
		order, p.Sort = orders()[""], ""
	}
	f.Search, f.Deep = p.Search, true
	p.Starred = own && v.param("starred") == "1"
	if p.Starred {
		f.Starred, f.Membership = true, false
	}
	found, err := w.Projects.List(v, v.actor, f, order, v.paging())
	if err != nil {
		return err
	}
	p.Projects, p.Pager = found.Items, v.pager(found.More)
	p.Filtered = p.Search != "" || v.pageNumber() > 1
	return v.show(p)
}

func (w *Web) dashboard(v *visit) error {
	if err := v.visited(); err != nil {
		return err
	}
	return w.projectList(v, project.Filter{Membership: true}, true)
}

func (w *Web) explore(v *visit) error { return w.projectList(v, project.Filter{}, false) }

func (w *Web) groupList(v *visit, own bool) error {
	p := listPage{Own: own, OfGroups: true, Search: v.param("search"), User: v.session != nil}
	found, err := w.Projects.Groups(v, v.actor, project.GroupsFilter{Search: p.Search, AllAvailable: !own}, project.Sort{By: "name"}, v.paging())
	if err != nil {
		return err
	}
	p.Groups, p.Pager = found.Items, v.pager(found.More)
	p.Filtered = p.Search != "" || v.pageNumber() > 1
	return v.show(p)
}

func (w *Web) ownGroups(v *visit) error {
	if err := v.visited(); err != nil {
		return err
	}
	return w.groupList(v, true)
}

func (w *Web) exploreGroups(v *visit) error { return w.groupList(v, false) }
