package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"svc/internal/git/pack"
)

// feed passes a client's words to a process through its own pipe. The process
// may end while the client still has its side open, as it has in a
// conversation; then no one waits for a word that does not come.
type feed struct {
	file *os.File // what the process reads
	// ended is closed when the input is over, or cannot be read any more.
	ended chan struct{}

	mu      sync.Mutex
	refused error
}

// maxDrain bounds what is read from a client after the process has ended. A
// client that is still sending only listens when it is done.
const maxDrain = 256 << 20

func newFeed(in io.Reader) (*feed, error) {
	return newFilteredFeed(in, func(out io.Writer) error {
		_, err := io.CopyBuffer(out, onlyReader{in}, make([]byte, 64<<10))
		return err
	})
}

// newFilteredFeed returns a feed whose input passes through a function. If that
// fails, the process gets no more input, and refusal returns the reason.
func newFilteredFeed(in io.Reader, pass func(io.Writer) error) (*feed, error) {
	file, pipe, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start git: %w", err)
	}
	f := &feed{file: file, ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		err := pass(onlyWriter{pipe})
		if err != nil && !errors.Is(err, syscall.EPIPE) {
			f.mu.Lock()
			f.refused = err
			f.mu.Unlock()
		}
		pipe.Close()
		if errors.Is(err, syscall.EPIPE) || errors.Is(err, pack.ErrMalformed) || errors.Is(err, ErrTooLarge) ||
			errors.Is(err, ErrBusy) || errors.Is(err, context.Canceled) {
			_, _ = io.Copy(io.Discard, io.LimitReader(in, maxDrain)) // the client learns why from the answer
		}
	}()
	return f, nil
}

// refusal is why the process did not get all, if that is known. A process that
// ends because of it ends after it is known.
func (f *feed) refusal() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refused
}

// stop is called when the process has ended.
func (f *feed) stop() { f.file.Close() }

// onlyReader hides all but Read, so that a copy uses the buffer it is given.
type onlyReader struct{ io.Reader }
