package api

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
)

// stamp is a time in the format of the API: ISO 8601 with milliseconds, in UTC.
type stamp string

func toStamp(t time.Time) stamp {
	// time has a fast path for RFC3339 without fractions, which is four times as
	// fast as a layout with milliseconds.
	var room [32]byte
	text := t.UTC().AppendFormat(room[:0], time.RFC3339)
	ms := t.Nanosecond() / int(time.Millisecond)
	return stamp(append(text[:len(text)-1], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z'))
}

func toStampOrNull(t *time.Time) *stamp {
	if t == nil {
		return nil
	}
	s := toStamp(*t)
	return &s
}

// day is a date in the format of the API.
type day string

func toDayOrNull(text string) *day {
	if text == "" {
		return nil
	}
	d := day(text)
	return &d
}

// dateOrNull returns the date of a time in UTC, or nil if t is nil.
func dateOrNull(t *time.Time) *day {
	if t == nil {
		return nil
	}
	return toDayOrNull(t.UTC().Format(time.DateOnly))
}

func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// Results without a JSON representation.
type (
	// none is a success response without a body: 204.
	none struct{}
	// accepted is a response for processing in the background: 202.
	accepted struct{}
	// withStatus is a result with a status other than that of its endpoint.
	withStatus struct {
		status int
		value  any
	}
	// streamed is a body that the handler has written.
	streamed struct{}
)

// unchanged is a result that may be "not modified": 304.
type unchanged[T any] struct {
	value T
	same  bool
}

func (u unchanged[T]) outcome() (any, bool) { return u.value, u.same }

// outcome is implemented by unchanged[T] for any T.
type outcome interface{ outcome() (value any, same bool) }

// pager is a result that is one page of a list.
type pager interface{ page(c *call) any }

// present writes a result.
func (a *API) present(c *call, e *endpoint, result any) {
	switch r := result.(type) {
	case streamed:
		return
	case none:
		c.w.WriteHeader(http.StatusNoContent)
		return
	case accepted:
		a.writeJSON(c.w, c.r, http.StatusAccepted, messageJSON{"202 Accepted"})
		return
	case withStatus:
		a.writeJSON(c.w, c.r, r.status, r.value)
		return
	case outcome:
		value, same := r.outcome()
		if same {
			c.w.WriteHeader(http.StatusNotModified)
			return
		}
		result = value
	case pager:
		result = r.page(c)
	}
	a.writeBody(c.w, c.r, e.status, result, c.release)
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// encoded is a body that is already encoded as JSON.
type encoded []byte

// writeJSON writes a body, with an ETag on reads.
func (a *API) writeJSON(w http.ResponseWriter, r *http.Request, code int, body any) {
	a.writeBody(w, r, code, body, nil)
}

// maxWhole is the largest body in bytes that is held in memory while it is sent.
// Larger bodies are spooled.
const maxWhole = 1 << 20

// writeBody is writeJSON for bodies that may be large. A list that is larger than
// maxWhole is encoded item by item, without ETag and Content-Length. writeBody calls
// done, if not nil, when the body of a spooled response is no longer in memory.
func (a *API) writeBody(w http.ResponseWriter, r *http.Request, code int, body any, done func()) {
	if text, ok := body.(encoded); ok {
		a.writeEncoded(w, r, code, text, done)
		return
	}
	buf := buffers.Get().(*[]byte)
	var text []byte
	var err error
	items := a.encoders.list(body)
	if items == nil {
		text, err = a.encoders.appendJSON((*buf)[:0], body)
	} else {
		text, err = items.append((*buf)[:0], maxWhole)
	}
	if err != nil {
		code = http.StatusInternalServerError
		text = append(text[:0], `{"message":"500 Internal Server Error"}`...)
	} else if items != nil && !items.whole() {
		a.writeList(w, r, code, items, text, done)
		return
	}
	a.writeEncoded(w, r, code, text, done)
	if cap(text) <= maxWhole { // the spool may still read a larger buffer
		*buf = text[:0]
		buffers.Put(buf)
	}
}

// writeList writes a list whose first items are already encoded in begun.
func (a *API) writeList(w http.ResponseWriter, r *http.Request, code int, items *list, begun []byte, done func()) {
	h := w.Header()
	h["Content-Type"] = jsonHeader
	h["Cache-Control"] = noCache
	if r.Method == http.MethodHead {
		w.WriteHeader(code)
		return
	}
	a.spool(w, r, code, done, func(out io.Writer) error { return items.writeTo(out, begun) })
}

func (a *API) writeEncoded(w http.ResponseWriter, r *http.Request, code int, text []byte, done func()) {
	h := w.Header()
	h["Content-Type"] = jsonHeader
	if code == http.StatusOK && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		h["Cache-Control"] = revalidate
		var room [24]byte
		tag := string(append(strconv.AppendUint(append(room[:0], `W/"`...), xxhash.Sum64(text), 16), '"'))
		h["Etag"] = []string{tag}
		if matches(r.Header.Get("If-None-Match"), tag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	} else {
		h["Cache-Control"] = noCache
	}
	h["Content-Length"] = []string{strconv.Itoa(len(text))}
	if len(text) > maxWhole && r.Method != http.MethodHead {
		a.spool(w, r, code, done, func(out io.Writer) error {
			_, err := out.Write(text)
			return err
		})
		return
	}
	w.WriteHeader(code)
	_, _ = w.Write(text) // the client may have disconnected
}

// spool writes the output of write through the spool. The memory of the body, and
// the slot that done releases, are free when write returns. As long as the spool has
// space, write does not wait for the client.
func (a *API) spool(w http.ResponseWriter, r *http.Request, code int, done func(), write func(io.Writer) error) {
	out := &lateWriter{ResponseWriter: w, code: code}
	err := a.Spool(r.Context(), out, func(_ context.Context, out io.Writer) error {
		if done != nil {
			defer done()
		}
		return write(out)
	})
	switch {
	case err == nil:
	case out.begun || r.Context().Err() != nil: // a partial body must not look complete
		panic(http.ErrAbortHandler)
	default:
		a.Log.ErrorContext(r.Context(), "write response", "method", r.Method, "path", r.URL.Path, "error", err)
		w.Header().Del("Content-Length")
		w.Header().Del("Etag")
		a.writeJSON(w, r, http.StatusInternalServerError, messageJSON{"500 Internal Server Error"})
	}
}

// lateWriter sends the status with the first byte, so that an error response can be
// sent until then.
type lateWriter struct {
	http.ResponseWriter
	code  int
	begun bool
}

func (l *lateWriter) Write(p []byte) (int, error) {
	if !l.begun {
		l.begun = true
		l.WriteHeader(l.code)
	}
	return l.ResponseWriter.Write(p)
}

// Header values that are shared by all responses.
var (
	jsonHeader = []string{"application/json"}
	revalidate = []string{"max-age=0, private, must-revalidate"}
	noCache    = []string{"no-cache"}
)

// matches reports whether an If-None-Match header matches a tag, by weak
// comparison.
func matches(header, tag string) bool {
	if header == "" {
		return false
	}
	for part := range strings.SplitSeq(header, ",") {
		part = strings.TrimSpace(part)
		if part == "*" || strings.TrimPrefix(part, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}
