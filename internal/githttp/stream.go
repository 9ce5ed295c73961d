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
	// patience is how long a pushing client may send nothing before its pack begins:
	// it may take long to compute the pack of a large repository.
	patience = 10 * time.Minute
	// farewell is how long the server waits for the rest of a request that git does
	// not need.
	farewell = 5 * time.Second
	// maxRest is the maximum size of that rest.
	maxRest = 1 << 20
	// maxAsk is the maximum size of a fetch request: enough for over a million refs.
	// A fetch request contains no pack.
	maxAsk = 64 << 20
	// maxInflate is the maximum compression ratio of a push. Packs are already
	// compressed.
	maxInflate = 20
	// maxSlack is the size that a compressed request may always expand to.
	maxSlack = 1 << 20
)

// requestBody is the body of a request, decompressed and limited in size.
type requestBody struct {
	from   io.Reader // as received
	read   io.Reader // decompressed
	zipped bool
	most   int64 // maximum of decompressed bytes; 0 for no limit

	came, gave int64
	// The body may be read by another goroutine until its end, even after the
	// response has been written.
	over  atomic.Pointer[errs.Error] // why the body was cut off
	ended atomic.Bool                // the body was read to its end
}

// patient is implemented by request bodies whose server disconnects clients that
// send nothing.
type patient interface {
	// SetPatience sets how long the client may send nothing; 0 restores the default.
	SetPatience(d time.Duration)
}

// wait sets how long the client may send nothing.
func (b *requestBody) wait(d time.Duration) {
	if p, ok := b.from.(patient); ok {
		p.SetPatience(d)
	}
}

// flows is called when the client has begun to send its pack. From then on the
// default limit applies.
func (b *requestBody) flows() { b.wait(0) }

// body returns the body of the request. Invalid if it cannot be read.
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

// maxInMemory is the maximum size of a fetch request in memory. A larger request is
// written to a file, of which each client can have only a few at a time.
const maxInMemory = 64 << 10

// readAll reads the whole body. TooLarge if it exceeds its limit; Invalid if it
// cannot be read; Busy if there are too many large requests.
func (x *exchange) readAll(b *requestBody) (io.ReadCloser, error) {
	var head bytes.Buffer
	n, err := head.ReadFrom(io.LimitReader(b, maxInMemory))
	if err != nil {
		return nil, unreadable(err)
	}
	if n < maxInMemory {
		return io.NopCloser(&head), nil
	}
	release, err := x.asks.Acquire(x.r.Context())
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(x.TempDir, "fetch-*")
	if err != nil {
		release()
		return nil, fmt.Errorf("hold a request: %w", err)
	}
	f := heldFile{file, release}
	if err := os.Remove(f.Name()); err != nil { // the file exists until it is closed
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

// heldFile is a file with its slot.
type heldFile struct {
	*os.File
	release func()
}

// Close closes the file and frees the slot.
func (f heldFile) Close() error {
	defer f.release()
	return f.File.Close()
}

// keptError is a reader that stores its read error.
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

// longRequest is a request whose rest is in a file.
type longRequest struct {
	io.Reader
	io.Closer
}

// unreadable returns the error for a request that ended early.
func unreadable(err error) error {
	if errs.KindOf(err) != 0 {
		return err
	}
	return errs.Invalid("The request could not be read to its end.").Because(err)
}

// end reads the rest of a request that git does not need, if it is short and arrives
// soon; otherwise the connection cannot be reused. The server does not read the rest
// of a request after its response.
func (b *requestBody) end() {
	if b.ended.Load() {
		return
	}
	b.wait(farewell)
	_, _ = io.CopyN(io.Discard, b.from, maxRest)
}

// incoming reads the body as received and counts its bytes.
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

// answerWriter writes the response.
type answerWriter struct {
	to      http.ResponseWriter
	control *http.ResponseController
	mu      sync.Mutex // keep-alive messages of a push are written concurrently
	wrote   bool
	broken  bool // the client has disconnected
	// unless is set if the request was cut off: then the reason is sent instead of
	// git's error about the unexpected end.
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

// holdingWriter buffers the first bytes of a response, so that an early failure can
// be reported as an error instead of an incomplete response.
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

// release writes the buffered bytes.
func (h *holdingWriter) release() error {
	if h.gone {
		return nil
	}
	h.gone = true
	_, err := h.to.Write(h.held)
	return err
}
