package git

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// feed passes a client's words to a process through a pipe of its own. The
// process may end while the client still has its side open, as it has in a
// conversation; then nobody waits for a word that does not come.
type feed struct {
	file *os.File // what the process reads
	// ended is closed when the input is over, or can not be read any more.
	ended chan struct{}
}

// maxDrain bounds what is read from a client after the process has ended. A
// client that is still sending only listens when it is done.
const maxDrain = 256 << 20

func newFeed(in io.Reader) (*feed, error) {
	file, pipe, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start git: %w", err)
	}
	f := &feed{file: file, ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		_, err := io.CopyBuffer(onlyWriter{pipe}, onlyReader{in}, make([]byte, 64<<10))
		pipe.Close()
		if errors.Is(err, syscall.EPIPE) {
			_, _ = io.Copy(io.Discard, io.LimitReader(in, maxDrain)) // the client learns why from the answer
		}
	}()
	return f, nil
}

// stop is called when the process has ended.
func (f *feed) stop() { f.file.Close() }

// onlyReader hides all but Read, so that a copy uses the buffer it is given.
type onlyReader struct{ io.Reader }
