package bind

import (
	"bufio"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// maxWindow is the maximum amount of memory of the decoder of a body.
const maxWindow = 8 << 20

// Unpack decompresses a body according to the header Content-Encoding. done releases
// the decoder. It returns an InputError for an unknown encoding.
func Unpack(body io.Reader, encoding string) (from io.Reader, done func(), err error) {
	done = func() {}
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return body, done, nil
	case "gzip", "x-gzip":
		from, err = gzip.NewReader(body)
		return from, done, err
	case "deflate":
		from, err = inflate(body)
		return from, done, err
	case "br":
		return brotli.NewReader(body), done, nil
	case "zstd":
		z, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, done, err
		}
		return z, z.Close, nil
	}
	return nil, done, &InputError{Fault: FaultMediaType, Text: "the body's content encoding is not supported"}
}

// inflate reads the encoding that HTTP calls deflate: with the zlib header or, as
// some clients send it, without.
func inflate(body io.Reader) (io.Reader, error) {
	b := bufio.NewReader(body)
	head, err := b.Peek(2)
	if err != nil {
		return nil, err
	}
	if head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
		return zlib.NewReader(b)
	}
	return flate.NewReader(b), nil
}

// Bounded is a reader that returns an error after a number of bytes.
type Bounded struct {
	From io.Reader
	Left int64
}

// Read implements io.Reader.
func (b *Bounded) Read(p []byte) (int, error) {
	if b.Left <= 0 {
		// Read one more byte to distinguish the end from an overrun.
		n, err := b.From.Read(make([]byte, 1))
		if n > 0 {
			return 0, TooLarge(nil)
		}
		return 0, err
	}
	n, err := b.From.Read(p[:min(int64(len(p)), b.Left)])
	b.Left -= int64(n)
	return n, err
}
