package api

import (
	"errors"
	"io"
	"net/http"
	"strconv"

	"svc/internal/errs"
)

// stream is a body that is sent while it is produced.
type stream struct {
	media string // its content type
	size  int64  // in bytes; negative if unknown
	tag   string // its ETag; empty for none
	name  string // header Content-Disposition; empty for none
	write func(io.Writer) error
}

// send sends a stream. It returns an error that occurs before the first byte. After
// the first byte an error closes the connection, because a partial response must not
// look complete.
func (a *API) send(c *call, s stream) (streamed, error) {
	if s.tag != "" && matches(c.r.Header.Get("If-None-Match"), s.tag) {
		c.w.Header()["Cache-Control"] = revalidate
		c.w.Header().Set("ETag", s.tag)
		c.w.WriteHeader(http.StatusNotModified)
		return streamed{}, nil
	}
	out := &streamWriter{call: c, stream: &s}
	if c.r.Method == http.MethodHead {
		out.begin()
		return streamed{}, nil
	}
	err := s.write(out)
	switch {
	case err == nil:
		out.begin()
		return streamed{}, nil
	case !out.begun:
		return streamed{}, err
	}
	if c.Err() == nil && errs.KindOf(err) == 0 && !errors.Is(err, errGone) {
		a.Log.ErrorContext(c, "stream response", "method", c.r.Method, "path", c.r.URL.Path, "error", err)
	}
	panic(http.ErrAbortHandler)
}

// errGone means that the client has disconnected.
var errGone = errors.New("the client has gone")

// streamWriter sends the headers with the first byte.
type streamWriter struct {
	call   *call
	stream *stream
	begun  bool
}

func (w *streamWriter) begin() {
	if w.begun {
		return
	}
	w.begun = true
	h := w.call.w.Header()
	h.Set("Content-Type", w.stream.media)
	h["Cache-Control"] = noCache
	if w.stream.tag != "" {
		h["Cache-Control"] = revalidate
		h.Set("ETag", w.stream.tag)
	}
	if w.stream.name != "" {
		h.Set("Content-Disposition", w.stream.name)
	}
	if w.stream.size >= 0 {
		h.Set("Content-Length", strconv.FormatInt(w.stream.size, 10))
	}
	w.call.w.WriteHeader(http.StatusOK)
}

// Write implements io.Writer.
func (w *streamWriter) Write(p []byte) (int, error) {
	w.begin()
	n, err := w.call.w.Write(p)
	if err != nil {
		err = errors.Join(errGone, err)
	}
	return n, err
}
