package web

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxWordLine is the longest line, in bytes, whose words are compared.
	maxWordLine = 2000
	// maxWordCells bounds the comparison of two lines: the product of their
	// numbers of words. Beyond it only their common ends are found.
	maxWordCells = 20_000
	// maxWordWork is the same for all lines of a file.
	maxWordWork = 1_000_000
)

// wordDiff finds the words that differ between two versions of a line, within
// the work that a file may take.
type wordDiff struct {
	work int // cells that have been computed
}

// wordSpan is a part of a line, in bytes.
type wordSpan struct{ from, to int }

// compare returns the parts of both lines that differ. It returns none if the
// lines have so little in common that marks would not help.
func (d *wordDiff) compare(old, now string) (removed, added []wordSpan) {
	if len(old) > maxWordLine || len(now) > maxWordLine || old == now {
		return nil, nil
	}
	a, b := splitWords(old), splitWords(now)
	head := 0
	for head < len(a) && head < len(b) && old[a[head].from:a[head].to] == now[b[head].from:b[head].to] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && old[a[len(a)-1-tail].from:a[len(a)-1-tail].to] == now[b[len(b)-1-tail].from:b[len(b)-1-tail].to] {
		tail++
	}
	midA, midB := a[head:len(a)-tail], b[head:len(b)-tail]
	keepA, keepB := make([]bool, len(midA)), make([]bool, len(midB))
	if cells := len(midA) * len(midB); cells <= maxWordCells && d.work+cells <= maxWordWork {
		d.work += cells
		commonWords(old, now, midA, midB, keepA, keepB)
	}
	same := 0 // characters in common
	for i, w := range a {
		if i < head || i >= len(a)-tail || keepA[i-head] {
			same += len(strings.TrimSpace(old[w.from:w.to]))
		}
	}
	shorter := min(len(strings.TrimSpace(old)), len(strings.TrimSpace(now)))
	if shorter > 0 && same*4 < shorter {
		return nil, nil
	}
	return unkept(old, midA, keepA), unkept(now, midB, keepB)
}

// unkept joins the words that differ. A single space or sign between two of them
// differs with them: one mark is easier to read than three.
func unkept(line string, words []wordSpan, keep []bool) []wordSpan {
	var list []wordSpan
	for i, w := range words {
		if keep[i] {
			continue
		}
		if n := len(list); n > 0 && w.from-list[n-1].to <= 1 && (w.from == list[n-1].to || line[list[n-1].to] == ' ') {
			list[n-1].to = w.to
			continue
		}
		list = append(list, w)
	}
	return list
}

// commonWords marks a longest common subsequence of words.
func commonWords(old, now string, a, b []wordSpan, keepA, keepB []bool) {
	width := len(b) + 1
	length := make([]int32, (len(a)+1)*width)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if old[a[i].from:a[i].to] == now[b[j].from:b[j].to] {
				length[i*width+j] = length[(i+1)*width+j+1] + int32(a[i].to-a[i].from)
			} else {
				length[i*width+j] = max(length[(i+1)*width+j], length[i*width+j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case old[a[i].from:a[i].to] == now[b[j].from:b[j].to]:
			keepA[i], keepB[j] = true, true
			i, j = i+1, j+1
		case length[(i+1)*width+j] >= length[i*width+j+1]:
			i++
		default:
			j++
		}
	}
}

// splitWords splits a line: letters and digits form words, spaces form runs, and
// every other character stands alone.
func splitWords(line string) []wordSpan {
	var list []wordSpan
	last := 0 // kind of the last word: 1 letters, 2 spaces
	for i, r := range line {
		kind := 0
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '_', unicode.Is(unicode.Mn, r), r == utf8.RuneError: // part of a letter in another encoding, mostly
			kind = 1
		case r == ' ', r == '\t':
			kind = 2
		}
		size := utf8.RuneLen(r)
		if r == utf8.RuneError {
			_, size = utf8.DecodeRuneInString(line[i:])
		}
		if kind != 0 && kind == last {
			list[len(list)-1].to = i + size
		} else {
			list = append(list, wordSpan{i, i + size})
		}
		last = kind
	}
	return list
}

// markWords puts marks around parts of a line that is HTML with highlighting. The
// parts are of the text, as it is shown. If the text is not the one that the HTML
// has, the HTML is returned unchanged.
func markWords(html, text string, parts []wordSpan) string {
	if len(parts) == 0 {
		return html
	}
	var b strings.Builder
	whole, at, marked := html, 0, false // at: bytes of the text so far
	mark := func(want bool) {
		if want == marked {
			return
		}
		if marked = want; want {
			b.WriteString("<mark>")
		} else {
			b.WriteString("</mark>")
		}
	}
	for html != "" {
		if html[0] == '<' {
			end := strings.IndexByte(html, '>')
			if end < 0 {
				return whole
			}
			mark(false) // marks never cross the tags of the highlighting
			b.WriteString(html[:end+1])
			html = html[end+1:]
			continue
		}
		raw, size := 1, 1
		if html[0] == '&' {
			// Escaped are single ASCII characters only.
			raw = max(strings.IndexByte(html, ';')+1, 1)
		} else {
			_, raw = utf8.DecodeRuneInString(html)
			size = raw
		}
		for len(parts) > 0 && at >= parts[0].to {
			parts = parts[1:]
		}
		mark(len(parts) > 0 && at >= parts[0].from)
		b.WriteString(html[:raw])
		html, at = html[raw:], at+size
	}
	mark(false)
	if at != len(text) {
		return whole
	}
	return b.String()
}
