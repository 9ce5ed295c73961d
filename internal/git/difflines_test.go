package git_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"svc/internal/git"
)

func TestDiffLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"nothing":         {"", nil},
		"changed":         {"@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", []string{"  1 1 a", "- 2 2 b", "+ 3 2 B", "  3 3 c"}},
		"with names":      {"--- a/x\n+++ b/x\n@@ -1 +1 @@ func\n-a\n+b\n\\ No newline at end of file\n", []string{"- 1 1 a", "+ 2 1 b"}},
		"new":             {"@@ -0,0 +1,2 @@\n+a\n+b\n", []string{"+ 1 1 a", "+ 1 2 b"}},
		"inserted":        {"@@ -4,0 +5 @@\n+a\n", []string{"+ 5 5 a"}},
		"removed":         {"@@ -1 +0,0 @@\n-a\n", []string{"- 1 1 a"}},
		"two parts":       {"@@ -1 +1 @@\n-a\n+b\n@@ -9,2 +9 @@\n-c\n d\n", []string{"- 1 1 a", "+ 2 1 b", "- 9 9 c", "  10 9 d"}},
		"a line of signs": {"@@ -1 +1 @@\n-@@ -1 +1 @@\n++++\n", []string{"- 1 1 @@ -1 +1 @@", "+ 2 1 +++"}},
		"no diff":         {"@@ -x +y @@\n a\n", nil},
		"cut off":         {"@@ -1,2 +1,2 @@\n a\nx\n b\n", []string{"  1 1 a"}},
	} {
		var got []string
		for l := range (git.FileDiff{Diff: c.text}).Lines() {
			got = append(got, fmt.Sprintf("%c %d %d %s", l.Kind, l.Old, l.New, strings.TrimRight(l.Text, "\n")))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// FuzzDiffLines parses any text: line numbers only increase within a hunk, and no line is
// returned twice.
func FuzzDiffLines(f *testing.F) {
	f.Add("@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n")
	f.Add("@@ -0,0 +9223372036854775807 @@\n+a\n+b")
	f.Fuzz(func(t *testing.T, text string) {
		heads, lines := strings.Count("\n"+text, "\n@@"), 0
		for l := range (git.FileDiff{Diff: text}).Lines() {
			if lines++; !strings.Contains(text, string(l.Kind)+l.Text) {
				t.Fatalf("%q is not there", l.Text)
			}
		}
		if lines > strings.Count(text, "\n")+1-heads {
			t.Errorf("%d lines of %q", lines, text)
		}
	})
}
