package codesearch

import (
	"testing"
	"time"
)

// FuzzParse parses regular expressions. None may panic or take long: the time that it
// fails at is far above what a slow machine takes.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a", "a(b", "(a|b*)c", `func \w+Config\(`, "((a{1000}){1000}){1000}", "(?i)x{0,1000}y", "^$", `\b`, "[[:alpha:]]+", "\xff", "(?:(?:a?){99}){9}b"} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, text string, regex bool) {
		begin := time.Now()
		q := Query{Text: text, Regex: regex}
		if !regex && text != "" {
			q.Paths = []Path{{Expr: text}}
		}
		parsed, err := q.parse()
		if (parsed == nil) == (err == nil) {
			t.Errorf("%q: got %v, %v", text, parsed, err)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%q took %v", text, took)
		}
	})
}

func TestMatchesEmpty(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"a": false, "a*": true, "a?": true, "a+": false, "(a|)": true, "(a|b)": false, "^": true, "$": true, "^a": false, `\b`: true, "a{0,3}": true, "a{2}": false,
		"(a*)+": true, "a*b*": true, "a*b": false, ".": false, "[ab]": false, "(?:)": true,
	} {
		_, err := parseExpr(text)
		if (err != nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}
