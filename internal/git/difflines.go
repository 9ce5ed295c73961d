package git

import (
	"iter"
	"strconv"
	"strings"
)

// DiffLine is a line of the text of a diff. One that was added stands before the
// line Old of the old file, one that was removed before the line New of the new
// one.
type DiffLine struct {
	Kind byte // '+', '-' or ' '
	Old  int64
	New  int64
	Text string // without the sign; with the end of the line, if it has one
}

// Lines goes through the lines of the text. Heads of parts and remarks are left
// out, and so is all that follows something that is no diff.
func (f FileDiff) Lines() iter.Seq[DiffLine] {
	return func(yield func(DiffLine) bool) {
		var at [2]int64
		begun := false
		for row := range strings.Lines(f.Diff) {
			if strings.HasPrefix(row, "@@") {
				if at, begun = hunkStart(row); !begun {
					return
				}
				continue
			}
			if !begun { // the names of the files
				continue
			}
			l := DiffLine{Kind: row[0], Old: at[0], New: at[1], Text: row[1:]}
			switch l.Kind {
			case '+':
				at[1]++
			case '-':
				at[0]++
			case ' ':
				at[0], at[1] = at[0]+1, at[1]+1
			case '\\':
				continue
			default:
				return
			}
			if !yield(l) {
				return
			}
		}
	}
}

// hunkStart reads the first lines out of "@@ -1,2 +3,4 @@". A side without lines
// names the one before: the next one to come is the one after that.
func hunkStart(head string) (at [2]int64, ok bool) {
	words := strings.Fields(head)
	if len(words) < 4 || words[0] != "@@" || words[3] != "@@" {
		return at, false
	}
	for i, sign := range []string{"-", "+"} {
		text, found := strings.CutPrefix(words[i+1], sign)
		number, count, counted := strings.Cut(text, ",")
		n, err := strconv.ParseInt(number, 10, 64)
		if !found || err != nil || n < 0 {
			return at, false
		}
		if counted && count == "0" {
			n++
		}
		at[i] = n
	}
	return at, true
}
