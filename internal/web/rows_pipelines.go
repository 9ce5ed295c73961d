package web

import (
	"html/template"
	"strconv"

	"svc/internal/ci"
	"svc/internal/ci/flow"
)

// drawPipelines draws the rows of the list of pipelines.
func (w *Web) drawPipelines(f *frame, p pipelinesPage) template.HTML {
	m := &markupWriter{web: w}
	m.Grow(2 << 10 * (len(p.Rows) + 1))
	m.raw(`<ul class="rows pipelines">`)
	for _, r := range p.Rows {
		path := p.Base + "/pipelines/" + strconv.FormatInt(r.ID, 10)
		m.raw(`<li><div class="state">`)
		m.state(newState(r.Pipeline, path))
		m.raw(`<span class="muted small nowrap">`, p.Elapsed(r.Pipeline), `</span></div><div class="grow"><a class="name" href="`)
		m.text(path)
		m.raw(`">`)
		switch {
		case r.Name != "":
			m.text(r.Name)
		case r.Commit != nil:
			m.text(r.Commit.Title)
		default:
			m.raw(`Pipeline #`)
			m.number(r.ID)
		}
		m.raw(`</a><p class="muted small wraps"><span>#`)
		m.number(r.ID)
		m.raw(`</span> <span class="badge" title="`)
		m.text(r.Ref)
		m.raw(`">`)
		if r.Tag {
			m.raw(w.icon("pin"))
		} else {
			m.raw(w.icon("branch"))
		}
		m.raw(` <span class="clip">`)
		m.text(r.Ref)
		m.raw(`</span></span> <code>`)
		m.text(shortID(r.SHA))
		m.raw(`</code> <span>`)
		m.text(words(string(r.Source)))
		if r.User != nil {
			m.raw(` · `)
			m.text(r.User.Name)
		}
		m.raw(` · `, w.since(r.CreatedAt), `</span></p></div><div class="mini">`)
		m.stages(path, r.StageRow)
		if r.YAMLErrors != "" {
			m.raw(`<span class="badge warn">YAML invalid</span>`)
		}
		m.raw(`</div>`)
		if p.MayOn(r.Ref, r.Tag) {
			m.pipelineActs(f, path, r)
		}
		m.raw(`</li>`)
	}
	m.raw(`</ul>`)
	return m.html()
}

// state writes the state of a pipeline or job.
func (m *markupWriter) state(s ciStatus) {
	tag := template.HTML("span")
	if s.URL != "" {
		tag = "a"
	}
	m.raw(`<`, tag, ` class="st st-`)
	m.text(s.Class())
	if s.URL != "" {
		m.raw(`" href="`)
		m.text(s.URL)
	}
	m.raw(`">`, m.web.icon(s.Icon()), ` `)
	m.text(s.Word())
	m.raw(`</`, tag, `>`)
}

// stages writes the states of the stages of a pipeline.
func (m *markupWriter) stages(path string, list []ci.Stage) {
	for _, g := range list {
		s := newState(g, "")
		text := g.Name + ": " + s.Word()
		m.raw(`<a href="`)
		m.text(path)
		m.raw(`" class="dot st-`)
		m.text(s.Class())
		m.raw(`" title="`)
		m.text(text)
		m.raw(`">`, m.web.icon(s.Icon()), `<span class="sr">`)
		m.text(text)
		m.raw(`</span></a>`)
	}
}

// pipelineActs writes the buttons of a pipeline.
func (m *markupWriter) pipelineActs(f *frame, path string, r *ci.PipelineRow) {
	id := strconv.FormatInt(r.ID, 10)
	m.raw(`<div class="acts">`)
	switch {
	case !r.Status.Done():
		m.raw(`<form method="post" action="`)
		m.text(path)
		m.raw(`/cancel" data-confirm="Cancel the pipeline #`)
		m.text(id)
		m.raw(`?">`)
		m.token(f)
		m.raw(`<button class="round" title="Cancel" aria-label="Cancel pipeline `)
		m.text(id)
		m.raw(`">`, m.web.icon("stop"), `</button></form>`)
	case r.Retryable() && (r.Status == flow.Failed || r.Status == flow.Canceled):
		m.raw(`<form method="post" action="`)
		m.text(path)
		m.raw(`/retry">`)
		m.token(f)
		m.raw(`<button class="round" title="Retry" aria-label="Retry pipeline `)
		m.text(id)
		m.raw(`">`, m.web.icon("retry"), `</button></form>`)
	}
	m.raw(`</div>`)
}

// dot writes the state of a job as an icon.
func (m *markupWriter) dot(s ciStatus) {
	m.raw(`<span class="dot st-`)
	m.text(s.Class())
	m.raw(`" title="`)
	m.text(s.Word())
	m.raw(`">`, m.web.icon(s.Icon()), `<span class="sr">`)
	m.text(s.Word())
	m.raw(`</span></span>`)
}

// drawNode draws a job in the graph of a pipeline.
func (w *Web) drawNode(f *frame, p pipelinePage, j nodeJob) template.HTML {
	m := &markupWriter{web: w}
	m.Grow(1 << 10)
	m.raw(`<li class="node">`)
	m.dot(newState(j.Job, ""))
	if j.Bridge {
		m.raw(`<span class="grow clip" title="`)
		m.text(j.Name)
		m.raw(`">`)
		m.text(j.Label)
		if d := j.Downstream; d != nil {
			m.raw(` <a href="/`)
			m.text(j.DownstreamPath)
			m.raw(`/-/pipelines/`)
			m.number(d.ID)
			m.raw(`" class="small" title="`)
			m.text(j.DownstreamPath)
			m.raw(`">`, w.icon("flow"), ` #`)
			m.number(d.ID)
			m.raw(` `)
			m.dot(newState(d.Status, ""))
			m.raw(`</a>`)
		}
		m.raw(`</span>`)
	} else {
		m.raw(`<a class="grow clip" href="`)
		m.text(p.Base)
		m.raw(`/jobs/`)
		m.number(j.ID)
		m.raw(`" title="`)
		m.text(j.Name)
		for i, n := range j.Needs {
			if i == 0 {
				m.raw(`, needs `)
			} else {
				m.raw(`, `)
			}
			m.text(n.Name)
		}
		m.raw(`">`)
		m.text(j.Label)
		m.raw(`</a>`)
	}
	if j.AllowFailure && !j.FailedAllowed() {
		m.raw(`<span class="muted small" title="Allowed to fail">`, w.icon("info"), `<span class="sr">Allowed to fail</span></span>`)
	}
	if p.MayRun {
		m.jobAct(f, p.Base, j.Job)
	}
	m.raw(`</li>`)
	return m.html()
}

// jobAct writes the run, retry or cancel button of a job, as the part "jobact".
func (m *markupWriter) jobAct(f *frame, base string, j *ci.Job) {
	var path, word, icon template.HTML
	switch {
	case j.Blocked:
		m.raw(`<span class="muted small" title="Waiting for approvals">`, m.web.icon("clock"), `<span class="sr">Waiting for approvals</span></span>`)
		return
	case j.Status == flow.Manual || j.Status == flow.Scheduled:
		path, word, icon = "play", "Run", "play"
	case j.Retryable() && !j.Archived():
		path, word, icon = "retry", "Retry", "retry"
	case !j.Status.Done():
		path, word, icon = "cancel", "Cancel", "stop"
	default:
		return
	}
	m.raw(`<form method="post" action="`)
	m.text(base)
	m.raw(`/jobs/`)
	m.number(j.ID)
	m.raw(`/`, path, `">`)
	m.token(f)
	m.raw(`<button class="round" title="`, word, `" aria-label="`, word, ` `)
	m.text(j.Name)
	m.raw(`">`, m.web.icon(string(icon)), `</button></form>`)
}
