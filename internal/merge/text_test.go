package merge

import (
	"maps"
	"strings"
	"testing"
)

func TestIssuesIn(t *testing.T) {
	t.Parallel()
	const url = "https://forge.example"
	for text, want := range map[string]map[issueRef]bool{
		"nothing here, not even # 1":                     {},
		"see #1":                                         {{"", 1}: false},
		"Closes #1":                                      {{"", 1}: true},
		"closes: #1, #2 and #3, not #4":                  {{"", 1}: true, {"", 2}: true, {"", 3}: true, {"", 4}: false},
		"Fixes issue #7.":                                {{"", 7}: true},
		"resolving a/b#2 and implements c#3":             {{"a/b", 2}: true, {"c", 3}: true},
		"fix https://forge.example/a/b/c/-/issues/9":     {{"a/b/c", 9}: true},
		"fix https://elsewhere.example/a/b/-/issues/9":   {},
		"disclosed #1 and prefixes #2":                   {{"", 1}: false, {"", 2}: false},
		"Closes #0 and #99999999999999999999":            {},
		"Closes\n\n#1":                                   {{"", 1}: false},
		"#1 is named, and later on it says: closes #1":   {{"", 1}: true},
		strings.Repeat("#5 ", 10) + " closed #5, and #6": {{"", 5}: true, {"", 6}: true},
	} {
		if got := issuesIn(text, url); !maps.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func FuzzIssuesIn(f *testing.F) {
	f.Add("Closes #1, a/b#2 and https://forge.example/x/-/issues/3")
	f.Fuzz(func(t *testing.T, text string) {
		for ref := range issuesIn(text, "https://forge.example") {
			if ref.IID <= 0 || strings.ContainsAny(ref.Project, " \n") {
				t.Errorf("%q: %+v", text, ref)
			}
		}
	})
}

func TestExpand(t *testing.T) {
	t.Parallel()
	w := words{"title": "T", "issues": "", "description": "%{title}\nline"}
	for template, want := range map[string]string{
		"%{title}\n\n%{issues}\n\nend":  "T\n\nend",
		"%{issues}":                     "",
		"%{title}: %{issues}":           "T:",
		"%{description}":                "%{title}\nline", // variables in values are not expanded
		"%{unknown} %{title}":           "%{unknown} T",
		"a\r\n%{issues}\r\n\r\n\r\nb\n": "a\n\n\nb",
	} {
		if got := w.expand(template); got != want {
			t.Errorf("%q: %q, want %q", template, got, want)
		}
	}
}
