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

// packers compress answers quickly rather than well: HTML becomes a sixth
// either way.
var packers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // the level is valid
	return z
}}

// answer sends a whole text that is made here, compressed if it is long. Its
// type is set; what others wrote, in their files, does not come this way.
//
// Tokens of forms are masked, so that the length of a page does not reveal them
// to an attacker who has users load it with guesses (BREACH).
//
// It takes over the buffer. A long answer is written through the spool, so that
// no client holds memory by reading slowly.
func (v *visit) answer(status int, b *bytes.Buffer) {
	h := v.w.Header()
	if b.Len() >= minPacked && httpreq.AcceptsGzip(v.r) {
		packed := buffers.Get().(*bytes.Buffer)
		packed.Reset()
		z := packers.Get().(*gzip.Writer)
		z.Reset(packed)
		_, _ = z.Write(b.Bytes()) // memory takes everything
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
	if err != nil { // half a page must not look like a whole one
		panic(http.ErrAbortHandler)
	}
}

// maxWhole is the largest buffer that is kept, and the longest answer that is in
// memory while the client takes it.
const maxWhole = 1 << 20

func recycle(b *bytes.Buffer) {
	if b.Cap() <= maxWhole {
		buffers.Put(b)
	}
}
