package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"

	"svc/internal/ci"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/web/joblog"
)

const (
	// maxLogIndex is the approximate maximum memory for indexes of the lines of
	// logs, in bytes. The index of a log of 200 MiB is smaller than that.
	maxLogIndex = 16 << 20
	// pageLines is the maximum number of lines of a log in the page itself, and
	// pageHTML their maximum size.
	pageLines = 150
	pageHTML  = 24 << 10
	// maxFound is the maximum number of lines that a search returns.
	maxFound = 1000
)

// firstLines returns the lines of a log that its page shows: the last ones,
// those around a line, or matches of a search.
func (w *Web) firstLines(v *visit, p *jobPage) (logPart, error) {
	part := logPart{Done: p.Status.Done() && !p.Canceling, Query: strings.TrimSpace(v.param("q"))}
	l, err := w.CI.Log(v, v.actor, p.in(), p.ID)
	if errs.Is(err, errs.KindNotFound) {
		return part, nil
	}
	if err != nil {
		return part, err
	}
	defer l.Close()
	part.Size = l.Size
	from := joblog.Tail
	if n, err := strconv.Atoi(v.param("from")); err == nil {
		from = max(n, 1)
	}
	if part.Window, err = w.logs.Window(p.ID, l, l.Size, from, pageLines); err != nil {
		return part, err
	}
	part.fit(from == joblog.Tail)
	if part.Query != "" {
		part.Found, err = joblog.Search(l, l.Size, part.Query, 100)
	}
	return part, err
}

// fit removes lines until the rest fits on the page: it keeps the last ones, or the
// first ones.
func (p *logPart) fit(tail bool) {
	room, first, last := pageHTML, 0, len(p.Lines)
	for i := range p.Lines {
		at := i
		if tail {
			at = len(p.Lines) - 1 - i
		}
		if room -= len(p.Lines[at]) + 60; room < 0 && i > 0 {
			if first, last = 0, at; tail {
				first, last = at+1, len(p.Lines)
			}
			break
		}
	}
	p.Lines = p.Lines[first:last]
	p.From += first
	for i, line := range p.Lines {
		p.Rows = append(p.Rows, logRow{p.From + i, template.HTML(line)}) // joblog escapes
	}
	if p.From > 1 {
		p.Before = max(p.From-pageLines, 1)
	}
	if end := p.From + len(p.Lines); end <= p.Total {
		p.After = end
	}
}

// logJSON is a window of a log for the script.
type logJSON struct {
	From     int              `json:"from"`
	Total    int              `json:"total"`
	Lines    []string         `json:"lines"`
	Rev      int              `json:"rev"`
	Sections []joblog.Section `json:"sections,omitempty"` // if they differ from those that the script has
}

// window reads lines of a log; a job without a log has none.
func (w *Web) window(v *visit, ref project.Ref, id int64, from, count, rev int) (logJSON, error) {
	out := logJSON{From: 1, Lines: []string{}}
	l, err := w.CI.Log(v, v.actor, ref, id)
	if errs.Is(err, errs.KindNotFound) {
		// Without a job there is no log either.
		_, err = w.CI.Job(v, v.actor, ref, id)
		return out, err
	}
	if err != nil {
		return out, err
	}
	defer l.Close()
	got, err := w.logs.Window(id, l, l.Size, from, count)
	if err != nil {
		return out, err
	}
	out = logJSON{From: got.From, Total: got.Total, Lines: got.Lines, Rev: got.Rev}
	if got.Rev != rev {
		out.Sections = got.Sections
	}
	return out, nil
}

// count returns a number of the query, or the default.
func (v *visit) count(name string, otherwise int) int {
	n, err := strconv.Atoi(v.param(name))
	if err != nil {
		return otherwise
	}
	return n
}

// logWindow sends the script the lines that it shows, however long the log is.
func (w *Web) logWindow(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	out, err := w.window(v, ref, id, max(v.count("from", 1), joblog.Tail), v.count("count", 200), v.count("rev", -1))
	if err != nil {
		return err
	}
	return v.json(out)
}

// json sends a script a JSON response.
func (v *visit) json(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	v.answer(http.StatusOK, bytes.NewBuffer(text))
	return nil
}

// searchLog sends the numbers of the lines that contain a text.
func (w *Web) searchLog(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	l, err := w.CI.Log(v, v.actor, ref, id)
	if err != nil {
		return err
	}
	defer l.Close()
	found, err := joblog.Search(l, l.Size, strings.TrimSpace(v.param("q")), maxFound)
	if err != nil {
		return err
	}
	if found.Lines == nil {
		found.Lines = []int{}
	}
	return v.json(map[string]any{"lines": found.Lines, "more": found.More})
}

// rawLog returns the plain log; an empty one for a job that has none yet.
func (w *Web) rawLog(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	l, err := w.CI.Log(v, v.actor, ref, id)
	if errs.Is(err, errs.KindNotFound) {
		_, err = w.CI.Job(v, v.actor, ref, id)
	}
	if err != nil {
		return err
	}
	h := v.w.Header()
	foreign(h, "text/plain; charset=utf-8", "private, no-cache")
	if v.param("download") != "" {
		h.Set("Content-Disposition", disposition("attachment", fmt.Sprintf("%d.log", id)))
	}
	if l == nil {
		http.ServeContent(v.w, v.r, "", time.Time{}, strings.NewReader(""))
		return nil
	}
	defer l.Close()
	h.Set("ETag", l.ETag())
	http.ServeContent(v.w, v.r, "", time.Time{}, l)
	return nil
}

// followLog streams events: "log" with new lines of a log, "changed" when the
// pipeline has changed, and "end" when the job has ended. It is one stream, because
// browsers allow only a few connections per host.
func (w *Web) followLog(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	j, err := w.CI.Job(v, v.actor, ref, id)
	if err != nil {
		return err
	}
	out := &logEvents{events: v.events(), web: w, reader: v.reader(), ref: ref, id: id, known: max(v.count("total", 1), 1), rev: v.count("rev", -1)}
	at := int64(0)
	if l, err := w.CI.Log(v, v.actor, ref, id); err == nil {
		at = l.Size
		_ = l.Close()
	} else if !errs.Is(err, errs.KindNotFound) {
		return err
	}
	if err := out.lines(); err != nil {
		return out.end(err)
	}
	ctx, cancel := context.WithCancel(v)
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The stream ends with the log, which has the reason of the failure.
		_ = w.CI.FollowPipelines(ctx, out.reader, ref, j.PipelineID, out.changed)
	}()
	err = w.CI.FollowLog(ctx, out.reader, ref, id, at, out.take)
	cancel()
	<-done
	return out.end(err)
}

// logEvents sends the lines of a log.
type logEvents struct {
	*events
	web    *Web
	reader ci.Reader
	ref    project.Ref
	id     int64
	known  int // the last line that the script has, which may not be whole
	rev    int
	dirty  bool // there is more
}

// take receives new output in chunks. A short chunk is the last one for now; the
// lines are sent after it.
func (e *logEvents) take(part ci.LogPart) error {
	const piece = 64 << 10
	if len(part.Bytes) > 0 {
		e.dirty = true
	}
	if e.dirty && len(part.Bytes) < piece {
		if err := e.lines(); err != nil {
			return err
		}
	}
	switch {
	case part.End != "":
		return e.send("end", map[string]string{"status": string(part.End)})
	case len(part.Bytes) == 0:
		return e.send("", nil)
	}
	return nil
}

// lines sends new lines. If there are too many at once, it sends the last of
// them; the script loads the others when it shows them.
func (e *logEvents) lines() error {
	e.dirty = false
	got, err := e.web.window(e.v, e.ref, e.id, e.known, joblog.MaxLines, e.rev)
	if err != nil {
		return err
	}
	if got.From+len(got.Lines) <= got.Total {
		if got, err = e.web.window(e.v, e.ref, e.id, joblog.Tail, joblog.MaxLines, e.rev); err != nil {
			return err
		}
	}
	// Access is checked after the lines were read, so no line is sent that was
	// written after the reader lost access.
	by, err := e.reader(e.v)
	if err != nil {
		return err
	}
	if err := e.web.CI.CheckLog(e.v, by, e.ref, e.id); err != nil {
		return err
	}
	e.known, e.rev = max(got.Total, 1), got.Rev
	return e.send("log", got)
}
