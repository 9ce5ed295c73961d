package trailer

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"svc/internal/git/gittest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, message string
		want          []Trailer
	}{
		{"one", "subject\n\nKey: value\n", []Trailer{{"Key", "value"}}},
		{"none", "subject\n\nThis is why.\n", nil},
		{"only a title", "Key: value\n", nil},
		{"no line break at the end", "subject\n\nKey: value", []Trailer{{"Key", "value"}}},
		{"many, over lines", "subject\n\nbody\n\nChangelog: added\n  and more\n\tstill\nEE : x\nEmpty:\n", []Trailer{{"Changelog", "added and more still"}, {"EE", "x"}, {"Empty", ""}}},
		{"not in the last paragraph", "subject\n\nKey: value\n\nthe end\n", nil},
		{"among text", "subject\n\nKey: value\nand so on\n", nil},
		{"among text, signed", "subject\n\na\nb\nc\nSigned-off-by: Ann\n", []Trailer{{"Signed-off-by", "Ann"}}},
		{"among too much text, signed", "subject\n\na\nb\nc\nd\nSigned-off-by: Ann\n", nil},
		{"picked", "subject\n\nCloses: #1\n(cherry picked from commit abc)\n", []Trailer{{"Closes", "#1"}}},
		{"comments below", "subject\n\nKey: v\n\n# remember\n\n", []Trailer{{"Key", "v"}}},
		{"conflicts below", "subject\n\nKey: v\n\nConflicts:\n\ta\n\tb\n", []Trailer{{"Key", "v"}}},
		{"a line that divides", "subject\n\nKey: v\n---\nOther: w\n", nil},
		{"no key", "subject\n\nmy key: v\n", nil},
		{"Windows", "subject\r\n\r\nKey: v\r\n", []Trailer{{"Key", "v"}}},
		{"nothing", "", nil},
	} {
		if d := cmp.Diff(c.want, Parse(c.message)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		if d := cmp.Diff(gitTrailers(t, c.message), Parse(c.message)); d != "" {
			t.Errorf("%s: other than git: %s", c.name, d)
		}
	}
}

// gitTrailers returns the trailers that git finds.
func gitTrailers(t *testing.T, message string) []Trailer {
	t.Helper()
	out := gittest.RunInput(t, "", strings.NewReader(message), "interpret-trailers", "--parse", "--no-divider")
	var list []Trailer
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		list = append(list, Trailer{key, strings.TrimPrefix(value, " ")})
	}
	return list
}

// TestParseAsGit compares the trailers of random messages with those of git.
func TestParseAsGit(t *testing.T) {
	t.Parallel()
	lines := []string{"subject", "", "", "  ", "Key: value", "a-B : c:d", "Signed-off-by: Ann <ann@example.com>", " goes on", "\tConflicts:", "Conflicts:",
		"# comment", "text of a line", "(cherry picked from commit 1)", "Empty:", "---", ": x", "ü: x", "# ------------------------ >8 ------------------------", "x: y\r"}
	rnd := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 400 {
		message := "title\n\n"
		if rnd.IntN(10) == 0 {
			message = ""
		}
		for range rnd.IntN(9) {
			message += lines[rnd.IntN(len(lines))] + "\n"
		}
		if rnd.IntN(10) == 0 {
			message = strings.TrimSuffix(message, "\n")
		}
		want := gitTrailers(t, message)
		found += len(want)
		if d := cmp.Diff(want, Parse(message)); d != "" {
			t.Errorf("%q: %s", message, d)
		}
	}
	if found < 100 {
		t.Errorf("only %d trailers", found)
	}
}

func FuzzTrailers(f *testing.F) {
	f.Add("subject\n\nKey: value\n more\n")
	f.Add("a\n\nb\nSigned-off-by: x\n# c\n\nConflicts:\n\tx\n")
	f.Add("\n\n:\n")
	f.Fuzz(func(t *testing.T, message string) {
		for _, trailer := range Parse(message) {
			if key, _, ok := splitTrailer(trailer.Key + ":"); !ok || key != trailer.Key {
				t.Errorf("%q has the key %q", message, trailer.Key)
			}
			if strings.ContainsRune(trailer.Value, '\n') || trailer.Value != strings.Trim(trailer.Value, space) {
				t.Errorf("%q has the value %q", message, trailer.Value)
			}
			if !strings.Contains(message, trailer.Key) {
				t.Errorf("%q has no %q", message, trailer.Key)
			}
		}
	})
}
