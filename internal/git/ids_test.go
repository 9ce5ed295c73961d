package git

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"svc/internal/git/gittest"
)

// TestLogIDs compares the ids with those of the log, before and after it is
// cached.
func TestLogIDs(t *testing.T) {
	t.Parallel()
	made := gittest.New(t)
	var want []OID
	for _, name := range []string{"one", "two", "three"} {
		want = append(want, OID(made.Commit(gittest.Commit{Message: name, Changes: []gittest.Change{{Path: name, Content: name}}})))
	}
	r := newEngine(t, Limits{}).Repo(made.Path)
	for range 2 {
		got, err := r.LogIDs(t.Context(), LogOptions{From: []string{"main"}, Not: []string{string(want[0])}, Reverse: true})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[1:], got); diff != "" {
			t.Error(diff)
		}
	}
	if _, err := r.LogIDs(t.Context(), LogOptions{From: []string{"none"}}); err == nil {
		t.Error("an unknown revision has a history")
	}
}
