package web

import (
	"html/template"
	"strings"
	"testing"

	"svc/internal/git"
)

func TestDrawDiff(t *testing.T) {
	t.Parallel()
	text := "@@ -1,3 +1,3 @@ func <x>\n a\n-b\n-c\n+B\n d\n\\ No newline at end of file\n"
	for _, c := range []struct {
		parallel bool
		want     string
	}{
		{false, `<tr class="hunk"><td colspan="3">@@ -1,3 +1,3 @@ func &lt;x&gt;</td></tr>
<tr class="same"><td data-n="1"></td><td data-n="1"></td><td>a</td></tr>
<tr class="del"><td data-n="2"></td><td></td><td>b</td></tr>
<tr class="del"><td data-n="3"></td><td></td><td>c</td></tr>
<tr class="add"><td></td><td data-n="2"></td><td>B</td></tr>
<tr class="same"><td data-n="4"></td><td data-n="3"></td><td>d</td></tr>
<tr class="hint"><td colspan="3">No newline at end of file</td></tr>
`},
		{true, `<tr class="hunk"><td colspan="4">@@ -1,3 +1,3 @@ func &lt;x&gt;</td></tr>
<tr><td data-n="1"></td><td class="same">a</td><td data-n="1"></td><td class="same">a</td></tr>
<tr><td data-n="2"></td><td class="del">b</td><td data-n="2"></td><td class="add">B</td></tr>
<tr><td data-n="3"></td><td class="del">c</td><td></td><td class="none"></td></tr>
<tr><td data-n="4"></td><td class="same">d</td><td data-n="3"></td><td class="same">d</td></tr>
<tr class="hint"><td colspan="4">No newline at end of file</td></tr>
`},
	} {
		if got := drawn(t, "x", text, c.parallel); got != c.want {
			t.Errorf("parallel %v:\n%s", c.parallel, got)
		}
	}
}

// TestDrawThreads draws threads below their lines, also if the line looks
// unchanged because changes of whitespace are not shown.
func TestDrawThreads(t *testing.T) {
	t.Parallel()
	text := "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
	for _, c := range []struct {
		notes lineNotes
		after string
	}{
		{lineNotes{at: map[lineAt]template.HTML{{2, 0}: "T"}}, "<td>b</td>"},
		{lineNotes{at: map[lineAt]template.HTML{{0, 2}: "T"}}, "<td>B</td>"},
		{lineNotes{at: map[lineAt]template.HTML{{3, 3}: "T"}}, "<td>c</td>"},
		{lineNotes{at: map[lineAt]template.HTML{{0, 1}: "T"}}, "<td>a</td>"},
		{lineNotes{at: map[lineAt]template.HTML{{3, 0}: "T"}}, "<td>c</td>"},
		{lineNotes{at: map[lineAt]template.HTML{{0, 3}: "T"}, newSide: true}, "<td>c</td>"},
	} {
		html := string(testWeb().drawDiff(t.Context(), "x", text, false, c.notes))
		if want := c.after + "</tr>\n<tr class=\"talkrow\"><td colspan=\"3\">T</td></tr>"; strings.Count(html, "talkrow") != 1 || !strings.Contains(html, want) {
			t.Errorf("%v: %s", c.notes, html)
		}
	}
}

// FuzzDrawDiff draws arbitrary texts: no line becomes markup, and none is lost.
func FuzzDrawDiff(f *testing.F) {
	f.Add("x.go", "@@ -1 +1 @@\n-a\n+<script>\r\n\\ No newline at end of file\n")
	f.Add("x", "@@ -0,0 +1,2 @@\n+\n+b\n")
	f.Add("<b>", "+\u202e\n\n-\x00")
	f.Fuzz(func(t *testing.T, name, text string) {
		for _, parallel := range []bool{false, true} {
			html := drawn(t, name, strings.ToValidUTF8(text, "\uFFFD"), parallel)
			rest := html
			for rest != "" {
				_, after, found := strings.Cut(rest, "<")
				if !found {
					break
				}
				tag, tail, _ := strings.Cut(after, ">")
				switch word, _, _ := strings.Cut(strings.TrimPrefix(tag, "/"), " "); word {
				case "tr", "td", "span", "mark":
				default:
					t.Fatalf("a tag <%s> in %s", tag, html)
				}
				rest = tail
			}
		}
		n := 0
		for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			if line != "" && strings.IndexByte(" +-@\\", line[0]) >= 0 {
				n++
			}
		}
		if got := len(testWeb().parseDiff(t.Context(), name, text)); got != n {
			t.Errorf("%d lines of %d", got, n)
		}
	})
}

func TestShown(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain\tname.txt": "plain\tname.txt", "Ünïcode 世界": "Ünïcode 世界", "a\nb\r\x00": "a␊b␍␀", "\u202eabc\u2066": "[U+202E]abc[U+2066]", "\x7f": "␡", "\xff": "\uFFFD", "\u2028": "[U+2028]",
	} {
		if got := shown(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
	if got := shownText("a\n\u202eb"); got != "a\n[U+202E]b" {
		t.Errorf("a text is shown as %q", got)
	}
}

func TestPlot(t *testing.T) {
	t.Parallel()
	if got := plot(nil, 0, 0, "x"); got != "" {
		t.Errorf("nothing is drawn as %s", got)
	}
	weeks := map[int64]int{100: 4, 101: 2, 2000: 1}
	first, last := span(weeks)
	got := string(plot(weeks, first, last, `a "b"`))
	if first != 100 || last != 2000 || strings.Count(got, "<rect") != 2 || !strings.Contains(got, "6 commits from 2 Dec 1971") || !strings.Contains(got, `aria-label="a &#34;b&#34;"`) {
		t.Errorf("weeks %d to %d: %s", first, last, got)
	}
	if step := weekStart(1).Unix(); step != int64(git.Week.Seconds()) {
		t.Errorf("a week has %d seconds", step)
	}
}

func TestLineEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ sent, was, want string }{
		{"a\r\nb", "x\ny\n", "a\nb"}, {"a\r\nb\r\n", "x\r\ny\r\n", "a\r\nb\r\n"}, {"a\r\nb", "", "a\nb"}, {"a\rb\n", "x\n", "a\nb\n"}, {"a\r\n", "x\r\ny\nz\n", "a\n"},
	} {
		if got := lines(c.sent, c.was); got != c.want {
			t.Errorf("%q for a file %q becomes %q, want %q", c.sent, c.was, got, c.want)
		}
	}
}

func drawn(t *testing.T, name, text string, parallel bool) string {
	t.Helper()
	return string(testWeb().drawDiff(t.Context(), name, text, parallel, lineNotes{}))
}
