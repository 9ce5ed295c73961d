package web

import (
	"strconv"

	"svc/internal/merge"
	"svc/internal/project"
)

func (w *Web) mergePages() {
	w.placePage("GET merge_requests", anyone, w.merges)
	w.page("GET /dashboard/merge_requests", signedIn, w.ownMerges)
	w.mergeFormPages()
	w.mergeOnePages()
}

// mergeRow is a merge request in a list.
type mergeRow struct {
	*merge.MergeRequest
	Path string // of its page
	Ref  string // its reference in the list
	Pick bool   // it has a checkbox
	CI   *ciStatus
}

func newMergeRow(m *merge.MergeRequest, away bool) mergeRow {
	r := mergeRow{MergeRequest: m, Path: mergePath(m), Ref: "!" + strconv.FormatInt(m.IID, 10)}
	if away {
		r.Ref = m.ProjectPath + r.Ref
	}
	return r
}

// fillStates sets the states of the pipelines of rows.
func (w *Web) fillStates(v *visit, rows []mergeRow) error {
	list := make([]*merge.MergeRequest, len(rows))
	for i, r := range rows {
		list[i] = r.MergeRequest
	}
	found, in, err := w.CI.RequestStates(v, v.actor, list)
	if err != nil {
		return err
	}
	for i := range rows {
		if p := found[rows[i].ID]; p != nil {
			rows[i].CI = stateOf(in[p.ProjectID], p)
		}
	}
	return nil
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

// Clash reports whether an open merge request had conflicts when it was last
// checked.
func (r mergeRow) Clash() bool { return r.State == merge.Opened && r.Status.HadConflicts() }

// mergesPage is a list of merge requests.
type mergesPage struct {
	issuableList
	Rows []mergeRow
}

func (mergesPage) view() string { return "shared/merges" }
func (p mergesPage) title() string {
	if p.Own {
		return "Your merge requests"
	}
	return "Merge requests · " + p.Name()
}

func (q issuableQuery) mergeFilter() merge.Filter {
	f, m := q.filter()
	match := merge.Match{Match: m}
	match.ReviewerID, match.ReviewerUsernames = userMatch(q.Reviewer)
	return merge.Filter{Filter: f, Match: match, Draft: yesNo(q.Draft), TargetBranch: q.Target, SourceBranch: q.Source}
}

func (w *Web) merges(v *visit, in project.Place) error {
	h, err := w.planHead(v, in, "merges")
	if err != nil {
		return err
	}
	p := mergesPage{issuableList: issuableList{planHead: h, Query: v.mergeQuery()}}
	f := p.Query.mergeFilter()
	f.Live, f.Recheck = h.G != nil, true
	page, err := w.Merges.PlaceList(v, v.actor, h.Place, f, p.Query.order(), v.paging())
	if err != nil {
		return err
	}
	if p.Counts, err = w.Merges.Total(v, v.actor, &h.Place, f); err != nil {
		return err
	}
	p.Rows, p.Pager = newMergeRows(page.Items, h.G != nil), v.pager(page.More)
	if err := w.fillStates(v, p.Rows); err != nil {
		return err
	}
	if p.Labels, p.Milestones, err = w.planNames(v, h.Place); err != nil {
		return err
	}
	if p.Bulk, err = w.bulkForm(v, h, "merge_requests"); err != nil {
		return err
	}
	for i := range p.Rows {
		p.Rows[i].Pick = p.Bulk != nil
	}
	return v.show(p)
}

// ownMerges shows what waits for the user or, with a query, lists the merge requests
// that they are assigned to, review, or created.
func (w *Web) ownMerges(v *visit) error {
	if err := v.visited(); err != nil {
		return err
	}
	if v.r.URL.RawQuery == "" {
		return w.mergeInbox(v)
	}
	p := mergesPage{issuableList: issuableList{Own: true, Query: v.mergeQuery()}}
	if p.Query.Scope != "created_by_me" && p.Query.Scope != "reviews_for_me" {
		p.Query.Scope = "assigned_to_me"
	}
	f := p.Query.mergeFilter()
	f.Scope, f.Live, f.Recheck = p.Query.Scope, true, true
	page, err := w.Merges.List(v, v.actor, f, p.Query.order(), v.paging())
	if err != nil {
		return err
	}
	if p.Counts, err = w.Merges.Total(v, v.actor, nil, f); err != nil {
		return err
	}
	p.Rows, p.Pager = newMergeRows(page.Items, true), v.pager(page.More)
	if err := w.fillStates(v, p.Rows); err != nil {
		return err
	}
	return v.show(p)
}
