package web

import (
	"slices"
	"strconv"
	"strings"

	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/project"
)

func (w *Web) mergePages() {
	w.placePage("GET merge_requests", anybody, w.merges)
	w.page("GET /dashboard/merge_requests", signedIn, w.ownMerges)
	w.mergeFormPages()
	w.mergeOnePages()
}

// mergeRow is a merge request in a list.
type mergeRow struct {
	*merge.MergeRequest
	Path string // of its page
	Ref  string // how it is called there
}

func newMergeRow(m *merge.MergeRequest, away bool) mergeRow {
	r := mergeRow{MergeRequest: m, Path: mergePath(m), Ref: "!" + strconv.FormatInt(m.IID, 10)}
	if away {
		r.Ref = m.ProjectPath + r.Ref
	}
	return r
}

func newMergeRows(list []*merge.MergeRequest, away bool) []mergeRow {
	var rows []mergeRow
	for _, m := range list {
		rows = append(rows, newMergeRow(m, away))
	}
	return rows
}

func mergePath(m *merge.MergeRequest) string {
	return "/" + m.ProjectPath + "/-/merge_requests/" + strconv.FormatInt(m.IID, 10)
}

// Clash tells whether git is known to be unable to merge an open one.
func (r mergeRow) Clash() bool { return r.State == merge.Opened && r.Status.Conflicting() }

// mergesPage is a list of merge requests: of a project, of a group, or one's
// own.
type mergesPage struct {
	planHead
	Own        bool
	Query      mergeQuery
	Rows       []mergeRow
	Counts     merge.Counts
	Pager      pager
	Labels     []string // that can be chosen
	Milestones []string
}

func (mergesPage) view() string { return "shared/merges" }
func (p mergesPage) title() string {
	if p.Own {
		return "Your merge requests"
	}
	return "Merge requests · " + p.Name()
}

// mergeQuery is what the address of a list says, beside what lists of issues
// have.
type mergeQuery struct {
	issueQuery
	Reviewer string // also None or Any
	Draft    string // yes or no
	Target   string
	Source   string
}

func (v *visit) mergeQuery() mergeQuery {
	q := mergeQuery{issueQuery: v.issueQuery(), Reviewer: v.param("reviewer_username"), Draft: v.param("draft"), Target: v.param("target_branch"), Source: v.param("source_branch")}
	q.Confidential = ""
	if q.State = v.param("state"); !slices.Contains([]string{"merged", "closed", "all"}, q.State) {
		q.State = "opened"
	}
	if q.Sort = v.param("sort"); !slices.ContainsFunc(mergeSorts(), func(s issueSort) bool { return s.Name == q.Sort }) {
		q.Sort = mergeSorts()[0].Name
	}
	return q
}

func mergeSorts() []issueSort {
	return []issueSort{
		{"created_date", "Newest", plan.Sort{By: "created_at", Desc: true}},
		{"created_asc", "Oldest", plan.Sort{By: "created_at"}},
		{"updated_desc", "Last updated", plan.Sort{By: "updated_at", Desc: true}},
		{"merged_at_desc", "Last merged", plan.Sort{By: "merged_at", Desc: true}},
		{"milestone", "Milestone due date", plan.Sort{By: "milestone_due"}},
		{"priority", "Label priority", plan.Sort{By: "priority"}},
		{"popularity", "Most comments", plan.Sort{By: "popularity", Desc: true}},
		{"title_asc", "Title", plan.Sort{By: "title"}},
	}
}

// Sorts are the ways to sort the list.
func (mergeQuery) Sorts() []issueSort { return mergeSorts() }

// Wide tells whether more than a text is looked for.
func (q mergeQuery) Wide() bool {
	return q.Author+q.Assignee+q.Milestone+q.Reviewer+q.Draft+q.Target+q.Source != "" || len(q.Labels) > 0
}

// Narrow tells whether something is looked for.
func (q mergeQuery) Narrow() bool { return q.Wide() || q.Search != "" }

func (q mergeQuery) filter() (merge.Filter, plan.Sort) {
	both := q.issueQuery
	both.Sort = issueSorts()[0].Name // of its own there are others
	issues, _ := both.filter()
	f := merge.Filter{Search: q.Search, TargetBranch: q.Target, SourceBranch: q.Source, Match: merge.Match{Match: issues.Match}}
	if q.State != "all" {
		f.State = merge.State(q.State)
	}
	switch q.Reviewer {
	case "":
	case plan.None, plan.Any:
		f.ReviewerID = q.Reviewer
	default:
		f.ReviewerUsernames = []string{strings.TrimPrefix(q.Reviewer, "@")}
	}
	if q.Draft == "yes" || q.Draft == "no" {
		draft := q.Draft == "yes"
		f.Draft = &draft
	}
	sorts := mergeSorts()
	return f, sorts[slices.IndexFunc(sorts, func(s issueSort) bool { return s.Name == q.Sort })].by
}

func (w *Web) merges(v *visit, in project.Place) error {
	h, err := w.planHead(v, in, "merges")
	if err != nil {
		return err
	}
	p := mergesPage{planHead: h, Query: v.mergeQuery()}
	f, order := p.Query.filter()
	f.Live = h.G != nil
	page, err := w.Merges.PlaceList(v, v.actor, h.Place, f, order, v.paging())
	if err != nil {
		return err
	}
	if p.Counts, err = w.Merges.Count(v, v.actor, &h.Place, f); err != nil {
		return err
	}
	p.Rows, p.Pager = newMergeRows(page.Items, h.G != nil), v.pager(page.More)
	if p.Labels, p.Milestones, err = w.planNames(v, h.Place); err != nil {
		return err
	}
	return v.show(p)
}

// ownMerges lists what somebody is to do in all projects, is to look at, or
// wrote.
func (w *Web) ownMerges(v *visit) error {
	if err := v.visited(); err != nil {
		return err
	}
	p := mergesPage{Own: true, Query: v.mergeQuery()}
	if p.Query.Scope != "created_by_me" && p.Query.Scope != "reviews_for_me" {
		p.Query.Scope = "assigned_to_me"
	}
	f, order := p.Query.filter()
	f.Scope, f.Live = p.Query.Scope, true
	page, err := w.Merges.List(v, v.actor, f, order, v.paging())
	if err != nil {
		return err
	}
	if p.Counts, err = w.Merges.Count(v, v.actor, nil, f); err != nil {
		return err
	}
	p.Rows, p.Pager = newMergeRows(page.Items, true), v.pager(page.More)
	return v.show(p)
}
