package repo

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"svc/internal/git"
)

func TestMatchesPattern(t *testing.T) {
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
		if got := matchesPattern(tt.pattern, tt.name); got != tt.want {
			t.Errorf("%q matches %q: %t", tt.pattern, tt.name, got)
		}
	}
}

// FuzzMatchesPattern compares with an expression that says the same.
func FuzzMatchesPattern(f *testing.F) {
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
		if got := matchesPattern(strings.ToValidUTF8(pattern, "?"), name); got != want {
			t.Errorf("%q matches %q: %t, want %t", pattern, name, got, want)
		}
	})
}

func TestCompareVersions(t *testing.T) {
	t.Parallel()
	want := []string{"1.2", "v0.9", "v1", "v1.0", "v1.0.0", "v1.0.0-rc1", "v1.9.0", "v1.10.0", "v1.10.0a", "v2", "v02", "v10", "w"}
	got := slices.Clone(want)
	slices.Sort(got)
	slices.SortStableFunc(got, compareVersions)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestInDiff(t *testing.T) {
	t.Parallel()
	const text = "@@ -1,3 +1,3 @@ head\n a\n-b\n+c\n d\n@@ -10 +10,2 @@\n-x\n+y\n+z\n\\ No newline at end of file\n"
	for _, tt := range []struct {
		line    int64
		removed bool
		want    bool
	}{
		{2, false, true}, {2, true, true}, {1, false, false}, {3, true, false}, {10, false, true}, {11, false, true}, {10, true, true}, {11, true, false}, {12, false, false},
	} {
		side := "new"
		if tt.removed {
			side = "old"
		}
		d := &git.Diff{Files: []git.FileDiff{{NewPath: "other"}, {NewPath: "a", Diff: text}}}
		if got := inDiff(d, NewComment{Path: "a", Line: tt.line, LineType: side}); got != tt.want {
			t.Errorf("line %d, removed %t: %t", tt.line, tt.removed, got)
		}
	}
}
