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

// diffParser reads the output of diff-tree --raw -p -z: first a list of all
// files, then their texts in the same order.
type diffParser struct {
	o     DiffOptions
	diff  *Diff
	size  int // bytes of all texts
	lines int
	texts int   // files with a text so far
	order []int // the file of each text that follows

	text []byte // of the file that is being read; the room is used again
	at   int    // which file that is; -1 before the first
	big  bool   // its text is not wanted any more
	body bool   // the head of its text is over
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
		p.diff.Overflow = true
		return errEnough
	}
	p.order = append(p.order, len(p.diff.Files))
	if field[4][0] == 'T' { // it is deleted in one text and made in another
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
	start := true // of a line
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

// addLines takes the whole lines of a text that are there already, up to its
// end or to a limit: most of a text is taken in few steps. What add would do
// more than count and copy is left to it.
func (p *diffParser) addLines(in *bufio.Reader) {
	there, _ := in.Peek(in.Buffered()) // cannot fail
	f, n := &p.diff.Files[p.at], 0
	for n < len(there) && there[n] != 'd' && p.lines < p.o.MaxLines {
		size := bytes.IndexByte(there[n:], '\n') + 1
		if size == 0 || len(p.text)+n+size > p.o.MaxFileSize {
			break
		}
		switch there[n] {
		case '+':
			f.Added++
		case '-':
			f.Removed++
		}
		p.lines++
		n += size
	}
	p.text = append(p.text, there[:n]...)
	_, _ = in.Discard(n) // as it was peeked
}

// add takes a part of a line. Lines of a file's content start with another
// letter than those of the head.
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
			p.order = append([]int{p.at}, p.order...) // finish marks it
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
	if !utf8.Valid(p.text) { // which is asked much faster than it is mended
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	p.diff.Files[p.at].Diff += text
	p.size += len(p.text)
	p.text = p.text[:0]
}

// finish marks the files whose text was not read.
func (p *diffParser) finish() {
	if p.diff.TimedOut && p.at >= 0 && len(p.text) > 0 {
		p.order = append([]int{p.at}, p.order...) // half a text is none
		p.diff.Files[p.at].Added, p.diff.Files[p.at].Removed = 0, 0
	}
	for _, at := range p.order {
		p.diff.Files[at].TooLarge = true
		p.diff.Overflow = true
	}
}
