package app

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"svc/internal/errs"
)

// Pace limits how slowly a client may send a request or read a response. The
// default of each field is given in its comment.
type Pace struct {
	Idle time.Duration // time without a byte: 2 min
	// Rate is the minimum number of bytes per second, on average over Idle, while the
	// server waits for the client: 1 KiB.
	Rate int64
}

func (p Pace) filled() Pace {
	return Pace{Idle: cmp.Or(p.Idle, 2*time.Minute), Rate: cmp.Or(p.Rate, 1<<10)}
}

// farewell is how long the server reads the rest of a request after the response.
const farewell = 5 * time.Second

// paced returns a writer and replaces the body of r; both extend their deadlines
// while data flows. Only waiting for the client counts: there is no deadline while
// the handler is busy. r is modified and must be a copy. end must be called after
// the handler has returned.
func (p Pace) paced(w http.ResponseWriter, r *http.Request) (_ *pacedWriter, end func()) {
	out := &pacedWriter{ResponseWriter: w, control: http.NewResponseController(w), meter: meter{pace: p}}
	out.extend()
	if r.Body == nil || r.Body == http.NoBody {
		return out, out.end
	}
	body := &pacedBody{ReadCloser: r.Body, out: out, meter: meter{pace: p}}
	r.Body = body
	return out, func() {
		body.end()
		out.end()
	}
}

// meter measures whether data flows fast enough in one direction.
type meter struct {
	pace   Pace
	set    time.Time // when the deadline was last set
	waited time.Duration
	moved  int64
}

// due reports whether the deadline must be set again. Setting it is expensive, so it
// is done at most 8 times per idle time.
func (m *meter) due(now time.Time) bool {
	if now.Sub(m.set) < m.pace.Idle/8 {
		return false
	}
	m.set = now
	return true
}

// count records that n bytes took a time. It reports false if the rate is too low.
func (m *meter) count(n int, took time.Duration) bool {
	m.moved += int64(n)
	if m.waited += took; m.waited < m.pace.Idle {
		return true
	}
	enough := float64(m.moved) >= m.waited.Seconds()*float64(m.pace.Rate)
	m.waited, m.moved = 0, 0
	return enough
}

var errTooSlow = errors.New("the client takes the response too slowly")

// pacedWriter closes the connection of a client that does not read the response fast
// enough.
type pacedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	meter
	cut bool
}

// pacedPart is the maximum number of bytes that are written before the next
// deadline.
const pacedPart = 64 << 10

// Write implements io.Writer.
func (w *pacedWriter) Write(p []byte) (int, error) {
	written := 0
	for {
		part := p[written:min(len(p), written+pacedPart)]
		w.extend()
		start := time.Now()
		n, err := w.ResponseWriter.Write(part)
		written += n
		if err == nil && !w.count(n, time.Since(start)) {
			w.cut = true
			_ = w.control.SetWriteDeadline(start) // nothing may follow, not even the end of the response
			err = errTooSlow
		}
		if err != nil || written == len(p) {
			return written, err
		}
	}
}

// FlushError implements the interface that http.ResponseController uses.
func (w *pacedWriter) FlushError() error {
	w.extend()
	return w.control.Flush()
}

// Unwrap returns the wrapped writer for http.ResponseController.
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *pacedWriter) extend() {
	if now := time.Now(); !w.cut && w.due(now) {
		_ = w.control.SetWriteDeadline(now.Add(w.pace.Idle)) // writers of tests have no deadlines
	}
}

// end sets a last deadline for sending buffered data.
func (w *pacedWriter) end() {
	if !w.cut {
		_ = w.control.SetWriteDeadline(time.Now().Add(w.pace.Idle))
	}
}

// pacedBody closes the connection of a client that does not send its request fast
// enough.
type pacedBody struct {
	io.ReadCloser
	out *pacedWriter
	meter

	mu       sync.Mutex // a body may be read after its handler has returned
	patience time.Duration
	over     bool // it was read completely, or the handler has returned
}

// SetPatience changes how long the client may be silent, for requests with pauses;
// the rate is not measured then. 0 means the default.
func (b *pacedBody) SetPatience(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.patience = d
	if !b.over {
		b.set = time.Now()
		_ = b.out.control.SetReadDeadline(b.set.Add(cmp.Or(d, b.pace.Idle)))
	}
}

// Read implements io.Reader.
func (b *pacedBody) Read(p []byte) (int, error) {
	start := time.Now()
	b.mu.Lock()
	if !b.over && (b.patience > 0 || b.due(start)) {
		_ = b.out.control.SetReadDeadline(start.Add(cmp.Or(b.patience, b.pace.Idle)))
	}
	b.mu.Unlock()
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	slow := b.patience == 0 && !b.count(n, time.Since(start))
	switch {
	case b.over:
	case err == io.EOF:
		b.over = true
		// From now on reads only detect whether the client disconnects.
		_ = b.out.control.SetReadDeadline(time.Time{})
	case err != nil || slow:
		b.over = true
		_ = b.out.control.SetReadDeadline(start) // do not wait for the rest
	}
	if err == nil && slow || errors.Is(err, os.ErrDeadlineExceeded) {
		return n, errs.Invalid("The request was not received in time.").Because(err)
	}
	return n, err
}

// end limits the time for reading the rest of the request, which is discarded.
func (b *pacedBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.over = true
		// The rest of the response is sent after it, so this deadline must be
		// earlier than that of the response.
		_ = b.out.control.SetReadDeadline(time.Now().Add(min(farewell, b.pace.Idle/2)))
	}
}
