package search

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		search, text, filters string
		yes, no               string // paths
	}{
		{"two  words", "two  words", "", "", ""},
		{"a b filename:*.rb", "a b", "filename:*.rb", "lib/x.RB", "lib/x.rb.txt"},
		{"filename:read path:docs/", "", "filename:read path:docs/", "docs/a/read", "read"},
		{"x extension:go -path:vendor", "x", "extension:go -path:vendor", "a/b.go", "vendor/b.go"},
		{"extension:.go", "", "extension:.go", "b.go", "bgo"},
		{"http://x path: size:3", "http://x path: size:3", "", "", ""},
		{"file:docs/ x", "x", "path:docs/", "docs/a", "src/a"},
		{"path:a.b", "", "path:a.b", "a.b/c", "axb/c"},
		{"path:[(", "", "path:[(", "x[(y", "x"},
	} {
		q, err := parseFiles(c.search)
		if err != nil {
			t.Fatal(err)
		}
		var filters []string
		for _, f := range q.filters {
			sign := ""
			if f.not {
				sign = "-"
			}
			filters = append(filters, fmt.Sprintf("%s%s:%s", sign, f.name, f.value))
		}
		if q.text != c.text || strings.Join(filters, " ") != c.filters {
			t.Errorf("%q: text %q, filters %q", c.search, q.text, filters)
		}
		keep := q.filter(2).Keep
		if c.yes != "" && !keep(c.yes) {
			t.Errorf("%q does not find %s", c.search, c.yes)
		}
		if c.no != "" && keep(c.no) {
			t.Errorf("%q finds %s", c.search, c.no)
		}
	}
	if _, err := parseFiles(strings.Repeat("path:x ", 17)); err == nil {
		t.Error("17 filters are accepted")
	}
}
