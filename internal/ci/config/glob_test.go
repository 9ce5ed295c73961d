package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestGlob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"a", "a", true},
		{"a", "b", false},
		{"a", "a/b", false},
		{"*", "a", true},
		{"*", "a/b", false},
		{"*", ".hidden", true},
		{"*.go", "x.go", true},
		{"*.go", "x_go", false},
		{"*.go", "a/x.go", false},
		{"**/*.go", "x.go", true},
		{"**/*.go", "a/b/x.go", true},
		{"**/*.go", ".a/x.go", true},
		{"a/**/*", "a/b", true},
		{"a/**/*", "a/b/c", true},
		{"a/**/*", "a", false},
		{"a/**/**/b", "a/b", true},
		{"a/**", "a/b", true},
		{"a/**", "a/b/c", false},
		{"a**/b", "ax/b", true},
		{"a**/b", "ax/y/b", false},
		{"a/*/c", "a/b/c", true},
		{"a/*/c", "a/b/b/c", false},
		{"?.txt", "a.txt", true},
		{"?.txt", "/.txt", false},
		{"?", "ä", true},
		{"{a,b}.c", "b.c", true},
		{"{a,b}.c", "c.c", false},
		{"{a,{b,c}d}", "cd", true},
		{"**/*.{js,ts}", "x/y.ts", true},
		{"{a/**/*,b}", "a/x/y", true},
		{"{**/*.js,x}", "a/b.js", true},
		{"{**/*.js,x}", "b.js", true},
		{"{x,**/*.js}", "a/b/c.js", true},
		{"{x,{y,**/*.js}}", "a/b/c.js", true},
		{"a{**/b,c}", "ax/b", true},
		{"a{**/b,c}", "ax/y/b", false},
		{"a/{**/b,c}", "a/x/y/b", true},
		{"{a", "{a", true},
		{"a}", "a}", true},
		{"a,b", "a,b", true},
		{"[ab].c", "a.c", true},
		{"[!ab].c", "a.c", false},
		{"[^ab].c", "x.c", true},
		{"[a-c]x", "bx", true},
		{"[c-a]x", "bx", false},
		{"[a", "[a", true},
		{"[]", "[]", true},
		{`\*`, "*", true},
		{`\*`, "a", false},
		{`a.b+c`, "a.b+c", true},
		{`(a)*`, "(a)b", true},
		{"", "", true},
		{"ä*", "äx", true},
	} {
		if got := ParseGlob(c.pattern).Match(c.path); got != c.want {
			t.Errorf("%q and %q: %v", c.pattern, c.path, got)
		}
	}
}

// TestGlobTooMany checks that a rule with many patterns and paths matches after too many
// comparisons instead of taking long, and that plain names are always compared.
func TestGlobTooMany(t *testing.T) {
	t.Parallel()
	paths := make([]string, maxComparisons+1)
	for i := range paths {
		paths[i] = fmt.Sprint("f", i)
	}
	if !(globs{}).anyMatch([]string{"x*"}, paths) {
		t.Error("a pattern does not match too many paths")
	}
	if (globs{}).anyMatch([]string{"x*"}, paths[:maxComparisons]) {
		t.Error("a pattern matches an empty list")
	}
	long := strings.Repeat("a*", 10_000)
	if !(globs{}).anyMatch([]string{long}, slices.Repeat([]string{strings.Repeat("a", 1000)}, 30)) {
		t.Error("a long pattern does not match long paths")
	}
	if (globs{}).anyMatch([]string{"x"}, paths) {
		t.Error("a name matches an empty list")
	}
}

func FuzzGlob(f *testing.F) {
	f.Add("**/*.{js,[!t]s}", "a/b.js")
	f.Add(`[\]{,`, "a")
	f.Add("{{{", "}")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		ParseGlob(pattern).Match(path)
	})
}
