// Package joblog shows logs of jobs, which may be far larger than a page or
// the memory that one may take: it remembers where the lines of a log begin,
// reads a few of them, and makes HTML of what a terminal would show.
package joblog

import (
	"bytes"
	"errors"
	"io"
)

const (
	// maxLine is the most bytes of one line: what has more is several lines,
	// so that no line must be read whole to know where the next one begins.
	maxLine = 64 << 10
	// A place is remembered after so many lines or bytes.
	markLines = 256
	markBytes = 256 << 10
	// seamSize is how much of the end of what was read is compared before
	// reading on.
	seamSize = 64
)

func indexEscape(p []byte) int { return bytes.IndexByte(p, 0x1b) }

// mark is where a line begins, and in which style.
type mark struct {
	line  int // lines before it
	at    int64
	style style
}

// index knows where the lines of a log are. A log is only added to, so an
// index is read on when there is more.
type index struct {
	marks    []mark
	lines    int   // that have ended
	at       int64 // where they end
	rest     int   // bytes of a line that has not ended yet
	style    style // at the end
	seam     []byte
	sections sections
}

// total is how many lines there are.
func (x *index) total() int {
	if x.rest > 0 {
		return x.lines + 1
	}
	return x.lines
}

// cost is about how much memory the index takes.
func (x *index) cost() int { return 1024 + len(x.marks)*40 + len(x.sections.list)*120 }

// follow reads what was added to a log. When it is not the log that was read
// before, all of it is read again.
func (x *index) follow(log io.ReadSeeker, size int64) error {
	if x.at+int64(x.rest) == size && size > 0 {
		return nil
	}
	same, err := x.continues(log, size)
	if err != nil {
		return err
	}
	if !same {
		*x = index{}
	}
	if _, err := log.Seek(x.at, io.SeekStart); err != nil {
		return err
	}
	return x.read(io.LimitReader(log, size-x.at))
}

// continues compares the end of what was read with what stands there now.
func (x *index) continues(log io.ReadSeeker, size int64) (bool, error) {
	if size < x.at {
		return false, nil
	}
	if len(x.seam) == 0 {
		return x.at == 0, nil
	}
	if _, err := log.Seek(x.at-int64(len(x.seam)), io.SeekStart); err != nil {
		return false, err
	}
	now := make([]byte, len(x.seam))
	if _, err := io.ReadFull(log, now); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
			return false, nil
		}
		return false, err
	}
	return bytes.Equal(now, x.seam), nil
}

// read takes in lines.
func (x *index) read(r io.Reader) error {
	in := newLines(r)
	for {
		line, ended, err := in.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if !ended {
			x.rest = len(line)
			return nil
		}
		x.rest = 0
		if last := len(x.marks) - 1; last < 0 || x.lines-x.marks[last].line >= markLines || x.at-x.marks[last].at >= markBytes {
			x.marks = append(x.marks, mark{x.lines, x.at, x.style})
		}
		x.lines++
		x.at += int64(len(line))
		if rest, found := markers(line); found != nil {
			var t screen
			t.feed(rest)
			x.sections.note(x.lines, found, len(bytes.TrimSpace(t.text(nil))) == 0)
		}
		x.style = carry(x.style, line)
		x.seam = append(x.seam, line[max(0, len(line)-seamSize):]...)
		if n := len(x.seam); n > 2*seamSize {
			x.seam = append(x.seam[:0], x.seam[n-seamSize:]...)
		}
	}
}

// before is the nearest place before a line, counted from 0, that is known.
func (x *index) before(line int) mark {
	low, high := 0, len(x.marks)
	for low < high {
		if mid := (low + high) / 2; x.marks[mid].line <= line {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == 0 {
		return mark{}
	}
	return x.marks[low-1]
}

// lines reads lines, each with its newline.
type lines struct {
	r    io.Reader
	buf  []byte
	from int
	to   int
	err  error
}

func newLines(r io.Reader) *lines { return &lines{r: r, buf: make([]byte, 4*maxLine)} }

// next gives the next line, which is good until the next call, and whether it
// has ended: the last one may not have.
func (l *lines) next() (line []byte, ended bool, err error) {
	seen := 0
	for {
		have := l.buf[l.from:l.to]
		if i := bytes.IndexByte(have[seen:min(len(have), maxLine)], '\n'); i >= 0 {
			n := seen + i + 1
			l.from += n
			return have[:n], true, nil
		}
		if len(have) >= maxLine {
			l.from += maxLine
			return have[:maxLine], true, nil
		}
		if l.err != nil {
			l.from = l.to
			if len(have) > 0 && l.err == io.EOF {
				return have, false, nil
			}
			return nil, false, l.err
		}
		seen = len(have)
		if l.from > 0 && len(l.buf)-l.to < maxLine {
			copy(l.buf, have)
			l.from, l.to = 0, len(have)
		}
		var n int
		n, l.err = l.r.Read(l.buf[l.to:])
		l.to += n
	}
}
