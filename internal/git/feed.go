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

// feed copies the input of a client to a process through a pipe. The process may
// exit while the client keeps its side of the connection open; then no one waits
// for more input.
type feed struct {
	file *os.File // stdin of the process
	// ended is closed when the input has been read or cannot be read any more.
	ended chan struct{}

	mu      sync.Mutex
	refused error
}

// maxDrain is the maximum number of bytes read from a client after the process has
// exited. A client that is still sending reads the answer only afterwards.
const maxDrain = 256 << 20

func newFeed(in io.Reader) (*feed, error) {
	return newFilteredFeed(in, func(out io.Writer) error {
		_, err := io.CopyBuffer(out, onlyReader{in}, make([]byte, 64<<10))
		return err
	})
}

// newFilteredFeed returns a feed whose input is copied by pass. If pass fails, the
// process gets no more input and refusal returns the error.
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
			_, _ = io.Copy(io.Discard, io.LimitReader(in, maxDrain)) // the client gets the reason in the answer
		}
	}()
	return f, nil
}

// refusal returns the error of the copy, if any. It is set before the process can
// exit because of it.
func (f *feed) refusal() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refused
}

// stop is called when the process has exited.
func (f *feed) stop() { f.file.Close() }

// onlyReader hides all methods but Read, so that io.CopyBuffer uses its buffer.
type onlyReader struct{ io.Reader }
