package repo

import (
	"slices"
	"testing"
)

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
