package git

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"svc/internal/git/gittest"
)

// TestMergedAsGit compares Merged and RefsNamed with git on loose and packed
// branches and tags, in a history with merges.
func TestMergedAsGit(t *testing.T) {
	t.Parallel()
	raw := gittest.New(t)
	var ids []string
	for i := range 40 {
		c := gittest.Commit{Branch: "main", Message: fmt.Sprint(i), Seconds: int64(1_700_000_000 + i)}
		if i%7 == 3 { // a branch that is merged with the next commit
			side := raw.Commit(gittest.Commit{Branch: fmt.Sprintf("merged/%d", i), Parents: []string{ids[i-2]}, Message: "side"})
			c.Parents = []string{ids[i-1], side}
		}
		if i%5 == 4 { // some have a wrong clock
			raw.Commit(gittest.Commit{Branch: fmt.Sprintf("open/%d", i), Parents: []string{ids[i/2]}, Seconds: int64(1_600_000_000 + i*9_000_000)})
		}
		ids = append(ids, raw.Commit(c))
	}
	raw.Git("tag", "-a", "-m", "note", "v1", ids[3])
	raw.Git("tag", "-a", "-m", "note of a note", "v2", "v1")
	raw.Git("tag", "light", ids[4])
	raw.Git("tag", "tree", ids[4]+"^{tree}")
	raw.Git("pack-refs", "--all")
	raw.Git("tag", "-a", "-m", "note", "v3", ids[5])
	raw.Git("update-ref", "refs/heads/loose/merged", ids[6])
	raw.Git("update-ref", "refs/heads/merged/3", "open/4") // a loose ref over a packed one
	raw.Git("update-ref", "-d", "refs/heads/merged/10")
	r := newEngine(t, Limits{}).Repo(raw.Path)

	for _, place := range []string{Heads, Tags, "refs/"} {
		names, err := r.RefNames(t.Context(), place, nil)
		if err != nil {
			t.Fatal(err)
		}
		refs, err := r.RefsNamed(t.Context(), names)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, ref := range refs {
			peeled := ""
			if ref.Tag != "" {
				peeled = string(ref.Target)
			}
			got = append(got, fmt.Sprintf("%s %s %s", ref.ID, ref.Name, peeled))
		}
		// git 2.39 peels only one level here, so tags of tags are resolved separately.
		var want []string
		for line := range strings.Lines(raw.Git("for-each-ref", "--format=%(objectname) %(refname) %(objecttype)", place)) {
			part := strings.Fields(line)
			peeled := ""
			if part[2] == "tag" {
				peeled = raw.Git("rev-parse", part[1]+"^{}")
			}
			want = append(want, fmt.Sprintf("%s %s %s", part[0], part[1], peeled))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", place, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}

	refs, err := r.Refs(t.Context(), RefOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, into := range []string{"main", "main~20", "open/34", ids[0]} {
		head := OID(raw.Git("rev-parse", into))
		want := strings.Fields(raw.Git("for-each-ref", "--format=%(refname)", "--merged="+string(head)))
		for _, again := range []bool{false, true} { // also from the cache
			targets := make([]OID, len(refs))
			for i, ref := range refs {
				targets[i] = ref.Target
			}
			merged, err := r.Merged(t.Context(), head, targets)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, ref := range refs {
				if merged[ref.Target] {
					got = append(got, ref.Name)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, again %v: got %q, want %q", into, again, got, want)
			}
			for _, one := range refs {
				if some, err := r.Merged(t.Context(), head, []OID{one.Target}); err != nil || some[one.Target] != slices.Contains(want, one.Name) {
					t.Errorf("%s: %s is %v, %v", into, one.Name, some, err)
				}
			}
			r.Forget()
		}
	}
	if _, err := r.Merged(t.Context(), OID(raw.Git("rev-parse", "main^{tree}")), nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("merged into a tree: %v", err)
	}
	missing := OID(strings.Repeat("1", 40))
	if some, err := r.Merged(t.Context(), OID(ids[9]), []OID{missing, OID(ids[8])}); err != nil || !maps.Equal(some, map[OID]bool{OID(ids[8]): true}) {
		t.Errorf("of a missing commit: %v, %v", some, err)
	}
}
