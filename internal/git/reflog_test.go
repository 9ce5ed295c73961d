package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/git/gittest"
)

func TestWasAt(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Limits{})
	r, err := e.Init(t.Context(), filepath.Join(t.TempDir(), "r.git"), "main")
	if err != nil {
		t.Fatal(err)
	}
	g := gittest.At(t, r.Path())
	var ids []OID
	for _, content := range []string{"1", "2", "3"} {
		ids = append(ids, OID(g.Commit(gittest.Commit{Branch: "source", Changes: []gittest.Change{{Path: "a", Content: content}}})))
	}
	move := func(ref string, from, to OID) {
		t.Helper()
		if err := r.UpdateRefs(t.Context(), []Update{{Ref: ref, Old: from, New: to}}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(ref string, id OID, want bool) {
		t.Helper()
		if got, err := r.WasAt(t.Context(), ref, id); got != want || err != nil {
			t.Errorf("%s at %.8s: %v, %v", ref, id, got, err)
		}
	}
	for _, ref := range []string{"refs/heads/main", "refs/tags/v1", "refs/other/deep/x"} {
		check(ref, ZeroOID, true)
		check(ref, ids[0], false)
		move(ref, ZeroOID, ids[0])
		check(ref, ids[0], true)
		check(ref, ids[1], false)
		check(ref, ZeroOID, true)
		move(ref, ids[0], ids[1])
		move(ref, ids[1], ids[2])
		g.Git("pack-refs", "--all")
		for _, id := range ids {
			check(ref, id, true)
		}
	}
	log, err := os.ReadFile(filepath.Join(r.Path(), "logs/refs/tags/v1"))
	if err != nil || !strings.Contains(string(log), " svc <svc@localhost> ") {
		t.Errorf("%q, %v", log, err)
	}
	// The reflog is deleted with its ref, and does not block names below it.
	move("refs/heads/a/b", ZeroOID, ids[0])
	move("refs/heads/a/b", ids[0], ZeroOID)
	check("refs/heads/a/b", ids[0], false)
	check("refs/heads/a/b", ZeroOID, true)
	move("refs/heads/a", ZeroOID, ids[1])
	check("refs/heads/a", ids[1], true)
	move("refs/heads/a", ids[1], ZeroOID)
	move("refs/heads/a/b/c", ZeroOID, ids[1])
	check("refs/heads/a/b/c", ids[1], true)
	check("refs/heads/a", ids[1], false)

	for _, ref := range []string{"main", "refs/heads/../x", "refs/heads/-x"} {
		if _, err := r.WasAt(t.Context(), ref, ids[0]); !errors.Is(err, ErrBadRef) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	if _, err := e.Repo(r.Path()+"x").WasAt(t.Context(), "refs/heads/main", ids[0]); !errors.Is(err, ErrNoRepository) {
		t.Error(err)
	}
}
