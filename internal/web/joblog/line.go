package joblog

import (
	"strings"
	"unicode/utf8"
)

// maxCells is the number of characters of a line that are shown, so that a page
// stays small.
const maxCells = 2000

// cell is a place on a line.
type cell struct {
	r rune
	s style
}

// screen is one line of a terminal. What programs write over, as they do for
// bars of progress, is shown as it stood in the end.
type screen struct {
	cells []cell
	col   int
	style style
	more  bool // there was more than fits
}

// clear begins a new line, in the style in which the last one ended.
func (t *screen) clear() { t.cells, t.col, t.more = t.cells[:0], 0, false }

// feed writes a line.
func (t *screen) feed(p []byte) {
	for len(p) > 0 {
		c := p[0]
		switch {
		case c == 0x1b:
			p = p[t.escape(p):]
			continue
		case c >= ' ' && c < 0x7f:
			t.put(rune(c))
		case c == '\r':
			t.col = 0
		case c == '\b':
			t.col = max(t.col-1, 0)
		case c == '\t':
			for t.put(' '); t.col%8 != 0 && t.col < maxCells; {
				t.put(' ')
			}
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(p)
			if r >= 0xa0 { // below are the controls of another time
				t.put(r)
			}
			p = p[n:]
			continue
		}
		p = p[1:]
	}
}

func (t *screen) put(r rune) {
	if t.col >= maxCells {
		t.more = true
		return
	}
	for len(t.cells) < t.col {
		t.cells = append(t.cells, cell{r: ' '})
	}
	at := cell{r, t.style}
	if t.col < len(t.cells) {
		t.cells[t.col] = at
	} else {
		t.cells = append(t.cells, at)
	}
	t.col++
}

// escape obeys the sequence with which p begins, and gives its length.
func (t *screen) escape(p []byte) int {
	params, final, n := sequence(p)
	switch final {
	case 'm':
		t.style.apply(params)
		return n
	case 'K', 'G', 'C', 'D':
	default:
		return n
	}
	var first [1]int
	if numbers(params, first[:]) == 0 {
		return n
	}
	switch v := first[0]; final {
	case 'K':
		t.erase(v)
	case 'G':
		t.col = min(max(v, 1)-1, maxCells)
	case 'C':
		t.col = min(t.col+max(v, 1), maxCells)
	case 'D':
		t.col = max(t.col-max(v, 1), 0)
	}
	return n
}

// erase removes what is behind the cursor, before it, or all.
func (t *screen) erase(what int) {
	switch what {
	case 0:
		t.cells = t.cells[:min(t.col, len(t.cells))]
	case 1:
		for i := range min(t.col+1, len(t.cells)) {
			t.cells[i] = cell{r: ' '}
		}
	case 2:
		t.cells = t.cells[:0]
	}
}

// sequence takes an escape sequence apart: its parameters and its last byte,
// if it is one of those that do something on a line, and how long it is.
func sequence(p []byte) (params []byte, final byte, n int) {
	if len(p) < 2 {
		return nil, 0, len(p)
	}
	switch p[1] {
	case '[':
		for i := 2; i < len(p); i++ {
			switch c := p[i]; {
			case c >= 0x40 && c <= 0x7e:
				return p[2:i], c, i + 1
			case c < 0x20 || c > 0x7e:
				return nil, 0, i // broken off
			}
		}
		return nil, 0, len(p)
	case ']', 'P', 'X', '^', '_': // a text for the terminal itself
		for i := 2; i < len(p); i++ {
			if p[i] == 0x07 {
				return nil, 0, i + 1
			}
			if p[i] == 0x1b {
				if i+1 < len(p) && p[i+1] == '\\' {
					return nil, 0, i + 2
				}
				return nil, 0, i
			}
		}
		return nil, 0, len(p)
	}
	i := 1
	for i < len(p) && p[i] >= 0x20 && p[i] <= 0x2f {
		i++
	}
	if i < len(p) && p[i] >= 0x30 && p[i] <= 0x7e {
		i++
	}
	return nil, 0, i
}

// carry gives the style at the end of a line that begins in style s.
func carry(s style, line []byte) style {
	for {
		at := indexEscape(line)
		if at < 0 {
			return s
		}
		params, final, n := sequence(line[at:])
		if final == 'm' {
			s.apply(params)
		}
		line = line[at+n:]
	}
}

// html writes the line as HTML.
func (t *screen) html(b *strings.Builder) {
	var now style
	for _, c := range t.cells {
		if c.s != now {
			if now != (style{}) {
				b.WriteString("</span>")
			}
			if c.s != (style{}) {
				c.s.open(b)
			}
			now = c.s
		}
		switch c.r {
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '&':
			b.WriteString("&amp;")
		case '"':
			b.WriteString("&#34;")
		case '\'':
			b.WriteString("&#39;")
		default:
			b.WriteRune(c.r)
		}
	}
	if now != (style{}) {
		b.WriteString("</span>")
	}
	if t.more {
		b.WriteString(`<span class="cut" title="The line is longer">…</span>`)
	}
}

// text is the line without its looks.
func (t *screen) text(into []byte) []byte {
	for _, c := range t.cells {
		into = utf8.AppendRune(into, c.r)
	}
	return into
}
