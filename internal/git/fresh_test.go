package git

import (
	"errors"
	"slices"
	"testing"

	"svc/internal/git/gittest"
)

// TestNew finds the objects of commits that are not reachable from a ref.
func TestNew(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Limits{})
	raw := gittest.New(t)
	raw.Commit(gittest.Commit{Branch: "main", Changes: []gittest.Change{{Path: "old.txt", Content: "known\n"}}})
	tip := raw.Commit(gittest.Commit{Branch: "side", Parents: []string{raw.Tip("refs/heads/main")}, Message: "two\n", Changes: []gittest.Change{
		{Path: "dir/copy.txt", Content: "known\n"}, {Path: "dir/new.txt", Content: "0123456789"},
	}})
	raw.Git("update-ref", "-d", "refs/heads/side")
	r := e.Repo(raw.Path)

	var messages, paths []string
	var sizes []int64
	if err := r.NewCommits(t.Context(), []OID{OID(tip)}, func(c *Commit) error {
		messages = append(messages, c.Message)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := r.NewPaths(t.Context(), []OID{OID(tip)}, func(p string) error {
		paths = append(paths, p)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := r.NewObjects(t.Context(), []OID{OID(tip)}, func(o NewObject) error {
		if o.Type == TypeBlob {
			sizes = append(sizes, o.Size)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(messages, []string{"two\n"}) || !slices.Equal(paths, []string{"dir/copy.txt", "dir/new.txt"}) || !slices.Equal(sizes, []int64{10}) {
		t.Errorf("found %q, %q and %v", messages, paths, sizes)
	}

	// An error of the callback stops the search, and objects reachable from refs are not new.
	end := errors.New("enough of that")
	for name, err := range map[string]error{
		"commits": r.NewCommits(t.Context(), []OID{OID(tip)}, func(*Commit) error { return end }),
		"paths":   r.NewPaths(t.Context(), []OID{OID(tip)}, func(string) error { return end }),
		"objects": r.NewObjects(t.Context(), []OID{OID(tip)}, func(NewObject) error { return end }),
	} {
		if !errors.Is(err, end) {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := r.NewObjects(t.Context(), []OID{OID(raw.Tip("refs/heads/main")), ZeroOID}, func(o NewObject) error {
		t.Errorf("%s is not new", o.OID)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNames covers the names of refs, tags and digests.
func TestNames(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Limits{})
	raw := gittest.New(t)
	first := raw.Commit(gittest.Commit{Branch: "main", Changes: []gittest.Change{{Path: "a", Content: "a\n"}}})
	raw.Commit(gittest.Commit{Branch: "main", Changes: []gittest.Change{{Path: "b", Content: "b\n"}}})
	raw.Git("update-ref", "refs/heads/old", first)
	raw.Commit(gittest.Commit{Branch: "old-er", Parents: []string{first}, Changes: []gittest.Change{{Path: "c", Content: "c\n"}}})
	r := e.Repo(raw.Path)

	names, err := r.RefNames(t.Context(), Heads, func(s string) bool { return s != "main" })
	if err != nil || !slices.Equal(names, []string{"refs/heads/old", "refs/heads/old-er"}) {
		t.Errorf("names %q, %v", names, err)
	}
	id, err := r.CreateTag(t.Context(), TagOptions{Name: "v1", Target: OID(first), Type: TypeCommit, Tagger: Signature{Name: "A", Email: "a@b.c"}, Message: "one"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.UpdateRefs(t.Context(), []Update{{Ref: Tags + "v1", Old: ZeroOID, New: id}}); err != nil {
		t.Fatal(err)
	}
	raw.Git("fsck", "--strict")
	tag, err := r.Tag(t.Context(), id)
	if err != nil || tag.Name != "v1" || tag.Message != "one\n" || tag.Target != OID(first) {
		t.Errorf("tag %+v, %v", tag, err)
	}
	if _, err := r.CreateTag(t.Context(), TagOptions{Name: "-v", Target: OID(first), Type: TypeCommit}); !errors.Is(err, ErrBadRef) {
		t.Errorf("bad name: %v", err)
	}
	file, err := r.Entry(t.Context(), "main", "a")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := r.Digest(t.Context(), file.OID)
	if err != nil || sum != "87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7" {
		t.Errorf("digest %s, %v", sum, err)
	}
}
