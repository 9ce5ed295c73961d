package gitremote

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// TestSlow reads a body at two rates, with a test clock.
func TestSlow(t *testing.T) {
	t.Parallel()
	for bytes, slow := range map[int]bool{minRate / 2: true, minRate * 2: false} {
		clock := time.Unix(0, 0)
		body := &stalling{
			body: io.NopCloser(strings.NewReader(strings.Repeat("x", 300*bytes))),
			rate: rate{after: time.Minute, now: func() time.Time { clock = clock.Add(time.Second); return clock }},
		}
		var err error
		read := 0
		for err == nil {
			var n int
			n, err = body.Read(make([]byte, bytes)) // one second
			read += n
		}
		var failure *Failure
		if errors.As(err, &failure) != slow || slow && read > 100*bytes || !slow && (err != io.EOF || read != 300*bytes) {
			t.Errorf("%d bytes per second: %v after %d bytes", bytes, err, read)
		}
	}
}
