package git

import (
	"iter"
	"strconv"
	"strings"
)

// DiffLine is a line of a diff. For an added line, Old is the number of the old
// line that follows it; for a removed line, New is the number of the new line that
// follows it.
type DiffLine struct {
	Kind byte // '+', '-' or ' '
	Old  int64
	New  int64
	Text string // without the prefix, with the newline if there is one
}

// Lines iterates over the lines of the diff, without hunk headers and "\ No
// newline" markers. It stops at a line that is not part of a diff.
func (f FileDiff) Lines() iter.Seq[DiffLine] {
	return func(yield func(DiffLine) bool) {
		var next [2]int64
		inHunk := false
		for line := range strings.Lines(f.Diff) {
			if strings.HasPrefix(line, "@@") {
				if next, inHunk = hunkStart(line); !inHunk {
					return
				}
				continue
			}
			if !inHunk { // the "---" and "+++" lines
				continue
			}
			l := DiffLine{Kind: line[0], Old: next[0], New: next[1], Text: line[1:]}
			switch l.Kind {
			case '+':
				next[1]++
			case '-':
				next[0]++
			case ' ':
				next[0], next[1] = next[0]+1, next[1]+1
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

// hunkStart parses the line numbers of a hunk header, "@@ -1,2 +3,4 @@". For a
// side without lines, git gives the line before, so the next line is one higher.
func hunkStart(head string) (at [2]int64, ok bool) {
	fields := strings.Fields(head)
	if len(fields) < 4 || fields[0] != "@@" || fields[3] != "@@" {
		return at, false
	}
	for i, sign := range []string{"-", "+"} {
		text, found := strings.CutPrefix(fields[i+1], sign)
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
