package glob

import (
	"regexp"
	"strings"
	"testing"

	"svc/internal/waittest"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern string
		matches string // separated by spaces
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
		{"{**/a,b}", "a x/a x/y/a b", "x/b"},
		{"[ab]?", "a1 b2", "c1 a a12"},
		{"[!a]", "b", "a"},
		{`\{a,b\}`, "{a,b}", "a b"},
	} {
		g, ok := Parse(tt.pattern)
		if !ok {
			t.Errorf("%s is refused", tt.pattern)
		}
		for name := range strings.FieldsSeq(tt.matches) {
			if !g.Match(name) {
				t.Errorf("%s does not match %s", name, tt.pattern)
			}
		}
		for name := range strings.FieldsSeq(tt.not) {
			if g.Match(name) {
				t.Errorf("%s matches %s", name, tt.pattern)
			}
		}
	}
	for _, pattern := range []string{"{a", "a}", "[", "[a", `a\`, strings.Repeat("{a,b}", 9), strings.Repeat("{a,b}", 8) + strings.Repeat("x", 1000), strings.Repeat("{a,", 300) + strings.Repeat("}", 300)} {
		if g, ok := Parse(pattern); ok {
			t.Errorf("%.30s is accepted as %d patterns", pattern, len(g))
		}
	}
}

// FuzzMatch searches for patterns that take long.
func FuzzMatch(f *testing.F) {
	f.Add("**/a/**/a/**/a/**/b", strings.Repeat("a/", 40)+"c")
	f.Add("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", "aaaaaaaaaa")
	f.Add("{*,**}a{*,**}a{*,**}a{*,**}a{*,**}ax", strings.Repeat("a", 200)+"y")
	f.Add(strings.Repeat("*a", 50), strings.Repeat("a", 200)+"b")
	f.Add("[\\]{,", "a")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 200 || len(name) > 400 {
			return
		}
		done := make(chan bool, 1)
		go func() {
			if g, ok := Parse(pattern); ok {
				g.Match(name)
			}
			done <- true
		}()
		waittest.Receive(t, "the end of a match", done)
	})
}

func TestWild(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"main", "main", true}, {"main", "main2", false}, {"*", "any/thing", true}, {"*", "", true},
		{"release/*", "release/1", true}, {"release/*", "release/1/2", true}, {"release/*", "release", false}, {"release/*", "prerelease/1", false},
		{"*-stable", "9-stable", true}, {"*-stable", "9-stable-2", false}, {"*gitlab*", "my-gitlab-x", true},
		{"a*b*c", "abc", true}, {"a*b*c", "a-b-b-c", true}, {"a*b*c", "acb", false}, {"a*a", "a", false}, {"*a*", "b", false}, {"**x", "x", true},
	} {
		if got := Wild(tt.pattern, tt.name); got != tt.want {
			t.Errorf("%q matches %q: %t", tt.pattern, tt.name, got)
		}
	}
}

// FuzzWild compares Wild with an equivalent regular expression.
func FuzzWild(f *testing.F) {
	for _, seed := range [][2]string{{"release/*", "release/1"}, {"a*b*c", "abxbc"}, {"**", ""}, {"x", "y"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		parts := strings.Split(strings.ToValidUTF8(pattern, "?"), "*")
		name = strings.ToValidUTF8(name, "?")
		for i, part := range parts {
			parts[i] = regexp.QuoteMeta(part)
		}
		want := regexp.MustCompile(`(?s)^` + strings.Join(parts, ".*") + `$`).MatchString(name)
		if got := Wild(strings.ToValidUTF8(pattern, "?"), name); got != want {
			t.Errorf("%q matches %q: %t, want %t", pattern, name, got, want)
		}
	})
}
