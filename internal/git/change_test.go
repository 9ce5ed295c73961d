package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"svc/internal/git/gittest"
)

func who(name string) Signature {
	return Signature{Name: name, Email: strings.ToLower(name) + "@x", When: time.Unix(1234, 0).In(time.FixedZone("", -5400))}
}

// show lists a tree as "mode path content".
func show(t *testing.T, r Repo, rev string) []string {
	t.Helper()
	list, err := r.Tree(t.Context(), TreeOptions{Rev: rev, Recursive: true})
	if err != nil {
		t.Fatal(err)
	}
	var s []string
	for _, e := range list {
		if e.Type == TypeTree {
			continue
		}
		o, err := r.Object(t.Context(), e.OID)
		if err != nil {
			t.Fatal(err)
		}
		s = append(s, e.Mode+" "+e.Path+" "+string(o.Content))
	}
	return s
}

func TestCommitChanges(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	first, err := r.CommitChanges(t.Context(), ChangeOptions{
		Actions: []Action{{Kind: Create, Path: "a", Content: []byte("1")}, {Kind: Create, Path: "d/e/f", Content: []byte("2"), Executable: true}, {Kind: Create, Path: "d.x", Content: nil}},
		Author:  who("Ann"), Committer: who("Bob"), Message: "first",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &Commit{ID: first.ID, TreeID: first.TreeID, Author: who("Ann"), Committer: who("Bob"), Message: "first", Title: "first"}
	if d := cmp.Diff(want, first); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"100644 a 1", "100644 d.x ", "100755 d/e/f 2"}, show(t, r, string(first.ID))); d != "" {
		t.Error(d)
	}
	if err := r.UpdateRefs(t.Context(), []Update{{Ref: Heads + "main", Old: ZeroOID, New: first.ID}}); err != nil {
		t.Fatal(err)
	}
	g.Git("fsck", "--strict", "--no-dangling")
	for _, c := range []struct {
		name    string
		actions []Action
		want    []string
	}{
		{"update", []Action{{Kind: Modify, Path: "d/e/f", Content: []byte("x")}}, []string{"100644 a 1", "100644 d.x ", "100755 d/e/f x"}},
		{"delete", []Action{{Kind: Delete, Path: "d/e/f"}}, []string{"100644 a 1", "100644 d.x "}},
		{"delete all", []Action{{Kind: Delete, Path: "d/e/f"}, {Kind: Delete, Path: "a"}, {Kind: Delete, Path: "d.x"}}, nil},
		{"move", []Action{{Kind: Move, From: "d/e/f", Path: "d/g"}}, []string{"100644 a 1", "100644 d.x ", "100755 d/g 2"}},
		{"move and change", []Action{{Kind: Move, From: "a", Path: "n/a", Content: []byte("y"), HasContent: true}}, []string{"100644 d.x ", "100755 d/e/f 2", "100644 n/a y"}},
		{"move to where its directory was", []Action{{Kind: Move, From: "d/e/f", Path: "d"}}, []string{"100644 a 1", "100755 d 2", "100644 d.x "}},
		{"chmod", []Action{{Kind: Chmod, Path: "a", Executable: true}, {Kind: Chmod, Path: "d/e/f"}}, []string{"100755 a 1", "100644 d.x ", "100644 d/e/f 2"}},
		{"one after the other", []Action{{Kind: Create, Path: "z/z", Content: []byte("1")}, {Kind: Modify, Path: "z/z", Content: []byte("2")}, {Kind: Move, From: "z/z", Path: "z/y"}},
			[]string{"100644 a 1", "100644 d.x ", "100755 d/e/f 2", "100644 z/y 2"}},
		{"file becomes directory", []Action{{Kind: Delete, Path: "a"}, {Kind: Create, Path: "a/b", Content: []byte("3")}}, []string{"100644 a/b 3", "100644 d.x ", "100755 d/e/f 2"}},
	} {
		made, err := r.CommitChanges(t.Context(), ChangeOptions{Parent: "main", Actions: c.actions, Author: who("Ann"), Committer: who("Ann"), Message: c.name})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if d := cmp.Diff(c.want, show(t, r, string(made.ID))); d != "" || len(made.ParentIDs) != 1 || made.ParentIDs[0] != first.ID {
			t.Errorf("%s: %s", c.name, d)
		}
		g.Git("update-ref", "refs/heads/x", string(made.ID))
		g.Git("fsck", "--strict", "--no-dangling")
	}
	for _, c := range []struct {
		name   string
		action Action
		want   error
	}{
		{"there already", Action{Kind: Create, Path: "a"}, ErrExists},
		{"a directory", Action{Kind: Create, Path: "d"}, ErrExists},
		{"below a file", Action{Kind: Create, Path: "a/b"}, ErrExists},
		{"not there", Action{Kind: Modify, Path: "b"}, ErrNotFound},
		{"update a directory", Action{Kind: Modify, Path: "d"}, ErrNotFound},
		{"delete a directory", Action{Kind: Delete, Path: "d"}, ErrNotFound},
		{"move what is not there", Action{Kind: Move, From: "b", Path: "c"}, ErrNotFound},
		{"move onto another", Action{Kind: Move, From: "a", Path: "d.x"}, ErrExists},
		{"chmod nothing", Action{Kind: Chmod, Path: "b"}, ErrNotFound},
		{"climb", Action{Kind: Create, Path: "../x"}, ErrBadPath},
		{"absolute", Action{Kind: Create, Path: "/x"}, ErrBadPath},
		{"empty", Action{Kind: Create, Path: ""}, ErrBadPath},
		{"git directory", Action{Kind: Create, Path: "x/.git/config"}, ErrBadPath},
		{"git directory in capitals", Action{Kind: Create, Path: ".GIT/config"}, ErrBadPath},
		{"git directory of Windows", Action{Kind: Create, Path: "git~1/config"}, ErrBadPath},
		{"git directory with a stream", Action{Kind: Create, Path: ".git::$INDEX_ALLOCATION/config"}, ErrBadPath},
		{"git directory of a Mac", Action{Kind: Create, Path: ".g\u200cit/config"}, ErrBadPath},
		{"git directory with a dot", Action{Kind: Create, Path: ".git. /config"}, ErrBadPath},
		{"too long", Action{Kind: Create, Path: strings.Repeat("a", 4097)}, ErrBadPath},
		{"unknown", Action{Kind: "paint", Path: "a"}, ErrUnsupported},
	} {
		_, err := r.CommitChanges(t.Context(), ChangeOptions{Parent: "main", Actions: []Action{c.action}, Author: who("A"), Committer: who("A")})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	left, err := filepath.Glob(filepath.Join(g.Path, "objects", "tmp_*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestSignaturesAreCleaned(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	c, err := r.CommitChanges(t.Context(), ChangeOptions{
		Author:    Signature{Name: "Ann <x>\nparent 0", Email: "a\x00b@x>", When: time.Unix(5, 0).UTC()},
		Committer: Signature{}, Message: "nul\x00 and \xff",
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Author.Name != "Ann xparent 0" || c.Author.Email != "ab@x" || c.Committer.Name != "unknown" || len(c.ParentIDs) != 0 || c.Message != "nul and \uFFFD" {
		t.Errorf("%+v", c)
	}
	g.Git("update-ref", "refs/heads/main", string(c.ID))
	g.Git("fsck", "--strict")
}

func TestMerge(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	commit := func(branch, parent, path, content string) string {
		c := gittest.Commit{Branch: branch, Changes: []gittest.Change{{Path: path, Content: content}}, Message: branch + " " + path}
		if parent != "" {
			c.Parents = []string{parent}
		}
		return g.Commit(c)
	}
	base := commit("main", "", "a", "1\n2\n3\n4\n5\n")
	left := commit("left", base, "a", "one\n2\n3\n4\n5\n")
	right := commit("right", base, "a", "1\n2\n3\n4\nfive\n")
	clash := commit("clash", base, "a", "uno\n2\n3\n4\n5\n")
	alone := g.Commit(gittest.Commit{Branch: "alone", Root: true, Changes: []gittest.Change{{Path: "q", Content: "q"}}})
	o := MergeOptions{Ours: "left", Theirs: "right", Author: who("Ann"), Committer: who("Bob"), Message: "merge"}
	m, err := r.Merge(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]OID{OID(left), OID(right)}, m.ParentIDs); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"100644 a one\n2\n3\n4\nfive\n"}, show(t, r, string(m.ID))); d != "" {
		t.Error(d)
	}
	g.Git("update-ref", "refs/heads/merged", string(m.ID))
	var conflict *MergeConflict
	if _, err := r.Merge(t.Context(), MergeOptions{Ours: "left", Theirs: "clash"}); !errors.As(err, &conflict) || cmp.Diff([]string{"a"}, conflict.Paths) != "" {
		t.Error(err)
	}
	if err := r.CanMerge(t.Context(), "left", "clash"); !errors.Is(err, ErrConflict) {
		t.Error(err)
	}
	if err := r.CanMerge(t.Context(), "left", "right"); err != nil {
		t.Error(err)
	}
	for theirs, want := range map[string]error{base: ErrNothing, alone: ErrNotFound, "none": ErrNotFound} {
		if _, err := r.Merge(t.Context(), MergeOptions{Ours: "left", Theirs: theirs}); !errors.Is(err, want) {
			t.Errorf("%s: %v", theirs, err)
		}
	}

	pick, err := r.CherryPick(t.Context(), MergeOptions{Ours: "left", Theirs: "right", Author: who("Ann"), Committer: who("Bob"), Message: "pick"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"100644 a one\n2\n3\n4\nfive\n"}, show(t, r, string(pick.ID))); d != "" || cmp.Diff([]OID{OID(left)}, pick.ParentIDs) != "" {
		t.Error(d)
	}
	undone, err := r.Revert(t.Context(), MergeOptions{Ours: string(m.ID), Theirs: left, Message: "undo"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"100644 a 1\n2\n3\n4\nfive\n"}, show(t, r, string(undone.ID))); d != "" {
		t.Error(d)
	}
	// A merge commit can only be picked with the number of its main parent.
	for mainline, want := range map[int]string{1: "100644 a one\n2\n3\n4\n5\n", 2: "100644 a 1\n2\n3\n4\nfive\n"} {
		c, err := r.Revert(t.Context(), MergeOptions{Ours: string(m.ID), Theirs: string(m.ID), Mainline: mainline})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{want}, show(t, r, string(c.ID))); d != "" {
			t.Error(d)
		}
	}
	for name, c := range map[string]struct {
		o    MergeOptions
		want error
	}{
		"conflict":         {MergeOptions{Ours: "left", Theirs: clash}, ErrConflict},
		"again":            {MergeOptions{Ours: string(m.ID), Theirs: "right"}, ErrNothing},
		"merge":            {MergeOptions{Ours: "left", Theirs: string(m.ID)}, ErrNotFound},
		"no such mainline": {MergeOptions{Ours: "left", Theirs: string(m.ID), Mainline: 3}, ErrNotFound},
	} {
		if _, err := r.CherryPick(t.Context(), c.o); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A root commit can be picked too.
	if c, err := r.CherryPick(t.Context(), MergeOptions{Ours: "left", Theirs: alone}); err != nil || len(show(t, r, string(c.ID))) != 2 {
		t.Error(err)
	}
	g.Git("fsck", "--strict", "--no-dangling")
	if files, err := os.ReadDir(filepath.Join(g.Path, "objects")); err != nil {
		t.Error(err)
	} else {
		for _, f := range files {
			if strings.HasPrefix(f.Name(), "tmp_") {
				t.Errorf("left behind: %s", f.Name())
			}
		}
	}
}
