package git

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"svc/internal/git/gittest"
)

// TestLogIDs compares the IDs with those of Log, before and after the result is cached.
func TestLogIDs(t *testing.T) {
	t.Parallel()
	made := gittest.New(t)
	var want []OID
	for _, name := range []string{"one", "two", "three"} {
		want = append(want, OID(made.Commit(gittest.Commit{Message: name, Changes: []gittest.Change{{Path: name, Content: name}}})))
	}
	r := newEngine(t, Limits{}).Repo(made.Path)
	for range 2 {
		got, err := r.LogIDs(t.Context(), LogOptions{From: []string{"main"}, Not: []string{string(want[0])}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]OID{want[2], want[1]}, got); diff != "" {
			t.Error(diff)
		}
	}
	if _, err := r.LogIDs(t.Context(), LogOptions{From: []string{"none"}}); err == nil {
		t.Error("an unknown revision has a history")
	}
}

// TestRange compares the result, and the merge base that is cached with it, with those of
// git.
func TestRange(t *testing.T) {
	t.Parallel()
	g := gittest.New(t)
	commit := func(branch string, parents ...string) string {
		return g.Commit(gittest.Commit{Branch: branch, Root: len(parents) == 0, Parents: parents, Changes: []gittest.Change{{Path: branch, Content: branch}}})
	}
	root := commit("main")
	one := commit("main", root)
	side := commit("side", root)
	merged := commit("main", one, side)
	tip := commit("main", merged)
	late := commit("side", side)
	alone := commit("alone")
	e := newEngine(t, Limits{})
	for _, c := range []struct {
		name, from, to string
		base           string // that is cached then; empty for none
	}{
		{"forward", root, tip, root},
		{"forward by a merge", side, tip, side},
		{"backward", tip, side, side},
		{"the same", tip, tip, tip},
		{"apart", late, tip, ""},
		{"apart, the other way", tip, late, ""},
		{"nothing in common", alone, tip, ""},
	} {
		r := e.Repo(g.Path)
		r.Forget()
		want := strings.Fields(g.Git("rev-list", "--reverse", c.to, "^"+c.from))
		for range 2 {
			got, err := r.Range(t.Context(), OID(c.from), OID(c.to))
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(want) {
				t.Errorf("%s: %d commits, want %d", c.name, len(got), len(want))
				continue
			}
			for i := range got {
				if string(got[i]) != want[i] {
					t.Errorf("%s: commit %d is %s, want %s", c.name, i, got[i], want[i])
				}
			}
		}
		base, known := r.knownMergeBase([]string{c.from, c.to})
		if known != (c.base != "") || string(base) != c.base {
			t.Errorf("%s: base %q, known %t", c.name, base, known)
		}
		if known && g.Git("merge-base", c.from, c.to) != c.base {
			t.Errorf("%s: git finds another base", c.name)
		}
	}
	if _, err := e.Repo(g.Path).Range(t.Context(), ZeroOID, OID(tip)); err == nil {
		t.Error("a range from nothing")
	}
}
