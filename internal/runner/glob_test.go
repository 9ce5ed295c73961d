package runner

import (
	"strings"
	"testing"

	"svc/internal/waittest"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern string
		fits    string // with blanks between
		not     string
	}{
		{"a", "a", "b a/b"},
		{"*.o", "x.o .o", "d/x.o x.c"},
		{"d/*.o", "d/x.o", "x.o d/e/x.o"},
		{"**/*.o", "x.o d/x.o d/e/x.o", "x.c"},
		{"d/**", "d d/x d/e/x", "e e/d"},
		{"d/**/x", "d/x d/e/x d/e/f/x", "x d/e"},
		{"**", "x d/x", ""},
		{"**/d/**/*.{c,h}", "d/a.c e/d/f/a.h", "a.c d/a.o"},
		{"{a,b{c,d}}/x", "a/x bc/x bd/x", "b/x"},
		{"[ab]?", "a1 b2", "c1 a a12"},
		{"[!a]", "b", "a"},
		{"{a", "", "a {b"},
		{"[", "", "["},
		{"a}", "a}", "a"},
	}
	for _, tt := range tests {
		for _, name := range strings.Fields(tt.fits) {
			if !match(tt.pattern, name) {
				t.Errorf("%s does not fit %s", name, tt.pattern)
			}
		}
		for _, name := range strings.Fields(tt.not) {
			if match(tt.pattern, name) {
				t.Errorf("%s fits %s", name, tt.pattern)
			}
		}
	}
}

// FuzzMatch looks for patterns that take long: they come from CI files.
func FuzzMatch(f *testing.F) {
	f.Add("**/a/**/a/**/a/**/b", strings.Repeat("a/", 40)+"c")
	f.Add("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", "aaaaaaaaaa")
	f.Add("*a*a*a*a*a*b", strings.Repeat("a", 200))
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 200 || len(name) > 400 {
			return
		}
		done := make(chan bool, 1)
		go func() {
			match(pattern, name)
			done <- true
		}()
		waittest.Receive(t, "the end of a match", done)
	})
}
