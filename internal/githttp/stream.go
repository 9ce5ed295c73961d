package githttp

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"svc/internal/errs"
)

const (
	// patience is how long a client may neither send nor take anything. A
	// client that searches a large repository for what to send is silent for
	// minutes.
	patience = 10 * time.Minute
	// farewell is how long we wait for the rest of a request that nobody
	// needs any more.
	farewell = 5 * time.Second
	// maxRest is how much of it is read.
	maxRest = 1 << 20
	// maxAsk bounds what a client says to ask for objects: over a million
	// refs. Packs come the other way.
	maxAsk = 64 << 20
	// maxInflate is how many times its size a compressed push may become.
	// Packs are compressed already.
	maxInflate = 20
	// maxSlack is what a compressed request may become in any case.
	maxSlack = 1 << 20
)

// requestBody is what the client sends, unpacked and bounded.
type requestBody struct {
	control *http.ResponseController
	from    io.Reader // as it comes
	read    io.Reader // as it is meant
	zipped  bool
	most    int64 // of plain bytes; 0 is no limit

	came, gave int64
	// The body may be read by another goroutine until it is over, even after
	// the answer is.
	over  atomic.Pointer[errs.Error] // why it was cut off
	ended atomic.Bool                // nothing is to come
	left  atomic.Bool                // nobody waits for what is to come
}

// body gives the request's body. Invalid when it can not be read.
func (x *exchange) body() (*requestBody, error) {
	b := &requestBody{control: http.NewResponseController(x.w), from: x.r.Body}
	if x.service == uploadPack {
		b.most = maxAsk
	}
	switch strings.ToLower(x.r.Header.Get("Content-Encoding")) {
	case "", "identity":
		b.read = incoming{b}
		return b, nil
	case "gzip", "x-gzip":
		b.zipped = true
		unzip, err := gzip.NewReader(incoming{b})
		if err != nil {
			return nil, errs.Invalid("The request is said to be compressed by gzip, but is not.").Because(err)
		}
		b.read = unzip
		return b, nil
	}
	return nil, errs.Invalid("A request can be compressed by gzip only.")
}

// Read implements io.Reader.
func (b *requestBody) Read(p []byte) (int, error) {
	if over := b.over.Load(); over != nil {
		return 0, over
	}
	n, err := b.read.Read(p)
	b.gave += int64(n)
	switch {
	case b.most > 0 && b.gave > b.most:
		b.over.Store(errs.TooLarge("The request is too large."))
	case b.zipped && b.gave > maxSlack+maxInflate*b.came:
		b.over.Store(errs.TooLarge("The request becomes too large when it is unpacked."))
	default:
		return n, err
	}
	return 0, b.over.Load()
}

// end reads the rest of a request that git does not need, if it is short and
// comes soon: else the connection can not be used again. It is done here
// because the server does not expect the end of a request after its answer.
func (b *requestBody) end() {
	b.left.Store(true)
	if b.ended.Load() {
		return
	}
	_ = b.control.SetReadDeadline(time.Now().Add(farewell)) // without it the connection ends later
	_, _ = io.CopyN(io.Discard, b.from, maxRest)
}

// incoming is the body as it comes: whoever is silent for too long is cut off.
type incoming struct{ *requestBody }

// Read implements io.Reader.
func (i incoming) Read(p []byte) (int, error) {
	if !i.left.Load() {
		_ = i.control.SetReadDeadline(time.Now().Add(patience))
	}
	n, err := i.from.Read(p)
	i.came += int64(n)
	if err != nil {
		i.ended.Store(true)
		if !i.left.Load() {
			// From now on silence is no fault: the server only watches
			// whether the client is still there.
			_ = i.control.SetReadDeadline(time.Time{})
		}
	}
	return n, err
}

// answerWriter is the way to the client. One that takes nothing for too long
// is cut off.
type answerWriter struct {
	to      http.ResponseWriter
	control *http.ResponseController
	mu      sync.Mutex // a push says that it is alive beside saying other things
	wrote   bool
	broken  bool // the client is gone
	// unless is set when the request was cut off: then what git says about
	// its end is not passed on, but why it was.
	unless *atomic.Pointer[errs.Error]
}

func (x *exchange) answer() *answerWriter {
	return &answerWriter{to: x.w, control: http.NewResponseController(x.w)}
}

// Write implements io.Writer.
func (a *answerWriter) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.wrote && a.unless != nil && a.unless.Load() != nil {
		return 0, a.unless.Load()
	}
	_ = a.control.SetWriteDeadline(time.Now().Add(patience))
	a.wrote = true
	n, err := a.to.Write(p)
	a.broken = a.broken || err != nil
	return n, err
}

// Flush sends what was written.
func (a *answerWriter) Flush() {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.control.Flush() // a write tells what is wrong
}

// end leaves the connection as it was, for the next request.
func (a *answerWriter) end() { _ = a.control.SetWriteDeadline(time.Time{}) }

// holdingWriter holds back the first bytes, so that what fails at once is
// answered with an error and not with half an answer.
type holdingWriter struct {
	to   io.Writer
	held []byte
	gone bool
}

const maxHeld = 64 << 10

// Write implements io.Writer.
func (h *holdingWriter) Write(p []byte) (int, error) {
	if h.gone {
		return h.to.Write(p)
	}
	h.held = append(h.held, p...)
	if len(h.held) < maxHeld {
		return len(p), nil
	}
	return len(p), h.release()
}

// release sends what was held back.
func (h *holdingWriter) release() error {
	if h.gone {
		return nil
	}
	h.gone = true
	_, err := h.to.Write(h.held)
	return err
}
