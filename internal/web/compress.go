package web

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"

	"svc/internal/httpreq"

	"github.com/klauspost/compress/gzip"
)

// minPacked is the minimum size of a response that is compressed: smaller ones
// fit into one round trip anyway.
const minPacked = 10 << 10

// packers compress responses with the fastest level: HTML shrinks to a sixth with
// every level.
var packers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // the level is valid
	return z
}}

// answer sends a response that is complete in memory, compressed if it is long. Its
// content type is set before. Files of users are not sent this way.
//
// Tokens of forms are masked, so that the length of a page does not reveal them to
// an attacker who makes users load it with guesses (BREACH).
//
// answer takes over the buffer. A long response is written through the spool, so
// that slow clients do not hold memory.
func (v *visit) answer(status int, b *bytes.Buffer) {
	h := v.w.Header()
	if b.Len() >= minPacked && httpreq.AcceptsGzip(v.r) {
		packed := buffers.Get().(*bytes.Buffer)
		packed.Reset()
		z := packers.Get().(*gzip.Writer)
		z.Reset(packed)
		_, _ = z.Write(b.Bytes()) // writes to memory do not fail
		_ = z.Close()
		packers.Put(z)
		recycle(b)
		h.Set("Content-Encoding", "gzip")
		b = packed
	}
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	if v.release != nil {
		v.release() // the data of the page is no longer needed
	}
	v.w.WriteHeader(status)
	if b.Len() <= maxWhole {
		_, _ = v.w.Write(b.Bytes())
		recycle(b)
		return
	}
	err := v.web.Spool(v, v.w, func(_ context.Context, out io.Writer) error {
		_, err := b.WriteTo(out)
		return err
	})
	if err != nil { // aborts the response, so that the client notices that the page is incomplete
		panic(http.ErrAbortHandler)
	}
}

// maxWhole is the largest buffer that is kept for reuse, and the longest response
// that stays in memory while the client reads it.
const maxWhole = 1 << 20

func recycle(b *bytes.Buffer) {
	if b.Cap() <= maxWhole {
		buffers.Put(b)
	}
}
