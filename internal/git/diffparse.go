package git

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// diffParser parses the output of diff-tree --raw -p -z: a list of all files,
// followed by their diffs in the same order.
type diffParser struct {
	o     DiffOptions
	diff  *Diff
	size  int // size of all diffs in bytes
	lines int
	texts int   // number of files with a diff so far
	order []int // the file of each following diff

	text []byte // diff of the current file; the buffer is reused
	at   int    // index of the current file; -1 before the first
	big  bool   // the diff of the current file is too large
	body bool   // the header of the current diff was read
}

func (p *diffParser) read(out io.Reader) error {
	in := bufio.NewReaderSize(out, 64<<10)
	for {
		c, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if c == 0 {
			return p.readTexts(in)
		}
		if err := p.readFile(in); err != nil {
			return err
		}
	}
}

// readFile reads "<mode> <mode> <id> <id> <status>\0<path>\0[<path>\0]".
func (p *diffParser) readFile(in *bufio.Reader) error {
	next := func() string {
		s, err := in.ReadString(0)
		if err != nil {
			return ""
		}
		return s[:len(s)-1]
	}
	field := strings.Fields(next())
	if len(field) != 5 {
		return fmt.Errorf("git diff-tree: entry %.200q", field)
	}
	f := FileDiff{AMode: mode(field[0]), BMode: mode(field[1]), OldID: OID(field[2]), NewID: OID(field[3]), OldPath: next()}
	f.NewPath = f.OldPath
	switch field[4][0] {
	case 'A':
		f.New = true
	case 'D':
		f.Deleted = true
	case 'R':
		f.Renamed, f.NewPath = true, next()
	}
	if len(p.diff.Files) == maxDiffFiles {
		p.diff.Cut, p.diff.Overflow = true, true
		return errEnough
	}
	p.order = append(p.order, len(p.diff.Files))
	if field[4][0] == 'T' { // a changed file type has two diffs, a deletion and an addition
		p.order = append(p.order, len(p.diff.Files))
	}
	p.diff.Files = append(p.diff.Files, f)
	return nil
}

func mode(text string) string {
	if text == "000000" {
		return "0"
	}
	return text
}

func (p *diffParser) readTexts(in *bufio.Reader) error {
	p.at = -1
	start := true // at the start of a line
	for {
		if start && p.at >= 0 && p.body && !p.big {
			p.addLines(in)
		}
		part, err := in.ReadSlice('\n')
		whole := err == nil
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return err
		}
		if len(part) > 0 {
			if stop := p.add(part, start); stop {
				return errEnough
			}
		}
		if errors.Is(err, io.EOF) {
			p.endText()
			p.order = nil
			return nil
		}
		start = whole
	}
}

// addLines consumes the complete buffered lines of the current diff, up to its end
// or a limit. It is a fast path of add.
func (p *diffParser) addLines(in *bufio.Reader) {
	buffered, _ := in.Peek(in.Buffered()) // cannot fail
	f, n := &p.diff.Files[p.at], 0
	for n < len(buffered) && buffered[n] != 'd' && p.lines < p.o.MaxLines {
		size := bytes.IndexByte(buffered[n:], '\n') + 1
		if size == 0 || len(p.text)+n+size > p.o.MaxFileSize {
			break
		}
		switch buffered[n] {
		case '+':
			f.Added++
		case '-':
			f.Removed++
		}
		p.lines++
		n += size
	}
	p.text = append(p.text, buffered[:n]...)
	_, _ = in.Discard(n) // cannot fail: the bytes were peeked
}

// add processes a line or a part of one. Lines of the diff start with other
// characters than "diff --git".
func (p *diffParser) add(part []byte, start bool) (stop bool) {
	if start && part[0] == 'd' && strings.HasPrefix(string(part), "diff --git ") {
		p.endText()
		if len(p.order) == 0 {
			return true
		}
		if p.at != p.order[0] {
			p.texts++
		}
		p.at, p.order = p.order[0], p.order[1:]
		p.big, p.body = false, false
		if p.texts > p.o.MaxFiles || p.lines > p.o.MaxLines || p.size > p.o.MaxSize {
			p.order = append([]int{p.at}, p.order...) // finish marks the file as too large
			p.at = -1
			return true
		}
		return false
	}
	if p.at < 0 || p.big {
		return false
	}
	f := &p.diff.Files[p.at]
	if !p.body {
		switch {
		case start && part[0] == '@':
			p.body = true
		case start && strings.HasPrefix(string(part), "Binary files "):
			f.Binary = true
			return false
		case start && p.o.Unidiff && (strings.HasPrefix(string(part), "--- ") || strings.HasPrefix(string(part), "+++ ")):
		default:
			return false
		}
	}
	if start && p.body {
		p.lines++
		switch part[0] {
		case '+':
			f.Added++
		case '-':
			f.Removed++
		}
	}
	if len(p.text)+len(part) > p.o.MaxFileSize || p.lines > p.o.MaxLines {
		p.big, f.TooLarge, p.diff.Overflow = true, true, true
		p.text = p.text[:0]
		f.Diff, f.Added, f.Removed = "", 0, 0
		return false
	}
	p.text = append(p.text, part...)
	return false
}

func (p *diffParser) endText() {
	if p.at < 0 || len(p.text) == 0 {
		return
	}
	text := string(p.text)
	if !utf8.Valid(p.text) { // checking is much faster than converting
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	p.diff.Files[p.at].Diff += text
	p.size += len(p.text)
	p.text = p.text[:0]
}

// finish marks the files whose diffs were not read.
func (p *diffParser) finish() {
	if p.diff.TimedOut && p.at >= 0 && len(p.text) > 0 {
		p.order = append([]int{p.at}, p.order...) // an incomplete diff is dropped
		p.diff.Files[p.at].Added, p.diff.Files[p.at].Removed = 0, 0
	}
	for _, at := range p.order {
		p.diff.Files[at].TooLarge = true
		p.diff.Overflow = true
	}
}
