package joblog

import (
	"errors"
	"io"
)

// movedLog reads a live log and continues in the packed one when the log is packed
// meanwhile.
type movedLog struct {
	live   *Reader
	packed func() (*Reader, error) // nil if there is none
	now    *Reader                 // the packed log, once it is used
	at     int64
}

// Read implements io.Reader.
func (l *movedLog) Read(p []byte) (int, error) {
	if l.now == nil {
		n, err := l.live.Read(p)
		l.at += int64(n)
		if n > 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
			return n, err
		}
		packed, perr := l.packed()
		if perr != nil {
			return 0, perr
		}
		if packed == nil { // it was removed
			return 0, err
		}
		l.now = packed
		if _, err := packed.Seek(l.at, io.SeekStart); err != nil {
			return 0, err
		}
	}
	if left := l.live.Size - l.at; left < int64(len(p)) {
		p = p[:max(left, 0)] // bytes appended since it was opened are not part of it
	}
	if len(p) == 0 {
		return 0, io.EOF
	}
	n, err := l.now.Read(p)
	l.at += int64(n)
	return n, err
}

// Seek implements io.Seeker.
func (l *movedLog) Seek(offset int64, whence int) (int64, error) {
	if _, err := seek(&l.at, l.live.Size, offset, whence); err != nil {
		return 0, err
	}
	if l.now != nil {
		return l.now.Seek(l.at, io.SeekStart)
	}
	return l.live.Seek(l.at, io.SeekStart)
}

// Close implements io.Closer.
func (l *movedLog) Close() error {
	err := l.live.Close()
	if l.now != nil {
		err = errors.Join(err, l.now.Close())
	}
	return err
}
