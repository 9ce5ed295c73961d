package githttp

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"svc/internal/errs"
)

const (
	// patience is how long a client that pushes may be silent before its pack
	// begins: it may search a large repository for what to send.
	patience = 10 * time.Minute
	// farewell is how long we wait for the rest of a request that no one needs any
	// more.
	farewell = 5 * time.Second
	// maxRest is how much of it is read.
	maxRest = 1 << 20
	// maxAsk is the maximum size of a request for objects: enough for over a
	// million refs. Such a request contains no pack.
	maxAsk = 64 << 20
	// maxInflate is how many times its size a compressed push may become.
	// Packs are compressed already.
	maxInflate = 20
	// maxSlack is what a compressed request may become in any case.
	maxSlack = 1 << 20
)

// requestBody is what the client sends, unpacked and bounded.
type requestBody struct {
	from   io.Reader // as it comes
	read   io.Reader // as it is meant
	zipped bool
	most   int64 // of plain bytes; 0 is no limit

	came, gave int64
	// The body may be read by another goroutine until it is over, even after
	// the answer is.
	over  atomic.Pointer[errs.Error] // why it was cut off
	ended atomic.Bool                // nothing is to come
}

// patient is the body of a server that cuts off clients which are silent.
type patient interface {
	// SetPatience changes how long the client may be silent; 0 is the usual
	// time.
	SetPatience(d time.Duration)
}

// wait changes how long the client may be silent.
func (b *requestBody) wait(d time.Duration) {
	if p, ok := b.from.(patient); ok {
		p.SetPatience(d)
	}
}

// flows is called when the client has begun to send its pack, in which it makes
// no pauses.
func (b *requestBody) flows() { b.wait(0) }

// body returns the request's body. Invalid when it cannot be read.
func (x *exchange) body() (*requestBody, error) {
	b := &requestBody{from: x.r.Body}
	if x.service == uploadPack {
		b.most = maxAsk
	} else {
		b.wait(patience)
	}
	switch strings.ToLower(x.r.Header.Get("Content-Encoding")) {
	case "", "identity":
		b.read = incoming{b}
		return b, nil
	case "gzip", "x-gzip":
		b.zipped = true
		unzip, err := gzip.NewReader(incoming{b})
		if err != nil {
			return nil, errs.Invalid("The request body is not valid gzip.").Because(err)
		}
		b.read = unzip
		return b, nil
	}
	return nil, errs.Invalid("Requests can be compressed with gzip only.")
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

// maxInMemory is how much of a request for objects is held in memory. The rest
// goes to a file.
const maxInMemory = 64 << 10

// readAll reads the whole body. TooLarge when it is over its limit; Invalid when
// it cannot be read.
func (x *exchange) readAll(b *requestBody) (io.ReadCloser, error) {
	var head bytes.Buffer
	n, err := head.ReadFrom(io.LimitReader(b, maxInMemory))
	if err != nil {
		return nil, unreadable(err)
	}
	if n < maxInMemory {
		return io.NopCloser(&head), nil
	}
	f, err := os.CreateTemp(x.TempDir, "fetch-*")
	if err != nil {
		return nil, fmt.Errorf("hold a request: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil { // it goes with its last reader
		return nil, errors.Join(fmt.Errorf("hold a request: %w", err), f.Close())
	}
	rest := &keptError{r: b}
	if _, err := io.Copy(f, rest); err != nil {
		if rest.err != nil {
			err = unreadable(rest.err)
		}
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(fmt.Errorf("hold a request: %w", err), f.Close())
	}
	return &longRequest{io.MultiReader(&head, f), f}, nil
}

// keptError is a reader that remembers why it could not read.
type keptError struct {
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (k *keptError) Read(p []byte) (int, error) {
	n, err := k.r.Read(p)
	if err != nil && err != io.EOF {
		k.err = err
	}
	return n, err
}

// longRequest is a request of which a part is in a file.
type longRequest struct {
	io.Reader
	io.Closer
}

// unreadable returns the error for a client whose request broke off.
func unreadable(err error) error {
	if errs.KindOf(err) != 0 {
		return err
	}
	return errs.Invalid("The request could not be read to its end.").Because(err)
}

// end reads the rest of a request that git does not need, if it is short and
// comes soon: else the connection cannot be used again. It is done here because
// the server does not expect the end of a request after its answer.
func (b *requestBody) end() {
	if b.ended.Load() {
		return
	}
	b.wait(farewell)
	_, _ = io.CopyN(io.Discard, b.from, maxRest)
}

// incoming is the body as it comes.
type incoming struct{ *requestBody }

// Read implements io.Reader.
func (i incoming) Read(p []byte) (int, error) {
	n, err := i.from.Read(p)
	i.came += int64(n)
	if err != nil {
		i.ended.Store(true)
	}
	return n, err
}

// answerWriter is the way to the client.
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
	a.wrote = true
	n, err := a.to.Write(p)
	a.broken = a.broken || err != nil
	return n, err
}

// Flush sends what was written.
func (a *answerWriter) Flush() {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.control.Flush() // a later write returns the error
}

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
