package web

import (
	"html/template"
	"net/url"
	"strconv"

	"svc/internal/plan"
	"svc/internal/plan/duration"
	"svc/internal/user"
)

// details has the description of an issue or merge request and the sidebar beside
// it.
type details struct {
	*plan.Issuable
	Text         template.HTML // of the description
	Done, Tasks  int
	Edits        bool // the user may check tasks
	Path, Full   string
	List         string // path of the list of its kind
	Merge        bool   // it is a merge request
	Plans        bool   // the user may change the fields
	Reviews      []reviewerView
	DueDate      string
	Late         bool
	Weight       *int64
	Todo         int64 // the pending to-do item of the user; 0 for none
	Participants []*user.User
}

// detailed is the page of an issue or merge request.
type detailed interface{ details() details }

func (p issuePage) details() details {
	d := p.issuableView.detailsOf(&p.Issuable)
	d.Path, d.Full, d.List, d.DueDate, d.Late, d.Weight = p.Path, p.Full(), p.Base+"issues", p.DueDate, p.Late, p.Weight
	return d
}

func (p mergePage) details() details {
	d := p.issuableView.detailsOf(&p.Issuable)
	d.Path, d.Full, d.List, d.Merge, d.Reviews = p.Path, p.Full(), p.Base+"merge_requests", true, p.Reviews
	return d
}

// detailsOf returns the details that issues and merge requests share.
func (v issuableView) detailsOf(i *plan.Issuable) details {
	return details{Issuable: i, Text: v.Text, Done: v.Done, Tasks: v.Tasks, Edits: v.Edits, Plans: v.Plans, Todo: v.Todo, Participants: v.Participants}
}

func (d details) details() details { return d }

// LabelPath is the path of the list with the issues or merge requests of a label.
func (d details) LabelPath(name string) string {
	return d.List + "?label_name%5B%5D=" + url.QueryEscape(name)
}

// drawDescription draws the description with the number of its tasks.
func (w *Web) drawDescription(page detailed) template.HTML {
	m := &markupWriter{web: w}
	d := page.details()
	m.Grow(1<<9 + len(d.Text))
	m.raw(`<section class="panel" data-part="text" id="description">`)
	if d.Tasks != 0 {
		m.raw(`<header><span class="small">`)
		m.text(strconv.Itoa(d.Done) + " of " + plural(d.Tasks, "task"))
		m.raw(` done</span><meter min="0" max="`)
		m.number(int64(d.Tasks))
		m.raw(`" value="`)
		m.number(int64(d.Done))
		m.raw(`">`)
		m.text(strconv.Itoa(d.Done) + " of " + strconv.Itoa(d.Tasks))
		m.raw(`</meter></header>`)
	}
	text := d.Text
	if d.Description == "" {
		text = `<p class="muted">No description</p>`
	}
	m.raw(`<div class="pad prose">`, text, `</div></section>`)
	return m.html()
}

// drawTasksForm draws the form of the checkboxes in the description.
func (w *Web) drawTasksForm(f *frame, page detailed) template.HTML {
	d := page.details()
	if !d.Edits || d.Tasks == 0 {
		return ""
	}
	m := &markupWriter{web: w}
	m.raw(`<form id="tasks" method="post" action="`)
	m.text(d.Path)
	m.raw(`/tasks" data-quiet>`)
	m.token(f)
	m.raw(`</form>`)
	return m.html()
}

// drawDetails draws the sidebar of an issue or merge request: many small sections,
// which took most of the time of the page as templates.
func (w *Web) drawDetails(f *frame, page detailed) template.HTML {
	m := &markupWriter{web: w}
	d := page.details()
	m.Grow(6 << 10)
	m.assignees(f, d)
	if d.Merge {
		m.reviewers(d)
	}
	m.labelLinks(d)
	m.section(d, "Milestone", "milestone")
	if goal := d.Milestone; goal != nil {
		m.raw(`<div><a href="`)
		m.text(milestonePath(goal))
		m.raw(`">`)
		m.text(goal.Title)
		m.raw(`</a></div></section>`)
	} else {
		m.raw(none, `</section>`)
	}
	if !d.Merge {
		m.dueDate(d)
		m.weight(d)
	}
	m.times(d)
	if f.User != nil {
		m.subscription(f, d)
	}
	m.participants(d.Participants)
	m.raw(`<section><h3>Reference</h3><div class="secret"><code id="reference">`)
	m.text(d.Full)
	m.raw(`</code><button class="round" type="button" data-copy="reference" hidden aria-label="Copy the reference" title="Copy">`,
		w.icon("copy"), `</button></div></section>`)
	return m.html()
}

// none is the text of a field that is not set.
const none = `<span class="muted">None</span>`

// section begins a section with the link that edits its field.
func (m *markupWriter) section(d details, title, part template.HTML) {
	m.raw(`<section data-part="`, part, `"><h3>`, title)
	if d.Plans {
		m.raw(`<a class="small" href="`)
		m.text(d.Path)
		m.raw(`/edit/`, part, `" data-sheet>Edit</a>`)
	}
	m.raw(`</h3>`)
}

// person writes the avatar and the name of a user as a link.
func (m *markupWriter) person(u *user.User, class template.HTML) {
	m.raw(`<a class="`, class, `" href="/`)
	m.text(u.Username)
	m.raw(`">`, drawFace(faceSize("tiny round-face", userFace(u))), ` `)
	m.text(u.Name)
	m.raw(`</a>`)
}

func (m *markupWriter) assignees(f *frame, d details) {
	m.section(d, "Assignees", "assignees")
	for _, u := range d.Assignees {
		m.person(u, "person")
	}
	if len(d.Assignees) == 0 {
		m.raw(none)
		if d.Plans {
			m.raw(` <form class="inline" method="post" action="`)
			m.text(d.Path)
			m.raw(`/turn">`)
			m.token(f)
			m.raw(`<button class="plain small" name="event" value="assign">Assign yourself</button></form>`)
		}
	}
	m.raw(`</section>`)
}

func (m *markupWriter) reviewers(d details) {
	m.section(d, "Reviewers", "reviewers")
	for _, r := range d.Reviews {
		m.raw(`<div class="row reviewer-row">`)
		m.person(r.User, "person grow")
		if r.Token != "" {
			m.raw(`<form method="post" action="`)
			m.text(d.Path + "/reviewers/" + strconv.FormatInt(r.User.ID, 10))
			m.raw(`/request">`)
			m.csrf(r.Token)
			m.raw(`<button class="round" title="Request another review" aria-label="Request another review from `)
			m.text(r.User.Name)
			m.raw(`">`, m.web.icon("retry"), `</button></form>`)
		}
		m.raw(`<span class="rv rv-`)
		m.text(string(r.State))
		m.raw(`" title="`, template.HTML(r.Word()), `">`, m.web.icon(r.Icon()), `<span class="sr">`, template.HTML(r.Word()), `</span></span></div>`)
	}
	if len(d.Reviews) == 0 {
		m.raw(none)
	}
	m.raw(`</section>`)
}

func (m *markupWriter) labelLinks(d details) {
	m.section(d, "Labels", "labels")
	m.raw(`<div class="wraps">`)
	for _, l := range d.Labels {
		m.raw(`<a href="`)
		m.text(d.LabelPath(l.Name))
		m.raw(`">`, chip(l), `</a>`)
	}
	if len(d.Labels) == 0 {
		m.raw(none)
	}
	m.raw(`</div></section>`)
}

func (m *markupWriter) dueDate(d details) {
	m.section(d, "Due date", "due_date")
	switch {
	case d.DueDate == "":
		m.raw(none)
	case d.Late:
		m.raw(`<span class="late">`)
		m.text(d.DueDate)
		m.raw(` (overdue)</span>`)
	default:
		m.raw(`<span>`)
		m.text(d.DueDate)
		m.raw(`</span>`)
	}
	m.raw(`</section>`)
}

func (m *markupWriter) weight(d details) {
	m.section(d, "Weight", "weight")
	if d.Weight == nil {
		m.raw(none, `</section>`)
		return
	}
	m.raw(`<span>`)
	m.number(*d.Weight)
	m.raw(`</span></section>`)
}

// times writes the estimate and the time spent.
func (m *markupWriter) times(d details) {
	m.section(d, "Time tracking", "time")
	if d.TimeEstimate == 0 && d.TimeSpent == 0 {
		m.raw(`<span class="muted">No estimate or time spent</span></section>`)
		return
	}
	m.raw(`<span class="small">`)
	if d.TimeSpent != 0 {
		m.text("Spent: " + duration.Format(d.TimeSpent))
	}
	if d.TimeEstimate != 0 {
		m.text(" Estimate: " + duration.Format(d.TimeEstimate))
	}
	m.raw(`</span>`)
	if d.TimeEstimate != 0 {
		m.raw(`<meter min="0" max="`)
		m.number(d.TimeEstimate)
		m.raw(`" high="`)
		m.number(d.TimeEstimate)
		m.raw(`" value="`)
		m.number(d.TimeSpent)
		m.raw(`">`)
		m.text(duration.Format(d.TimeSpent))
		m.raw(`</meter>`)
	}
	m.raw(`</section>`)
}

// subscription writes the buttons of the to-do list and of notifications.
func (m *markupWriter) subscription(f *frame, d details) {
	const want = `<input type="hidden" name="want" value="1">`
	button := func(action, sends, label template.HTML) {
		m.raw(`<form method="post" action="`)
		m.text(d.Path)
		m.raw(action, `">`)
		m.token(f)
		m.raw(sends, `<button class="button slim">`, label, `</button></form></section>`)
	}
	m.raw(`<section><h3>To-do list</h3>`)
	if d.Todo != 0 {
		button("/todo", "", m.web.icon("check")+" Mark as done")
	} else {
		button("/todo", want, "Add a to-do item")
	}
	m.raw(`<section><h3>Notifications</h3>`)
	if d.Subscribed {
		button("/subscribe", "", "Unsubscribe")
	} else {
		button("/subscribe", want, "Subscribe")
	}
}

func (m *markupWriter) participants(list []*user.User) {
	m.raw(`<section><h3>`)
	m.text(plural(len(list), "participant"))
	m.raw(`</h3><div class="row">`)
	for _, u := range list {
		m.raw(`<a href="/`)
		m.text(u.Username)
		m.raw(`" title="`)
		m.text(u.Name)
		m.raw(`">`, drawFace(faceSize("tiny round-face", userFace(u))), `<span class="sr">`)
		m.text(u.Name)
		m.raw(`</span></a>`)
	}
	m.raw(`</div></section>`)
}
