package language

import (
	"regexp"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	color := regexp.MustCompile(`^(#[0-9a-f]{6})?$`)
	if len(programming) < 150 {
		t.Errorf("%d languages", len(programming))
	}
	for _, l := range append(append([]Language(nil), programming...), otherLanguages...) {
		if !color.MatchString(l.Color) {
			t.Errorf("%s has the color %q", l.Name, l.Color)
		}
		for _, kind := range []string{"name " + strings.ToLower(l.Name), l.extensions, l.files, l.programs} {
			words := strings.Fields(kind)
			if strings.HasPrefix(kind, "name ") {
				words = []string{kind}
			}
			for _, w := range words {
				if seen[w] != "" {
					t.Errorf("%q is of %s and %s", w, seen[w], l.Name)
				}
				seen[w] = l.Name
			}
		}
		for e := range strings.FieldsSeq(l.extensions) {
			if e[0] != '.' || e != strings.ToLower(e) {
				t.Errorf("%s has the extension %q", l.Name, e)
			}
		}
	}
}

func FuzzAttributes(f *testing.F) {
	f.Add("*.go linguist-vendored", "a/b.go")
	f.Add(`"a b" -linguist-generated`, "a b")
	f.Add("a/**/[!x]?\\* linguist-language=Go", "a/b/yz*")
	f.Add("[ linguist-vendored", "[")
	f.Fuzz(func(t *testing.T, line, path string) {
		var rules Rules
		rules.Add("", line)
		rules.Of(path)
	})
}
