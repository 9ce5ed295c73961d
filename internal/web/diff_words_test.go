package web

import (
	"html/template"
	"regexp"
	"strings"
	"testing"
)

func TestWordDiff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, now, wantOld, wantNow string }{
		{"a := f(x, y)", "a := f(x, z)", "a := f(x, [y])", "a := f(x, [z])"},
		{"return err", "return fmt.Errorf(\"x: %w\", err)", "return err", "return [fmt.Errorf(\"x: %w\", ]err[)]"},
		{"one two three", "one 2 three", "one [two] three", "one [2] three"},
		{"the big bad wolf sleeps", "the small good wolf sleeps", "the [big bad] wolf sleeps", "the [small good] wolf sleeps"},
		{"\tindent", "\t\tindent", "[\t]indent", "[\t\t]indent"},
		{"same", "same", "same", "same"},
		{"nothing alike", "12345", "nothing alike", "12345"}, // marks of whole lines do not help
		{"", "new", "", "[new]"},
		{"größe = 1", "größe = 2", "größe = [1]", "größe = [2]"},
		{"<b> & 'x'", "<b> & 'y'", "<b> & '[x]'", "<b> & '[y]'"},
	} {
		var d wordDiff
		gone, came := d.compare(c.old, c.now)
		if got, now := bracketed(c.old, gone), bracketed(c.now, came); got != c.wantOld || now != c.wantNow {
			t.Errorf("%q and %q: %q and %q", c.old, c.now, got, now)
		}
	}
}

func bracketed(line string, parts []wordSpan) string {
	for i := len(parts) - 1; i >= 0; i-- {
		line = line[:parts[i].from] + "[" + line[parts[i].from:parts[i].to] + "]" + line[parts[i].to:]
	}
	return line
}

func TestMarkWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		html, text string
		parts      []wordSpan
		want       string
	}{
		{`<span class="k">func</span> a`, "func a", []wordSpan{{2, 6}}, `<span class="k">fu<mark>nc</mark></span><mark> a</mark>`},
		{"a &lt;b&gt; c", "a <b> c", []wordSpan{{2, 5}}, "a <mark>&lt;b&gt;</mark> c"},
		{"ö ü", "ö ü", []wordSpan{{3, 5}}, "ö <mark>ü</mark>"},
		{"another text", "text", []wordSpan{{0, 4}}, "another text"},
		{"a & b", "a & b", []wordSpan{{2, 3}}, "a <mark>&</mark> b"},
		{"a <b", "a <b", []wordSpan{{0, 1}}, "a <b"},
		{"a", "a", nil, "a"},
	} {
		if got := markWords(c.html, c.text, c.parts); got != c.want {
			t.Errorf("%q: %q, want %q", c.html, got, c.want)
		}
	}
}

// FuzzWordDiff compares arbitrary lines: the work is bounded, marks do not change
// the text, and all text that is not marked is in both lines.
func FuzzWordDiff(f *testing.F) {
	f.Add("a b c", "a x c")
	f.Add(strings.Repeat("ab ", 600), strings.Repeat("cd ", 600))
	f.Add("\xff", "\u0301a")
	f.Fuzz(func(t *testing.T, old, now string) {
		old, now = shown(strings.ToValidUTF8(old, "\uFFFD")), shown(strings.ToValidUTF8(now, "\uFFFD"))
		var d wordDiff
		for range 60 { // as if a file had so many such lines
			d.compare(old, now)
		}
		if d.work > maxWordWork {
			t.Fatalf("%d cells", d.work)
		}
		d.work = 0
		gone, came := d.compare(old, now)
		for _, side := range []struct {
			text  string
			parts []wordSpan
		}{{old, gone}, {now, came}} {
			html := markWords(template.HTMLEscapeString(side.text), side.text, side.parts)
			if plain := strings.NewReplacer("<mark>", "", "</mark>", "").Replace(html); plain != template.HTMLEscapeString(side.text) {
				t.Fatalf("%q became %q", side.text, html)
			}
			if strings.Count(html, "<mark>") != strings.Count(html, "</mark>") {
				t.Fatalf("marks in %q", html)
			}
		}
		marks := regexp.MustCompile(`\[[^]]*\]`)
		if len(gone) > 0 && !strings.ContainsAny(old+now, "[]") {
			a, b := marks.ReplaceAllString(bracketed(old, gone), ""), marks.ReplaceAllString(bracketed(now, came), "")
			if strings.ReplaceAll(a, " ", "") != strings.ReplaceAll(b, " ", "") {
				t.Errorf("%q and %q are left of %q and %q", a, b, old, now)
			}
		}
	})
}

// TestWordDiffWork compares a file of long lines without anything in common.
func TestWordDiffWork(t *testing.T) {
	t.Parallel()
	var d wordDiff
	for range 10_000 {
		d.compare(strings.Repeat("a.", 70), strings.Repeat("b,", 70))
	}
	if d.work > maxWordWork || d.work == 0 {
		t.Errorf("%d cells", d.work)
	}
}
