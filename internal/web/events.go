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

// events is a stream of server-sent events, which the script of a page reads.
// The headers are sent with the first event.
type events struct {
	v     *visit
	flush *http.ResponseController
	mu    sync.Mutex
	begun bool
}

func (v *visit) events() *events {
	memo.End(v) // later reads must see changes
	return &events{v: v, flush: http.NewResponseController(v.w)}
}

// send sends an event with data. Without a name it only checks whether the
// client is connected.
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
		h.Set("X-Accel-Buffering", "no") // a proxy must not buffer events
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

// end returns an error to be shown if nothing was sent yet. Otherwise it ends
// the stream: the script connects again and gets the error then.
func (e *events) end(err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.begun {
		return err
	}
	if err != nil && !errors.Is(err, errListenerGone) && errs.KindOf(err) == 0 && e.v.Err() == nil {
		e.v.web.Log.ErrorContext(e.v, "event stream failed", "path", e.v.r.URL.Path, "error", err)
	}
	return nil
}

// sendChanges sends "changed" when a pipeline of a project, or one pipeline,
// has changed, so that the script loads the page again.
func (w *Web) sendChanges(v *visit, ref project.Ref, pipelineID int64) error {
	out := v.events()
	return out.end(w.CI.FollowPipelines(v, v.reader(), ref, pipelineID, out.changed))
}

func (e *events) changed(changed bool) error {
	if !changed {
		return e.send("", nil)
	}
	return e.send("changed", struct{}{})
}
