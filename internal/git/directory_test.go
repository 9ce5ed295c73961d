package git

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"svc/internal/git/gittest"
)

// TestDirectory lists a directory in one page and in small ones.
func TestDirectory(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Limits{})
	made := gittest.New(t)
	made.Commit(gittest.Commit{Changes: []gittest.Change{
		{Path: "b.txt", Content: "b"}, {Path: "a/x", Content: "x"}, {Path: "a/in/y", Content: "y"}, {Path: "a/z", Content: "z"},
		{Path: "a.txt", Content: "a"}, {Path: "c/x", Content: "x"}, {Path: "b", Mode: "160000", Content: strings.Repeat("1", 40)},
	}})
	r := e.Repo(made.Path)
	for _, tt := range []struct {
		path string
		want []string
	}{
		{"", []string{"a/", "c/", "a.txt", "b", "b.txt"}},
		{"/a/", []string{"a/in/", "a/x", "a/z"}},
		{"a/in", []string{"a/in/y"}},
	} {
		for _, limit := range []int{0, 1, 2, 3} {
			var got []string
			for after := ""; ; {
				page, err := r.Directory(t.Context(), TreeOptions{Rev: "main", Path: tt.path, After: after, Limit: limit})
				if err != nil {
					t.Fatal(err)
				}
				for _, entry := range page {
					got = append(got, entry.Key())
				}
				if limit == 0 || len(page) < limit {
					break
				}
				after = page[len(page)-1].Key()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%q by %d (-want +got):\n%s", tt.path, limit, diff)
			}
		}
	}
	for path, want := range map[string]error{"b.txt": ErrNotFound, "none": ErrNotFound, "a/../c": ErrBadPath} {
		if _, err := r.Directory(t.Context(), TreeOptions{Rev: "main", Path: path}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
}
