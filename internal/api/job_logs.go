package api

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/ci"
	"svc/internal/errs"
	"svc/internal/project"
)

func (a *API) jobLogRoutes() {
	a.tag("Jobs")
	handle(a, "GET /projects/{id}/jobs/{job_id}/trace", readAPI.orAnonymous(), a.getTrace, badRange, summary("Get a job log"))
}

// badRange is the response to a range outside the content.
var badRange = response(http.StatusRequestedRangeNotSatisfiable, "The requested range is outside the content.", streamed{})

// jobOfParams identify a job of a project.
type jobOfParams struct {
	Project project.Ref `param:"id" doc:"Project ID or full path."`
	JobID   int64       `param:"job_id"`
}

// getTrace: https://docs.gitlab.com/api/jobs/#get-a-log-file
func (a *API) getTrace(c *call, p jobOfParams) (streamed, error) {
	if accepts(c.r.Header.Get("Accept"), "text/event-stream") {
		return a.streamTrace(c, p)
	}
	l, err := a.CI.Log(c, c.actor, p.Project, p.JobID)
	if err != nil {
		return streamed{}, err
	}
	defer l.Close()
	h := c.w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Disposition", fmt.Sprintf(`infile; filename="%d.log"`, p.JobID))
	h.Set("ETag", l.ETag())
	h["Cache-Control"] = revalidate
	http.ServeContent(c.w, c.r, "", time.Time{}, l)
	return streamed{}, nil
}

// accepts reports whether a client accepts a media type explicitly.
func accepts(header, media string) bool {
	for part := range strings.SplitSeq(header, ",") {
		if name, _, err := mime.ParseMediaType(strings.TrimSpace(part)); err == nil && name == media {
			return true
		}
	}
	return false
}

// logEventJSON is a chunk of a log.
type logEventJSON struct {
	Offset int64  `json:"offset"`
	Text   string `json:"text"`
}

// endEventJSON is the last event of a log.
type endEventJSON struct {
	Status string `json:"status"`
}

// streamTrace sends a log while it is written, as server-sent events: "log" with a
// chunk, "end" with the status of the job. The ID of an event is the log offset of
// the next event, so that clients can resume.
func (a *API) streamTrace(c *call, p jobOfParams) (streamed, error) {
	at, err := strconv.ParseInt(c.r.Header.Get("Last-Event-ID"), 10, 64)
	if err != nil || at < 0 {
		at = 0
	}
	out := &eventWriter{call: c, flush: http.NewResponseController(c.w)}
	err = a.CI.FollowLog(c, a.reader(c), p.Project, p.JobID, at, out.take)
	switch {
	case err == nil:
		out.begin()
		return streamed{}, nil
	case !out.begun:
		return streamed{}, err
	case c.Err() == nil && !out.gone && !errs.IsRefusal(err):
		a.Log.ErrorContext(c, "stream job log", "path", c.r.URL.Path, "error", err)
	}
	panic(http.ErrAbortHandler)
}

// eventWriter writes chunks of a log as events. It holds back an incomplete
// character at the end of a chunk.
type eventWriter struct {
	call  *call
	flush *http.ResponseController
	begun bool
	gone  bool
	held  []byte
}

func (w *eventWriter) begin() {
	if w.begun {
		return
	}
	w.begun = true
	h := w.call.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h["Cache-Control"] = noCache
	h.Set("X-Accel-Buffering", "no")
	w.call.w.WriteHeader(http.StatusOK)
}

func (w *eventWriter) take(part ci.LogPart) error {
	w.begin()
	var err error
	switch {
	case part.End != "":
		if len(w.held) > 0 {
			err = w.event("log", part.At, logEventJSON{part.At - int64(len(w.held)), strings.ToValidUTF8(string(w.held), "\uFFFD")})
		}
		if err == nil {
			err = w.event("end", part.At, endEventJSON{string(part.End)})
		}
	case len(part.Bytes) > 0:
		text := append(w.held, part.Bytes...)
		from := part.At - int64(len(w.held))
		whole := wholeText(text)
		w.held = append([]byte(nil), text[whole:]...)
		if whole > 0 {
			err = w.event("log", from+int64(whole), logEventJSON{from, strings.ToValidUTF8(string(text[:whole]), "\uFFFD")})
		}
	default:
		_, err = w.call.w.Write([]byte(": \n\n"))
	}
	if err == nil {
		err = w.flush.Flush()
	}
	w.gone = err != nil
	return err
}

// wholeText returns the length of a text without an incomplete last character.
func wholeText(text []byte) int {
	for back := 1; back <= min(utf8.UTFMax, len(text)); back++ {
		if at := len(text) - back; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				return at
			}
			return len(text)
		}
	}
	return len(text)
}

func (w *eventWriter) event(name string, id int64, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w.call.w, "event: %s\nid: %d\ndata: %s\n\n", name, id, text)
	return err
}
