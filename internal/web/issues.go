package web

import (
	"net/url"
	"slices"
	"strings"

	"svc/internal/plan"
	"svc/internal/project"
)

func (w *Web) issueListPages() {
	w.placePage("GET issues", anybody, w.issues)
	w.page("GET /dashboard/issues", signedIn, w.ownIssues)
}

// issuesPage is a list of issues: of a project, of a group, or one's own.
type issuesPage struct {
	planHead
	Own        bool
	Query      issueQuery
	Rows       []issueRow
	Counts     plan.Counts
	Pager      pager
	Labels     []string // that can be chosen
	Milestones []string
}

func (issuesPage) view() string { return "shared/issues" }
func (p issuesPage) title() string {
	if p.Own {
		return "Your issues"
	}
	return "Issues · " + p.Name()
}

// issueQuery is what the address of a list says. The names are those that
// addresses of v4 have.
type issueQuery struct {
	State        string // opened, closed or all
	Scope        string // of one's own: assigned_to_me or created_by_me
	Author       string
	Assignee     string // also None or Any
	Labels       []string
	Milestone    string
	Confidential string // yes or no
	Search       string
	Sort         string
	values       url.Values
}

func (v *visit) issueQuery() issueQuery {
	values := v.r.URL.Query()
	q := issueQuery{
		State: v.param("state"), Scope: v.param("scope"), Author: v.param("author_username"), Assignee: v.param("assignee_username"), Milestone: v.param("milestone_title"),
		Confidential: v.param("confidential"), Search: v.param("search"), Sort: v.param("sort"), values: values,
	}
	for _, list := range append(values["label_name[]"], values["label_name"]...) {
		for _, name := range strings.Split(list, ",") {
			if name = strings.TrimSpace(name); name != "" && !slices.Contains(q.Labels, name) {
				q.Labels = append(q.Labels, name)
			}
		}
	}
	if q.State != "closed" && q.State != "all" {
		q.State = "opened"
	}
	if !slices.ContainsFunc(issueSorts(), func(s issueSort) bool { return s.Name == q.Sort }) {
		q.Sort = issueSorts()[0].Name
	}
	return q
}

// issueSort is a way to sort issues.
type issueSort struct {
	Name, Label string
	by          plan.Sort
}

func issueSorts() []issueSort {
	return []issueSort{
		{"created_date", "Newest", plan.Sort{By: "created_at", Desc: true}},
		{"created_asc", "Oldest", plan.Sort{By: "created_at"}},
		{"updated_desc", "Last updated", plan.Sort{By: "updated_at", Desc: true}},
		{"due_date", "Due date", plan.Sort{By: "due_date"}},
		{"milestone", "Milestone due date", plan.Sort{By: "milestone_due"}},
		{"priority", "Label priority", plan.Sort{By: "priority"}},
		{"popularity", "Most comments", plan.Sort{By: "popularity", Desc: true}},
		{"title_asc", "Title", plan.Sort{By: "title"}},
		{"relative_position", "Manual", plan.Sort{By: "relative_position"}},
	}
}

// Sorts are the ways to sort the list.
func (issueQuery) Sorts() []issueSort { return issueSorts() }

// Text is the labels as a field has them.
func (q issueQuery) Text() string { return strings.Join(q.Labels, ", ") }

// Narrow tells whether something is looked for.
func (q issueQuery) Narrow() bool {
	return q.Author+q.Assignee+q.Milestone+q.Confidential+q.Search != "" || len(q.Labels) > 0
}

// With is the address of the same list with another value.
func (q issueQuery) With(name, value string) string { return withValue(q.values, name, value) }

// withValue is the address of a list with another value, at its first page.
func withValue(old url.Values, name, value string) string {
	values := url.Values{}
	for key, list := range old {
		values[key] = list
	}
	values.Del("page")
	values.Set(name, value)
	return "?" + values.Encode()
}

func (q issueQuery) filter() (plan.IssueFilter, plan.Sort) {
	f := plan.IssueFilter{Search: q.Search, Match: plan.Match{Labels: q.Labels, Milestone: q.Milestone, AuthorUsername: strings.TrimPrefix(q.Author, "@")}}
	if q.State != "all" {
		f.State = plan.State(q.State)
	}
	switch q.Assignee {
	case "":
	case plan.None, plan.Any:
		f.AssigneeID = q.Assignee
	default:
		f.AssigneeUsernames = []string{strings.TrimPrefix(q.Assignee, "@")}
	}
	if q.Confidential == "yes" || q.Confidential == "no" {
		hidden := q.Confidential == "yes"
		f.Confidential = &hidden
	}
	sorts := issueSorts()
	return f, sorts[slices.IndexFunc(sorts, func(s issueSort) bool { return s.Name == q.Sort })].by
}

func (w *Web) issues(v *visit, in project.Place) error {
	h, err := w.planHead(v, in, "issues")
	if err != nil {
		return err
	}
	p := issuesPage{planHead: h, Query: v.issueQuery()}
	f, order := p.Query.filter()
	if h.G != nil {
		f.Live = true
	}
	page, err := w.Plan.PlaceIssues(v, v.actor, h.Place, f, order, v.paging())
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
	return v.show(p)
}

// planNames are the names of labels and of milestones that lists can be
// narrowed to.
func (w *Web) planNames(v *visit, in project.Place) (labels, milestones []string, err error) {
	words, err := w.Plan.Labels(v, v.actor, in, plan.LabelFilter{Ancestors: true, Descendants: in.Group}, allOf())
	if err != nil {
		return nil, nil, err
	}
	for _, l := range words.Items {
		if !slices.Contains(labels, l.Name) {
			labels = append(labels, l.Name)
		}
	}
	goals, err := w.Plan.Milestones(v, v.actor, in, plan.MilestoneFilter{State: plan.ActiveMilestone, Ancestors: true, Descendants: in.Group}, allOf())
	if err != nil {
		return nil, nil, err
	}
	for _, m := range goals.Items {
		if !slices.Contains(milestones, m.Title) {
			milestones = append(milestones, m.Title)
		}
	}
	return labels, milestones, nil
}

// ownIssues lists what somebody is to do in all projects, or what he wrote.
func (w *Web) ownIssues(v *visit) error {
	if err := v.visited(); err != nil {
		return err
	}
	p := issuesPage{Own: true, Query: v.issueQuery()}
	if p.Query.Scope != "created_by_me" {
		p.Query.Scope = "assigned_to_me"
	}
	f, order := p.Query.filter()
	f.Scope, f.Live = p.Query.Scope, true
	page, err := w.Plan.Issues(v, v.actor, f, order, v.paging())
	if err != nil {
		return err
	}
	if p.Counts, err = w.Plan.CountIssues(v, v.actor, nil, f); err != nil {
		return err
	}
	p.Rows, p.Pager = w.issueRows(page.Items, true), v.pager(page.More)
	return v.show(p)
}
