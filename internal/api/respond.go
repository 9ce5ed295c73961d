package api

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
)

// stamp is a time as the API writes it: ISO 8601 with milliseconds, in UTC.
type stamp string

func toStamp(t time.Time) stamp {
	// A layout with milliseconds is read through each time; this one the
	// library knows, and writes four times as fast.
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

// day is a date as the API writes it.
type day string

func toDayOrNull(text string) *day {
	if text == "" {
		return nil
	}
	d := day(text)
	return &d
}

func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// Results that are not JSON of their own.
type (
	// none is success without a body: 204.
	none struct{}
	// accepted is work that goes on in the background: 202.
	accepted struct{}
	// withStatus is a result whose status is not the usual one of its endpoint.
	withStatus struct {
		status int
		value  any
	}
	// streamed is a body that the handler has written itself.
	streamed struct{}
)

// unchanged is a result that may say that there was nothing to do: 304.
type unchanged[T any] struct {
	value T
	same  bool
}

func (u unchanged[T]) outcome() (any, bool) { return u.value, u.same }

// outcome lets present look into any unchanged.
type outcome interface{ outcome() (value any, same bool) }

// pager is a result that is one page of a list.
type pager interface{ page(c *call) any }

// present answers with a result.
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
	a.writeJSON(c.w, c.r, e.status, result)
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// encoded is a body that is JSON already.
type encoded []byte

// writeJSON writes a body whole, with an ETag on reads.
func (a *API) writeJSON(w http.ResponseWriter, r *http.Request, code int, body any) {
	if text, ok := body.(encoded); ok {
		writeEncoded(w, r, code, text)
		return
	}
	buf := buffers.Get().(*[]byte)
	text, err := a.forms.appendJSON((*buf)[:0], body)
	defer func() {
		if *buf = text[:0]; cap(text) <= 1<<20 { // one large list must not stay for ever
			buffers.Put(buf)
		}
	}()
	if err != nil {
		code = http.StatusInternalServerError
		text = append(text[:0], `{"message":"500 Internal Server Error"}`...)
	}
	writeEncoded(w, r, code, text)
}

func writeEncoded(w http.ResponseWriter, r *http.Request, code int, text []byte) {
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
	w.WriteHeader(code)
	_, _ = w.Write(text) // a reader that has gone is not our fault
}

// Header values that never change are not built anew for each answer.
var (
	jsonHeader = []string{"application/json"}
	revalidate = []string{"max-age=0, private, must-revalidate"}
	noCache    = []string{"no-cache"}
)

// matches compares an If-None-Match header by the weak rules.
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
