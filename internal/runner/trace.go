package runner

import (
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"sync"
)

// trace is the log of a job. It is stored in a file until the server has all of it,
// so that no data is lost while the server is unavailable or if the runner is
// killed.
type trace struct {
	mu   sync.Mutex
	file *os.File
	size int64
	sum  hash.Hash32
	most int64 // maximum size; the rest is dropped
	full bool
}

// maxTrace is larger than any log limit of a server. It prevents a job with endless
// output from filling the disk.
const maxTrace = 1 << 30

// openTrace opens a log file and computes the checksum of its current content.
func openTrace(path string) (*trace, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	t := &trace{file: f, sum: crc32.NewIEEE(), most: maxTrace}
	if t.size, err = io.Copy(t.sum, f); err != nil {
		return nil, errors.Join(fmt.Errorf("log: %w", err), f.Close())
	}
	return t, nil
}

// Write implements io.Writer.
func (t *trace) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fits := p[:max(0, min(int64(len(p)), t.most-t.size))]
	if err := t.add(fits); err != nil || len(fits) == len(p) {
		return len(p), err
	}
	if t.full {
		return len(p), nil
	}
	t.full = true
	return len(p), t.add(fmt.Appendf(nil, "\n%s\n", yellow("WARNING: the log is too long; the job goes on, but what it writes is dropped")))
}

func (t *trace) add(p []byte) error {
	n, err := t.file.Write(p)
	t.size += int64(n)
	t.sum.Write(p[:n])
	return err
}

// total returns the size and checksum of the log.
func (t *trace) total() output {
	t.mu.Lock()
	defer t.mu.Unlock()
	return output{Checksum: fmt.Sprintf("crc32:%08x", t.sum.Sum32()), Bytesize: t.size}
}

// read returns at most the given number of bytes of the log, from an offset.
func (t *trace) read(at int64, most int) ([]byte, error) {
	size := t.total().Bytesize
	p := make([]byte, min(int64(most), max(0, size-at)))
	n, err := t.file.ReadAt(p, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return p[:n], err
}

// Close implements io.Closer.
func (t *trace) Close() error { return t.file.Close() }
