package web

import (
	"html/template"
	"strconv"

	"svc/internal/markup"
	"svc/internal/plan"
	"svc/internal/project"
)

// planPages adds the pages of issues, labels, milestones and boards.
func (w *Web) planPages() {
	w.issueListPages()
	w.issuePages()
	w.issueFormPages()
	w.editorPages()
	w.completePages()
	w.labelPages()
	w.milestonePages()
	w.boardPages()
	w.activityPages()
	w.badgePages()
	w.placePage("GET filter_values", anyone, w.filterValues)
}

// planHead has the common data of the pages of issues, merge requests, labels,
// milestones and boards.
type planHead struct {
	P        *head
	G        *groupHead
	Place    project.Place
	Base     string // "/group/project/-/" or "/groups/group/-/"
	Part     string // issues, boards, labels, milestones, snippets, or merges: merge requests
	Plans    bool   // the visitor may change labels, milestones and boards
	SignedIn bool
	Adds     bool // the user may create issues, or merge requests
}

// Top returns the head, for templates: a template that looks for a field of an
// embedded struct searches all of them each time.
func (h planHead) Top() *planHead { return &h }

func (w *Web) planHead(v *visit, in project.Place, part string) (planHead, error) {
	p := planHead{Place: in, Part: part, Base: pathTo(placePath(in)) + "/-/", SignedIn: v.session != nil}
	tab := "issues"
	switch part {
	case "merges":
		tab = "merge_requests"
	case "snippets":
		tab = part
	}
	if in.Group {
		g, err := w.groupHead(v, in.Ref, tab)
		if err != nil {
			return p, err
		}
		p.G, p.Adds = &g, p.SignedIn && tab == "issues"
		p.Plans = g.MayPlan
		return p, nil
	}
	h, err := w.head(v, in.Ref, tab)
	if err != nil {
		return p, err
	}
	p.P, p.Place.Ref, p.Base = &h, h.in(), pathTo(h.Project.FullPath)+"/-/" // in may have an ID
	may := plan.CanIn(v.actor, h.Project)
	p.Plans, p.Adds = may.Plan, may.Create
	if part == "merges" {
		p.Adds = h.Proposes && h.Project.DefaultBranch != ""
	}
	return p, nil
}

// Name returns the name of the project or group.
func (h planHead) Name() string {
	if h.G != nil {
		return h.G.Group.FullName
	}
	return h.P.Project.FullName()
}

// Uploads reports whether texts here can link to files.
func (h planHead) Uploads() bool { return h.P != nil }

// planned returns the common data of these pages in a project whose issues the
// visitor can see.
func (w *Web) planned(v *visit, ref project.Ref) (planHead, error) {
	h, err := w.planHead(v, project.Place{Ref: ref}, "issues")
	if err == nil {
		_, err = w.Projects.RequireView(v, v.actor, h.Place.Ref, project.IssuePart)
	}
	return h, err
}

// issueRow is an issue in a list.
type issueRow struct {
	*plan.Issue
	Path string // of its page
	Ref  string // its reference in the list
	Late bool
	Pick bool // it has a checkbox
}

func (w *Web) issueRow(i *plan.Issue, away bool) issueRow {
	r := issueRow{Issue: i, Path: issuePath(i), Ref: "#" + strconv.FormatInt(i.IID, 10)}
	if away {
		r.Ref = i.ProjectPath + r.Ref
	}
	r.Late = i.State == plan.Opened && w.late(i.DueDate)
	return r
}

func (w *Web) issueRows(list []*plan.Issue, away bool) []issueRow {
	rows := make([]issueRow, len(list))
	for i, issue := range list {
		rows[i] = w.issueRow(issue, away)
	}
	return rows
}

func issuePath(i *plan.Issue) string {
	return "/" + i.ProjectPath + "/-/issues/" + strconv.FormatInt(i.IID, 10)
}

// late reports whether a date is in the past.
func (w *Web) late(day string) bool { return day != "" && day < w.Now().UTC().Format("2006-01-02") }

// milestonePath returns the URL of a milestone.
func milestonePath(m *plan.Milestone) string {
	in := project.Place{Ref: project.Ref(m.Path), Group: m.GroupID != nil}
	return pathTo(placePath(in)) + "/-/milestones/" + strconv.FormatInt(m.IID, 10)
}

// chip draws a label. It is drawn without a template, because lists have many.
func chip(l *plan.Label) template.HTML {
	esc := template.HTMLEscapeString
	title := ""
	if l.Description != "" {
		title = ` title="` + esc(l.Description) + `"`
	}
	return template.HTML(`<span class="chip"` + title + `>` + markup.Dot(l.Color) + esc(l.Name) + `</span>`)
}
