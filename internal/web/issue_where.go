package web

import (
	"svc/internal/project"
)

// wherePage selects the project of a group for a new issue.
type wherePage struct {
	planHead
	Search string
	Rows   []whereRow
	Pager  pager
}

// whereRow is a project with the URL of its form, which keeps the query of this
// page.
type whereRow struct {
	*project.Project
	To string
}

func (wherePage) view() string    { return "group/issue_where" }
func (p wherePage) title() string { return "New issue · " + p.Name() }

// newGroupIssue offers the projects of a group that have issues.
func (w *Web) newGroupIssue(v *visit, ref project.Ref) error {
	h, err := w.planHead(v, project.Place{Ref: ref, Group: true}, "issues")
	if err != nil {
		return err
	}
	p, live := wherePage{planHead: h, Search: v.param("search")}, false
	found, err := w.Projects.GroupProjects(v, v.actor, ref, project.GroupFilter{Subgroups: true}, project.Filter{Search: p.Search, Archived: &live, WithIssues: true}, orders()[""], v.paging())
	if err != nil {
		return err
	}
	query := v.r.URL.Query()
	query.Del("search")
	query.Del("page")
	for _, in := range found.Items {
		to := pathTo(in.FullPath) + "/-/issues/new"
		if len(query) > 0 {
			to += "?" + query.Encode()
		}
		p.Rows = append(p.Rows, whereRow{in, to})
	}
	p.Pager = v.pager(found.More)
	return v.show(p)
}
