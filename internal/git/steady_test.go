package git

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// dripping sends some bytes after each pause.
type dripping struct {
	size  int
	pause time.Duration
	left  int
}

func (d *dripping) Read(b []byte) (int, error) {
	if d.left--; d.left < 0 {
		return 0, io.EOF
	}
	<-time.NewTimer(d.pause).C
	return min(d.size, len(b)), nil
}

func TestSteady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name  string
			begun bool
			in    dripping
			want  error
		}{
			{"a byte in nine minutes", true, dripping{1, 9 * time.Minute, 10}, errSlow},
			{"a byte per second", true, dripping{1, time.Second, 1000}, errSlow},
			{"2 KiB per second", true, dripping{2 << 10, time.Second, 1000}, nil},
			{"64 KiB per minute", true, dripping{64 << 10, time.Minute, 1000}, nil},
			{"before the pack", false, dripping{1, 9 * time.Minute, 10}, nil},
		} {
			_, err := io.CopyBuffer(onlyWriter{io.Discard}, onlyReader{&steady{in: &c.in, begun: c.begun}}, make([]byte, 64<<10))
			if !errors.Is(err, c.want) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		// A fast start does not excuse what follows.
		s := &steady{in: io.MultiReader(&dripping{64 << 10, time.Second, 1000}, &dripping{1, time.Minute, 10}), begun: true}
		if _, err := io.CopyBuffer(onlyWriter{io.Discard}, onlyReader{s}, make([]byte, 64<<10)); !errors.Is(err, errSlow) {
			t.Errorf("slow in the end: %v", err)
		}
	})
}
