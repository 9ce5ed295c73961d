package web

import (
	"html/template"
	"strconv"
	"strings"
	"time"

	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/user"
)

// markupWriter collects HTML that is written without a template. Lists have twenty
// rows or more of the same form, and executing a template for each of them took most
// of the time of their pages. Everything that is not constant goes through text, or
// is template.HTML already.
type markupWriter struct {
	strings.Builder
	web *Web
}

// htmlText escapes as html/template does, in text and in quoted attributes.
var htmlText = strings.NewReplacer("\x00", "\uFFFD", `"`, "&#34;", "&", "&amp;", "'", "&#39;", "+", "&#43;", "<", "&lt;", ">", "&gt;")

// raw writes constants of the program and finished HTML in turns.
func (m *markupWriter) raw(constants ...template.HTML) {
	for _, s := range constants {
		m.WriteString(string(s))
	}
}

// text writes a value between or inside of tags. A value of href must be a path that
// the program built: text does not check the scheme of addresses.
func (m *markupWriter) text(s string) { _, _ = htmlText.WriteString(&m.Builder, s) }

func (m *markupWriter) number(n int64) { m.WriteString(strconv.FormatInt(n, 10)) }

func (m *markupWriter) html() template.HTML { return template.HTML(m.String()) }

// start begins a row: its checkbox, if it has one, the title and its reference.
func (m *markupWriter) start(i *plan.Issuable, pick bool, path, ref, title string) {
	m.raw(`<li>`)
	if pick {
		m.raw(`<input type="checkbox" class="pick" name="selected" value="`)
		m.number(i.IID)
		m.raw(`" form="bulk" aria-label="Select `)
		m.text(ref)
		m.raw(`">`)
	}
	m.raw(`<div class="grow"><a class="name" href="`)
	m.text(path)
	m.raw(`">`)
	m.text(title)
	m.raw(`</a>`)
}

// opened describes by whom and when an object was created.
func (m *markupWriter) opened(ref string, at time.Time, by *user.User) {
	m.raw(`<p class="muted small wraps"><span>`)
	m.text(ref)
	m.raw(`</span> <span>opened `, m.web.since(at))
	if by != nil {
		m.raw(` by `)
		m.text(by.Name)
	}
	m.raw(`</span>`)
}

func (m *markupWriter) milestone(goal *plan.Milestone) {
	if goal == nil {
		return
	}
	m.raw(` <a class="badge" href="`)
	m.text(milestonePath(goal))
	m.raw(`">`, m.web.icon("goal"), ` <span class="clip">`)
	m.text(goal.Title)
	m.raw(`</span></a>`)
}

func (m *markupWriter) labels(list []*plan.Label) {
	for _, l := range list {
		m.raw(` `, chip(l))
	}
}

// people writes the avatars of users; before is the text before the names.
func (m *markupWriter) people(list []*user.User, tag template.HTML, before string) {
	for _, u := range list {
		m.raw(tag, ` title="`)
		m.text(before + u.Name)
		m.raw(`">`, drawFace(faceSize("tiny round-face", userFace(u))), `<span class="sr">`)
		m.text(before + u.Name)
		m.raw(`</span></span>`)
	}
}

// comments ends a row.
func (m *markupWriter) comments(n int64) {
	if n != 0 {
		m.raw(`<span class="nowrap" title="Comments">`, m.web.icon("talk"), ` `)
		m.number(n)
		m.raw(`</span>`)
	}
	m.raw(`</div></li>`)
}

// drawIssues draws the rows of a list of issues.
func (w *Web) drawIssues(rows []issueRow) template.HTML {
	m := &markupWriter{web: w}
	m.Grow(1 << 10 * (len(rows) + 1))
	m.raw(`<ul class="rows issues">`)
	for _, r := range rows {
		m.start(&r.Issuable, r.Pick, r.Path, r.Ref, r.Title)
		if r.Confidential {
			m.raw(` <span class="badge warn">`, w.icon("hide"), ` Confidential</span>`)
		}
		m.opened(r.Ref, r.CreatedAt, r.Author)
		m.milestone(r.Milestone)
		if r.DueDate != "" {
			m.raw(` <span class="badge`)
			if r.Late {
				m.raw(` bad`)
			}
			m.raw(`" title="Due date">`, w.icon("clock"), ` `)
			m.text(r.DueDate)
			m.raw(`</span>`)
		}
		if r.Weight != nil {
			m.raw(` <span class="badge" title="Weight">`, w.icon("gauge"), ` `)
			m.number(*r.Weight)
			m.raw(`</span>`)
		}
		m.labels(r.Labels)
		m.raw(`</p></div><div class="facts">`)
		if r.State == plan.Closed {
			m.raw(`<span class="badge">Closed</span>`)
		}
		m.people(r.Assignees, `<span`, "")
		m.comments(r.Notes)
	}
	m.raw(`</ul>`)
	return m.html()
}

// drawMerges draws the rows of a list of merge requests.
func (w *Web) drawMerges(rows []mergeRow) template.HTML {
	m := &markupWriter{web: w}
	m.Grow(1 << 10 * (len(rows) + 1))
	m.raw(`<ul class="rows issues">`)
	for _, r := range rows {
		m.start(&r.Issuable, r.Pick, r.Path, r.Ref, shown(r.Title))
		m.opened(r.Ref, r.CreatedAt, r.Author)
		branch := shown(r.TargetBranch)
		m.raw(` <span class="badge" title="Target branch: `)
		m.text(branch)
		m.raw(`">`, w.icon("branch"), ` <span class="clip">`)
		m.text(branch)
		m.raw(`</span></span>`)
		m.milestone(r.Milestone)
		m.labels(r.Labels)
		m.raw(`</p></div><div class="facts">`)
		m.mergeState(&r)
		if r.AutoMergeBy != nil {
			m.raw(`<span class="badge accent" title="Set to auto-merge when the pipeline succeeds">`, w.icon("clock"), ` Auto-merge</span>`)
		}
		m.people(r.Assignees, `<span`, "Assignee: ")
		m.people(r.Reviewers, `<span class="reviewer"`, "Reviewer: ")
		m.comments(r.Notes)
	}
	m.raw(`</ul>`)
	return m.html()
}

// mergeState writes the states of a merge request and its pipeline.
func (m *markupWriter) mergeState(r *mergeRow) {
	w := m.web
	switch {
	case r.State == merge.Merged:
		m.raw(`<span class="st st-merged">`, w.icon("merge"), ` Merged</span>`)
	case r.State == merge.Closed:
		m.raw(`<span class="st st-closed">`, w.icon("s-canceled"), ` Closed</span>`)
	case r.State != merge.Opened && !r.Draft: // it is being merged
		m.raw(`<span class="st st-success">`, w.icon("merge"), ` Open</span>`)
	case r.State != merge.Opened:
		m.raw(`<span class="st">`, w.icon("pen"), ` Draft</span>`)
	case r.Draft:
		m.raw(`<span class="badge">Draft</span>`)
	}
	if s := r.CI; s != nil {
		m.raw(`<a class="dot st-`)
		m.text(s.Class())
		m.raw(`" href="`)
		m.text(s.URL)
		m.raw(`" title="Pipeline: `)
		m.text(s.Word())
		m.raw(`">`, w.icon(s.Icon()), `<span class="sr">Pipeline: `)
		m.text(s.Word())
		m.raw(`</span></a>`)
	}
	if r.Clash() {
		m.raw(`<span class="badge bad" title="Merge conflicts">Conflicts</span>`)
	}
}
