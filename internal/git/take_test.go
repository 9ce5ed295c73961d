package git

import (
	"errors"
	"testing"

	"svc/internal/git/gittest"
)

// TestTake copies only the objects that a repository lacks.
func TestTake(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Limits{})
	there, here := gittest.New(t), gittest.New(t)
	shared := there.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "a\n"}}})
	if got := here.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "a\n"}}}); got != shared {
		t.Fatalf("%s is not %s", got, shared)
	}
	tip := there.Commit(gittest.Commit{Message: "more", Changes: []gittest.Change{{Path: "b", Content: "b\n"}}})
	from, to := e.Repo(there.Path), e.Repo(here.Path)
	for range 2 { // to take it again does no harm
		if err := to.Take(t.Context(), from, OID(tip)); err != nil {
			t.Fatal(err)
		}
	}
	if err := to.Take(t.Context(), from, OID(shared)); err != nil {
		t.Fatal(err)
	}
	if err := to.UpdateRefs(t.Context(), []Update{{Ref: Heads + "new", Old: ZeroOID, New: OID(tip)}}); err != nil {
		t.Fatal(err)
	}
	here.Git("fsck", "--strict")
	if n := here.Git("rev-list", "--count", "--objects", "new", "^main"); n != "3" {
		t.Errorf("%s objects are new, want 3", n)
	}
	if err := to.Take(t.Context(), from, OID("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")); !errors.Is(err, ErrNotFound) {
		t.Errorf("a commit that is not there: %v", err)
	}
}
