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

// maxWindow is how much memory the decoder of a body may take.
const maxWindow = 8 << 20

// Unpack reads a body that is compressed as the header Content-Encoding says.
// done gives back what the reader holds. It returns an InputError for a way that
// is not known.
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

// inflate reads what HTTP calls deflate: with the frame of zlib or, as some
// clients have it, without.
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

// Bounded returns so many bytes and then says that it is too much.
type Bounded struct {
	From io.Reader
	Left int64
}

// Read implements io.Reader.
func (b *Bounded) Read(p []byte) (int, error) {
	if b.Left <= 0 {
		// One more byte tells an end from too much.
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
