package web

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// minPacked is the shortest answer that is worth being compressed: less goes
// out in one round anyway.
const minPacked = 10 << 10

// packers compress answers quickly rather than well: HTML becomes a sixth
// either way.
var packers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // the level is one that there is
	return z
}}

// packs tells whether a client takes gzip. Some name it only to refuse it.
func packs(r *http.Request) bool {
	for offer := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(offer), ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimPrefix(strings.ReplaceAll(weight, " ", ""), "q="), 64)
		return err != nil || q > 0
	}
	return false
}

// answer sends a whole text that is made here, compressed if it is long. Its
// type is set; what others wrote, in their files, does not come this way.
//
// Tokens of forms are masked, so that the length of a page does not tell them
// to somebody who has others load it with guesses of his (BREACH).
func (v *visit) answer(status int, text []byte) {
	h := v.w.Header()
	if len(text) >= minPacked && packs(v.r) {
		b := buffers.Get().(*bytes.Buffer)
		defer buffers.Put(b)
		b.Reset()
		z := packers.Get().(*gzip.Writer)
		defer packers.Put(z)
		z.Reset(b)
		_, _ = z.Write(text) // memory takes everything
		_ = z.Close()
		h.Set("Content-Encoding", "gzip")
		text = b.Bytes()
	}
	h.Set("Content-Length", strconv.Itoa(len(text)))
	v.w.WriteHeader(status)
	_, _ = v.w.Write(text)
}
