package joblog

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"svc/internal/lru"
)

// Window is some lines of a log.
type Window struct {
	From     int       // the first of them, counted from 1
	Lines    []string  // as HTML
	Total    int       // how many the log has
	Rev      int       // of the sections: it grows when they change
	Sections []Section // all of the log
}

// MaxLines is the most lines of a window.
const MaxLines = 500

// Cache remembers where the lines of logs are, of those that were read
// last. It is safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	known *lru.Map[int64, *entry] // its costs are bytes, about
}

// entry is the index of one log; its lock is held while the log is read.
type entry struct {
	mu  sync.Mutex
	key int64
	x   index
}

// NewCache returns a cache of about limit bytes.
func NewCache(limit int) *Cache {
	return &Cache{known: lru.New[int64, *entry](limit, nil)}
}

// Tail stands for the last lines of a log.
const Tail = -1

// Window gives count lines of the log of a key from a line on, counted from 1,
// or the last ones. The first look at a log reads it through once, without
// keeping it.
func (s *Cache) Window(key int64, log io.ReadSeeker, size int64, from, count int) (Window, error) {
	one := s.of(key)
	one.mu.Lock()
	err := one.x.follow(log, size)
	if err != nil {
		one.x = index{}
	}
	w := Window{Total: one.x.total(), Rev: one.x.sections.rev, Sections: append([]Section(nil), one.x.sections.list...)}
	count = min(max(count, 1), MaxLines)
	if from == Tail {
		from = w.Total - count + 1
	}
	w.From = min(max(from, 1), max(w.Total, 1))
	start := one.x.before(w.From - 1)
	cost := one.x.cost()
	one.mu.Unlock()
	s.settle(one, cost)
	if err != nil {
		return Window{}, err
	}
	if _, err := log.Seek(start.at, io.SeekStart); err != nil {
		return Window{}, err
	}
	w.Lines, err = render(io.LimitReader(log, size-start.at), start, w.From-1, min(count, w.Total-w.From+1))
	return w, err
}

// of gives the index of a log.
func (s *Cache) of(key int64) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one, ok := s.known.Get(key); ok {
		return one
	}
	one := &entry{key: key}
	s.known.Put(key, one, 0)
	return one
}

// settle notes what an index takes, and forgets others for it.
func (s *Cache) settle(one *entry, cost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have, _ := s.known.Peek(one.key); have == one { // else it was evicted meanwhile
		s.known.SetCost(one.key, cost)
	}
}

// render makes HTML of count lines from the line first on, both counted from
// 0; r stands at the place start.
func render(r io.Reader, start mark, first, count int) ([]string, error) {
	out := make([]string, 0, max(count, 0))
	in := newLines(r)
	style := start.style
	var t screen
	var b strings.Builder
	for n := start.line; len(out) < count; n++ {
		line, _, err := in.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if n < first {
			style = carry(style, line)
			continue
		}
		rest, _ := markers(line)
		t.clear()
		t.style = style
		t.feed(bytes.TrimSuffix(rest, []byte("\n")))
		style = t.style
		b.Reset()
		t.html(&b)
		out = append(out, b.String())
	}
	return out, nil
}

// End gives the last lines of a log without looking at the others: their
// numbers are not known, nor what color they began in.
func End(log io.ReadSeeker, size int64, count int) ([]string, error) {
	const most = 32 << 10
	from := max(size-most, 0)
	if _, err := log.Seek(from, io.SeekStart); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(log, most))
	if err != nil {
		return nil, err
	}
	if from > 0 { // the first line is not whole
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			text = text[i+1:]
		}
	}
	all := bytes.SplitAfter(bytes.TrimRight(text, "\r\n "), []byte("\n"))
	all = all[max(len(all)-count, 0):]
	return render(bytes.NewReader(bytes.Join(all, nil)), mark{}, 0, count)
}

// Found is what a search has found.
type Found struct {
	Lines []int // their numbers, from 1
	More  bool  // there are more
}

// Search finds the lines that contain a text, without regard to case.
// It reads the log through, and stops at the most that are wanted.
func Search(log io.ReadSeeker, size int64, text string, most int) (Found, error) {
	var found Found
	if _, err := log.Seek(0, io.SeekStart); err != nil {
		return found, err
	}
	want := foldCase(nil, []byte(text))
	if len(want) == 0 {
		return found, nil
	}
	in := newLines(io.LimitReader(log, size))
	var t screen
	var shown []byte
	for n := 1; ; n++ {
		line, _, err := in.next()
		if err == io.EOF {
			return found, nil
		}
		if err != nil {
			return found, err
		}
		shown = t.plain(shown[:0], line)
		if !bytes.Contains(shown, want) {
			continue
		}
		if len(found.Lines) == most {
			found.More = true
			return found, nil
		}
		found.Lines = append(found.Lines, n)
	}
}

// plain returns the text of a line in lower case. Most lines need no
// terminal for that.
func (t *screen) plain(into, line []byte) []byte {
	if simple(line) {
		for {
			at := indexEscape(line)
			if at < 0 {
				return foldCase(into, line)
			}
			into = foldCase(into, line[:at])
			_, _, n := sequence(line[at:])
			line = line[at+n:]
		}
	}
	rest, _ := markers(line)
	t.clear()
	t.feed(rest)
	return foldCase(into, t.text(nil))
}

// simple reports whether nothing on a line is written over: what is read is what
// is shown.
func simple(line []byte) bool {
	if bytes.IndexByte(line, '\r') >= 0 || bytes.IndexByte(line, '\b') >= 0 || bytes.IndexByte(line, '\t') >= 0 {
		return false
	}
	for {
		at := indexEscape(line)
		if at < 0 {
			return true
		}
		_, final, n := sequence(line[at:])
		if final == 'K' || final == 'G' || final == 'C' || final == 'D' {
			return false
		}
		line = line[at+n:]
	}
}

// foldCase appends p in lower case.
func foldCase(into, p []byte) []byte {
	from := len(into)
	into = append(into, p...)
	for i, c := range into[from:] {
		if c >= utf8.RuneSelf {
			return append(into[:from+i], bytes.ToLower(p[i:])...)
		}
		if c-'A' <= 'Z'-'A' {
			into[from+i] = c | 0x20
		}
	}
	return into
}
