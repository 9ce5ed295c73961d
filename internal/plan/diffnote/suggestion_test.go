package diffnote

import (
	"strings"
	"testing"

	"svc/internal/git"
)

// TestIsApplied checks which changes to a file count as applying a suggestion.
func TestIsApplied(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, diff, now string
		from, to        int64
		text            string
		want            bool
	}{
		{"replaced", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a\nB\nc\n", 2, 2, "B\n", true},
		{"replaced by something else", "@@ -1,3 +1,3 @@\n a\n-b\n+X\n c\n", "a\nX\nc\n", 2, 2, "B\n", false},
		{"inserted before", "@@ -1,2 +1,3 @@\n a\n+B\n b\n", "a\nB\nb\nc\n", 2, 2, "B\nb\n", true},
		{"inserted after", "@@ -2,2 +2,3 @@\n b\n+B\n c\n", "a\nb\nB\nc\n", 2, 2, "b\nB\n", true},
		{"the next line was so before", "@@ -1,1 +1,2 @@\n+x\n a\n", "x\na\nb\nc\n", 2, 2, "b\nc\n", false},
		{"deleted", "@@ -1,3 +1,2 @@\n a\n-b\n c\n", "a\nc\n", 2, 2, "", true},
		{"deleted in part", "@@ -1,3 +1,2 @@\n a\n-b\n c\n", "a\nc\n", 2, 3, "", false},
		{"replaced, not deleted", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n", "a\nx\nc\n", 2, 2, "", false},
		{"moved and replaced", "@@ -1,2 +1,4 @@\n+1\n+2\n a\n-b\n+B\n", "1\n2\na\nB\nc\n", 2, 2, "B\n", true},
		{"line ends", "@@ -1,3 +1,3 @@\n a\n-b\n+B\r\n c\n", "a\r\nB\r\nc\r\n", 2, 2, "B\n", true},
	} {
		s, f := &Suggestion{FromLine: tt.from, ToLine: tt.to, ToContent: tt.text}, &git.FileDiff{Diff: tt.diff}
		if got := s.MayBeApplied(f) && s.IsApplied(f, SplitLines([]byte(tt.now))); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// FuzzApply applies suggestions to texts: Apply never reads out of bounds, and
// IsApplied recognizes an applied suggestion if the text changed.
func FuzzApply(f *testing.F) {
	f.Add("a\nb\nc\n", "B\n", int64(2), int64(2), int64(0), "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n")
	f.Add("a\r\nb", "", int64(1), int64(2), int64(-1), "")
	f.Fuzz(func(t *testing.T, text, to string, first, last, offset int64, diff string) {
		if len(text) > 1<<12 || first < 1 || last < first || last > 1<<20 || offset < -1<<20 || offset > 1<<20 {
			return
		}
		lines := SplitLines([]byte(text))
		if strings.Join(lines, "") != text {
			t.Fatalf("lines of %q: %q", text, lines)
		}
		s := &Suggestion{FromLine: first, ToLine: last, ToContent: to, Offset: offset}
		if from, end := first-1+offset, last+offset; from >= 0 && end <= int64(len(lines)) {
			for _, line := range lines[from:end] {
				s.FromContent += strings.TrimRight(line, "\r\n") + "\n"
			}
		}
		if next, ok := s.Apply(lines); ok && !strings.HasPrefix(strings.Join(next, ""), strings.Join(lines[:first-1+offset], "")) {
			t.Errorf("%q changed before line %d: %q", text, first+offset, next)
		}
		d := &git.FileDiff{Diff: diff}
		_ = s.MayBeApplied(d) && s.IsApplied(d, lines)
	})
}
