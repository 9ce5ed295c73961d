// Package refstoretest tests implementations of refstore.Store.
package refstoretest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"svc/internal/git/refstore"
)

// Fixture is a repository without refs, with some objects.
type Fixture struct {
	// Open returns a store of the repository, as another process would open it.
	Open     func() refstore.Store
	One, Two refstore.OID // commits
	Tag      refstore.OID // an annotated tag of One
	Blob     refstore.OID
}

const (
	heads = refstore.Heads
	tags  = refstore.Tags
	zero  = refstore.ZeroOID
)

// Run tests a Store. open returns a new repository whose HEAD is main.
func Run(t *testing.T, open func(t *testing.T) Fixture) {
	t.Run("update", func(t *testing.T) { t.Parallel(); testUpdate(t, open(t)) })
	t.Run("names", func(t *testing.T) { t.Parallel(); testNames(t, open(t)) })
	t.Run("read", func(t *testing.T) { t.Parallel(); testRead(t, open(t)) })
	t.Run("head", func(t *testing.T) { t.Parallel(); testHead(t, open(t)) })
	t.Run("one wins", func(t *testing.T) { t.Parallel(); testOneWins(t, open(t)) })
}

// state returns all refs as "name id", with the targets of tags.
func state(t *testing.T, s refstore.Store) string {
	t.Helper()
	list, err := s.List(t.Context(), "refs/", nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, name := range list.Names {
		at, err := list.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.TrimPrefix(name, "refs/")+" "+string(at.ID)[:4])
	}
	return strings.Join(all, ", ")
}

// testUpdate updates all refs or none.
func testUpdate(t *testing.T, f Fixture) {
	type list = []refstore.Update
	s, other := f.Open(), f.Open()
	for _, c := range []struct {
		name    string
		updates list
		want    error
		ref     string // in the conflict
	}{
		{"create", list{{Ref: heads + "a/b", Old: zero, New: f.One}, {Ref: tags + "v1", Old: zero, New: f.Tag}}, nil, ""},
		{"create again", list{{Ref: heads + "c", Old: zero, New: f.One}, {Ref: heads + "a/b", Old: zero, New: f.One}}, refstore.ErrConflict, heads + "a/b"},
		{"none of the others", list{{Ref: heads + "c", Old: f.Two, New: f.One}}, refstore.ErrConflict, heads + "c"},
		{"move", list{{Ref: heads + "a/b", Old: f.One, New: f.Two}}, nil, ""},
		{"move from elsewhere", list{{Ref: heads + "a/b", Old: f.One, New: f.Two}}, refstore.ErrConflict, heads + "a/b"},
		{"move no matter what", list{{Ref: heads + "a/b", New: f.One}}, nil, ""},
		{"delete with the wrong value", list{{Ref: heads + "a/b", Old: f.Two, New: zero}}, refstore.ErrConflict, heads + "a/b"},
		{"delete", list{{Ref: heads + "a/b", Old: f.One, New: zero}}, nil, ""},
		{"delete again", list{{Ref: heads + "a/b", Old: f.One, New: zero}}, refstore.ErrConflict, heads + "a/b"},
		{"where the directory was", list{{Ref: heads + "a", Old: zero, New: f.One}}, nil, ""},
		{"missing object", list{{Ref: heads + "x", Old: zero, New: "1234567890123456789012345678901234567890"}}, refstore.ErrNotFound, ""},
		{"a blob as a branch", list{{Ref: heads + "x", Old: zero, New: f.Blob}}, refstore.ErrNotFound, ""},
		{"a tag as a branch", list{{Ref: heads + "x", Old: zero, New: f.Tag}}, refstore.ErrNotFound, ""},
		{"a blob elsewhere", list{{Ref: "refs/keep/x", Old: zero, New: f.Blob}}, nil, ""},
		{"bad name", list{{Ref: heads + "-x", Old: zero, New: f.One}}, refstore.ErrBadRef, ""},
		{"new line", list{{Ref: heads + "x\ndelete refs/heads/main", Old: zero, New: f.One}}, refstore.ErrBadRef, ""},
		{"bad ID", list{{Ref: heads + "x", Old: zero, New: "HEAD"}}, refstore.ErrBadRevision, ""},
		{"nothing", nil, nil, ""},
	} {
		before := state(t, other)
		err := s.Update(t.Context(), "", c.updates)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		conflict, ok := errors.AsType[*refstore.RefConflict](err)
		if c.ref != "" && (!ok || conflict.Ref != c.ref || conflict.Why == "") {
			t.Errorf("%s: %v", c.name, err)
		}
		if after := state(t, other); c.want != nil && after != before {
			t.Errorf("%s: refs moved from %s to %s", c.name, before, after)
		}
	}
	want := fmt.Sprintf("heads/a %.4s, keep/x %.4s, tags/v1 %.4s", f.One, f.Blob, f.Tag)
	if got := state(t, other); got != want {
		t.Errorf("refs are %s, want %s", got, want)
	}
}

// testNames refuses refs whose names conflict as files and directories.
func testNames(t *testing.T, f Fixture) {
	s := f.Open()
	for _, c := range []struct {
		name    string
		refs    []string
		refused bool
	}{
		{"first", []string{"a/b/c", "a/b.x", "z"}, false},
		{"above", []string{"a"}, true},
		{"directly above", []string{"a/b"}, true},
		{"below", []string{"z/y/x"}, true},
		{"beside", []string{"a/b/d", "a/b-c", "a.b", "z0", "z."}[:4], false},
		{"both", []string{"n", "n/m"}, true},
		{"both, the other way", []string{"n/m/l", "n/m"}, true},
		{"one of them", []string{"n/m/l"}, false},
		{"twice", []string{"q", "q"}, true},
	} {
		before := state(t, s)
		var updates []refstore.Update
		for _, name := range c.refs {
			updates = append(updates, refstore.Update{Ref: heads + name, Old: zero, New: f.One})
		}
		err := s.Update(t.Context(), "", updates)
		if (err != nil) != c.refused {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.refused && state(t, s) != before {
			t.Errorf("%s: some were created", c.name)
		}
	}
}

// testRead reads refs by name.
func testRead(t *testing.T, f Fixture) {
	s := f.Open()
	if list, err := s.List(t.Context(), "refs/", nil); err != nil || len(list.Names) != 0 {
		t.Errorf("of an empty repository: %v, %v", list.Names, err)
	}
	odd := heads + "caf\xe9" // not UTF-8, which git allows
	err := s.Update(t.Context(), "", []refstore.Update{
		{Ref: heads + "main", Old: zero, New: f.Two}, {Ref: heads + "a", Old: zero, New: f.One}, {Ref: odd, Old: zero, New: f.One},
		{Ref: tags + "a", Old: zero, New: f.Tag}, {Ref: "refs/headsome/x", Old: zero, New: f.One},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		names []string
		want  refstore.OID
	}{
		{[]string{heads + "a"}, f.One},
		{[]string{heads + "none", tags + "a", heads + "a"}, f.Tag},
		{[]string{heads + "a", tags + "a"}, f.One},
		{[]string{"HEAD"}, f.Two},
		{[]string{odd}, f.One},
		{[]string{heads + "none"}, ""},
		{[]string{"refs/heads"}, ""},
		{nil, ""},
	} {
		got, err := s.First(t.Context(), c.names)
		if got != c.want || (err != nil) != (c.want == "") || err != nil && !errors.Is(err, refstore.ErrNotFound) {
			t.Errorf("%q: %s, %v", c.names, got, err)
		}
	}
	all, err := s.All(t.Context(), []string{tags + "a", heads + "none", heads + "main"})
	if err != nil || !slices.Equal(all, []refstore.OID{f.Tag, "", f.Two}) {
		t.Errorf("all: %v, %v", all, err)
	}
	list, err := s.List(t.Context(), heads, nil)
	if want := []string{heads + "a", odd, heads + "main"}; err != nil || !slices.Equal(list.Names, want) {
		t.Errorf("listed %q, %v", list.Names, err)
	}
	list, err = s.List(t.Context(), "refs/", func(name string) bool { return strings.HasSuffix(name, "/a") })
	if want := []string{heads + "a", tags + "a"}; err != nil || !slices.Equal(list.Names, want) {
		t.Errorf("listed %q, %v", list.Names, err)
	}
	if at, err := list.Read(tags + "a"); err != nil || at.ID != f.Tag || at.Known && at.Peeled != f.One {
		t.Errorf("the tag is %+v, %v", at, err)
	}
	if at, err := list.Read(heads + "a"); err != nil || at.ID != f.One || at.Peeled != "" {
		t.Errorf("the branch is %+v, %v", at, err)
	}
}

// testHead moves HEAD.
func testHead(t *testing.T, f Fixture) {
	s, other := f.Open(), f.Open()
	if got, err := s.Head(t.Context()); got != "main" || err != nil {
		t.Errorf("HEAD is %q, %v", got, err)
	}
	if _, err := s.First(t.Context(), []string{"HEAD"}); !errors.Is(err, refstore.ErrNotFound) {
		t.Errorf("HEAD leads to a branch that is not there: %v", err)
	}
	if err := s.SetHead(t.Context(), "dev"); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), "", []refstore.Update{{Ref: heads + "dev", Old: zero, New: f.One}}); err != nil {
		t.Fatal(err)
	}
	if got, err := other.Head(t.Context()); got != "dev" || err != nil {
		t.Errorf("HEAD is %q, %v", got, err)
	}
	if got, err := other.First(t.Context(), []string{"HEAD"}); got != f.One || err != nil {
		t.Errorf("HEAD leads to %s, %v", got, err)
	}
}

// testOneWins updates one ref from the same value concurrently.
func testOneWins(t *testing.T, f Fixture) {
	if err := f.Open().Update(t.Context(), "", []refstore.Update{{Ref: heads + "main", Old: zero, New: f.One}}); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 8 {
		all.Go(func() {
			// Each update also creates its own ref, which exists only if the update succeeds.
			err := f.Open().Update(t.Context(), "", []refstore.Update{
				{Ref: heads + fmt.Sprint("own", i), Old: zero, New: f.Two}, {Ref: heads + "main", Old: f.One, New: f.Two},
			})
			if err != nil && !errors.Is(err, refstore.ErrConflict) {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			}
		})
	}
	all.Wait()
	list, err := f.Open().List(t.Context(), heads, nil)
	if err != nil || won != 1 || len(list.Names) != 2 {
		t.Errorf("%d won, refs are %q, %v", won, list.Names, err)
	}
}
