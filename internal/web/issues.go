package web

import (
	"svc/internal/plan"
	"svc/internal/project"
)

func (w *Web) issueListPages() {
	w.placePage("GET issues", anyone, w.issues)
	w.page("GET /dashboard/issues", signedIn, w.ownIssues)
}

// issuesPage is a list of issues.
type issuesPage struct {
	issuableList
	Rows []issueRow
}

func (issuesPage) view() string { return "shared/issues" }
func (p issuesPage) title() string {
	if p.Own {
		return "Your issues"
	}
	return "Issues · " + p.Name()
}

func (q issuableQuery) issueFilter() plan.IssueFilter {
	f, m := q.filter()
	return plan.IssueFilter{Filter: f, Match: m, Confidential: yesNo(q.Confidential)}
}

func (w *Web) issues(v *visit, in project.Place) error {
	h, err := w.planHead(v, in, "issues")
	if err != nil {
		return err
	}
	p := issuesPage{issuableList: issuableList{planHead: h, Query: v.issueQuery()}}
	f := p.Query.issueFilter()
	f.Live = h.G != nil
	page, err := w.Plan.PlaceIssues(v, v.actor, h.Place, f, p.Query.order(), v.paging())
	if err != nil {
		return err
	}
	if p.Counts, err = w.Plan.CountIssues(v, v.actor, &h.Place, f); err != nil {
		return err
	}
	p.Rows, p.Pager = w.issueRows(page.Items, h.G != nil), v.pager(page.More)
	if p.Labels, p.Milestones, err = w.planNames(v, h.Place); err != nil {
		return err
	}
	if p.Bulk, err = w.bulkForm(v, h, "issues"); err != nil {
		return err
	}
	for i := range p.Rows {
		p.Rows[i].Pick = p.Bulk != nil
	}
	return v.show(p)
}

// ownIssues lists the issues that the user is assigned to, or created.
func (w *Web) ownIssues(v *visit) error {
	if err := v.visited(); err != nil {
		return err
	}
	p := issuesPage{issuableList: issuableList{Own: true, Query: v.issueQuery()}}
	if p.Query.Scope != "created_by_me" {
		p.Query.Scope = "assigned_to_me"
	}
	f := p.Query.issueFilter()
	f.Scope, f.Live = p.Query.Scope, true
	page, err := w.Plan.Issues(v, v.actor, f, p.Query.order(), v.paging())
	if err != nil {
		return err
	}
	if p.Counts, err = w.Plan.CountIssues(v, v.actor, nil, f); err != nil {
		return err
	}
	p.Rows, p.Pager = w.issueRows(page.Items, true), v.pager(page.More)
	return v.show(p)
}
