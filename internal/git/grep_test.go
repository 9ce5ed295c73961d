package git

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"svc/internal/git/gittest"
)

func TestGrep(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	long := strings.Repeat("x", 5000) + "Needle"
	g.Commit(gittest.Commit{Message: "start", Changes: []gittest.Change{
		{Path: "a.txt", Content: "1\n2\n3 needle\n4\n5\n6\n7\n8 NEEDLE\n9\n"},
		{Path: "d/b.Go", Content: "needle"},
		{Path: "d/new\nline", Content: "needle\n"},
		{Path: "d/[x]*?", Content: "needle\n"},
		{Path: "bin", Content: "needle\x00"},
		{Path: "min.js", Content: long + "\nafter\n"},
		{Path: "option", Content: "--output=x\n"},
		{Path: "odd\xff", Content: "needle\n"},
	}})
	for _, c := range []struct {
		name string
		o    GrepOptions
		want string
	}{
		{"context", GrepOptions{Text: "needle", Paths: []string{"a.txt"}, Context: 1, Limit: 9}, `a.txt:2 2|3 needle|4, a.txt:7 7|8 NEEDLE|9`},
		{"one hunk", GrepOptions{Text: "needle", Paths: []string{"a.txt"}, Context: 2, Limit: 9}, `a.txt:1 1|2|3 needle|4|5|6|7|8 NEEDLE|9`},
		{"all files", GrepOptions{Text: "needle", Limit: 9}, "a.txt:3 3 needle, a.txt:8 8 NEEDLE, d/[x]*?:1 needle, d/b.Go:1 needle, d/new\nline:1 needle, min.js:1 " + long[:1000]},
		{"limit", GrepOptions{Text: "needle", Limit: 1}, `a.txt:3 3 needle +`},
		{"pattern of a path", GrepOptions{Text: "needle", Paths: []string{"*.go"}, Limit: 9}, `d/b.Go:1 needle`},
		{"no other pattern", GrepOptions{Text: "needle", Paths: []string{"d/[x]*?"}, Limit: 9}, `d/[x]*?:1 needle`},
		{"kept", GrepOptions{Text: "needle", Keep: func(path string) bool { return path == "d/b.Go" }, Limit: 9}, `d/b.Go:1 needle`},
		{"an option", GrepOptions{Text: "--output=x", Limit: 9}, `option:1 --output=x`},
		{"no pattern", GrepOptions{Text: "n.edle", Limit: 9}, ``},
		{"nothing", GrepOptions{Text: "absent", Limit: 9}, ``},
		{"two lines", GrepOptions{Text: "3 needle\n4", Limit: 9}, ``},
	} {
		c.o.Rev = "main"
		hunks, more, err := r.Grep(t.Context(), c.o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		var list []string
		for _, h := range hunks {
			list = append(list, fmt.Sprintf("%s:%d %s", h.Path, h.Start, strings.Join(h.Lines, "|")))
		}
		got := strings.Join(list, ", ")
		if more {
			got += " +"
		}
		if got != c.want {
			t.Errorf("%s:\n got %.2000q\nwant %.2000q", c.name, got, c.want)
		}
	}
	if _, _, err := r.Grep(t.Context(), GrepOptions{Rev: "none", Text: "x", Limit: 1}); !errors.Is(err, ErrNotFound) {
		t.Errorf("no revision: %v", err)
	}
	for _, text := range []string{"a\x00b", strings.Repeat("x", 5000)} {
		if _, _, err := r.Grep(t.Context(), GrepOptions{Rev: "main", Text: text, Limit: 1}); !errors.Is(err, ErrTooLarge) {
			t.Errorf("text %.10q: %v", text, err)
		}
	}
}
