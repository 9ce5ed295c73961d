package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"svc/internal/errs"
	"svc/internal/memo"
	"svc/internal/project"
)

// events is an answer that goes on: events of the server, which the script of
// a page follows. The headers go with the first of them.
type events struct {
	v     *visit
	flush *http.ResponseController
	mu    sync.Mutex
	begun bool
}

func (v *visit) events() *events {
	memo.End(v) // what it reads later has changed
	return &events{v: v, flush: http.NewResponseController(v.w)}
}

// send sends an event with data; without a name it only finds out whether
// a client listens.
func (e *events) send(name string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.begun {
		e.begun = true
		h := e.v.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no") // a proxy must not wait for more
		e.v.w.WriteHeader(http.StatusOK)
	}
	if name == "" {
		_, err = fmt.Fprint(e.v.w, ": \n\n")
	} else {
		_, err = fmt.Fprintf(e.v.w, "event: %s\ndata: %s\n\n", name, text)
	}
	if err == nil {
		err = e.flush.Flush()
	}
	if err != nil {
		return errors.Join(errListenerGone, err)
	}
	return nil
}

// errListenerGone reports that no client reads events any more.
var errListenerGone = errors.New("the listener has gone")

// end gives an error to be shown when nothing was sent yet. Later ones can
// only end the answer: the script comes again, and learns what it is.
func (e *events) end(err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.begun {
		return err
	}
	if err != nil && !errors.Is(err, errListenerGone) && errs.KindOf(err) == 0 && e.v.Err() == nil {
		e.v.web.Log.ErrorContext(e.v, "events broken off", "path", e.v.r.URL.Path, "error", err)
	}
	return nil
}

// tellChanges sends "changed" when something in the pipelines of a project, or
// in one of them, has changed: the script gets the page again then.
func (w *Web) tellChanges(v *visit, ref project.Ref, pipelineID int64) error {
	out := v.events()
	return out.end(w.CI.FollowPipelines(v, v.reader(), ref, pipelineID, out.changed))
}

func (e *events) changed(changed bool) error {
	if !changed {
		return e.send("", nil)
	}
	return e.send("changed", struct{}{})
}
