package git

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"svc/internal/git/gittest"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	long := strings.Repeat("the same line\n", 30)
	g.Commit(gittest.Commit{Changes: []gittest.Change{
		{Path: "change", Content: "1\n2\n3\n"}, {Path: "gone", Content: "bye\n"}, {Path: "old name", Content: long}, {Path: "run", Content: "x"},
		{Path: "bin", Content: "\x00\x01"}, {Path: "kind", Content: "target"}, {Path: "latin", Content: "gr\xfcn\n"},
	}})
	base := g.Tip("main")
	g.Commit(gittest.Commit{Branch: "new", Parents: []string{base}, Changes: []gittest.Change{
		{Path: "change", Content: "1\ntwo\n3\n"}, {Path: "gone", Delete: true}, {Path: "old name", Delete: true}, {Path: "new\nname", Content: long + "more\n"},
		{Path: "run", Content: "x", Mode: "100755"}, {Path: "bin", Content: "\x00\x02"}, {Path: "kind", Content: "target", Mode: "120000"},
		{Path: "added", Content: "diff --git a/x b/x\n--- hello\n"}, {Path: "latin", Content: "gr\xfcner\n"},
	}})
	g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "elsewhere", Content: "x"}}})
	want := []FileDiff{
		{OldPath: "added", NewPath: "added", AMode: "0", BMode: "100644", New: true, Added: 2, Diff: "@@ -0,0 +1,2 @@\n+diff --git a/x b/x\n+--- hello\n"},
		{OldPath: "bin", NewPath: "bin", AMode: "100644", BMode: "100644", Binary: true},
		{OldPath: "change", NewPath: "change", AMode: "100644", BMode: "100644", Added: 1, Removed: 1, Diff: "@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n"},
		{OldPath: "gone", NewPath: "gone", AMode: "100644", BMode: "0", Deleted: true, Removed: 1, Diff: "@@ -1 +0,0 @@\n-bye\n"},
		{OldPath: "kind", NewPath: "kind", AMode: "100644", BMode: "120000", Added: 1, Removed: 1,
			Diff: "@@ -1 +0,0 @@\n-target\n\\ No newline at end of file\n@@ -0,0 +1 @@\n+target\n\\ No newline at end of file\n"},
		{OldPath: "latin", NewPath: "latin", AMode: "100644", BMode: "100644", Added: 1, Removed: 1, Diff: "@@ -1 +1 @@\n-gr\uFFFDn\n+gr\uFFFDner\n"},
		{OldPath: "old name", NewPath: "new\nname", AMode: "100644", BMode: "100644", Renamed: true, Added: 1,
			Diff: "@@ -28,3 +28,4 @@ the same line\n the same line\n the same line\n the same line\n+more\n"},
		{OldPath: "run", NewPath: "run", AMode: "100644", BMode: "100755"},
	}
	ids := cmpopts.IgnoreFields(FileDiff{}, "OldID", "NewID")
	byPath := cmpopts.SortSlices(func(a, b FileDiff) bool { return a.OldPath < b.OldPath })
	for range 2 {
		d, err := r.Diff(t.Context(), DiffOptions{From: "main", To: "new"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, d.Files, ids, byPath); diff != "" || d.Overflow || d.TimedOut || string(d.Base) != base {
			t.Error(diff, d)
		}
	}
	straight, err := r.Diff(t.Context(), DiffOptions{From: "main", To: "new", Straight: true})
	if err != nil || len(straight.Files) != len(want)+1 {
		t.Errorf("straight: %d files, %v", len(straight.Files), err)
	}
	uni, err := r.Diff(t.Context(), DiffOptions{From: "main", To: "new", Unidiff: true, Paths: []string{"change"}})
	if err != nil || len(uni.Files) != 1 || uni.Files[0].Diff != "--- a/change\n+++ b/change\n"+want[2].Diff {
		t.Errorf("unidiff: %+v %v", uni, err)
	}
	root, err := r.Diff(t.Context(), DiffOptions{To: base})
	if err != nil || len(root.Files) != 7 || !root.Files[0].New {
		t.Errorf("root: %+v %v", root, err)
	}
	for _, o := range []DiffOptions{{From: "none", To: "new"}, {From: "main", To: "none"}} {
		if _, err := r.Diff(t.Context(), o); !errors.Is(err, ErrNotFound) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestDiffLimits(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	var changes []gittest.Change
	for i := range 20 {
		changes = append(changes, gittest.Change{Path: fmt.Sprintf("f%02d", i), Content: strings.Repeat("line\n", 10)})
	}
	changes[5].Content = strings.Repeat("x", 300_000)
	g.Commit(gittest.Commit{Changes: changes})
	for _, c := range []struct {
		name string
		o    DiffOptions
		want string // for each file: text or none
	}{
		{"none", DiffOptions{}, "11111111111111111111"},
		{"files", DiffOptions{MaxFiles: 3}, "11100000000000000000"},
		{"lines", DiffOptions{MaxLines: 25}, "11000000000000000000"},
		{"size", DiffOptions{MaxFileSize: 10_000}, "11111011111111111111"},
		{"size of all", DiffOptions{MaxSize: 200_000}, "11111100000000000000"},
	} {
		c.o.To = "main"
		d, err := r.Diff(t.Context(), c.o)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range d.Files {
			if f.TooLarge == (f.Diff != "") {
				t.Errorf("%s: %s: %v and %d bytes", c.name, f.NewPath, f.TooLarge, len(f.Diff))
			}
			got += map[bool]string{true: "0", false: "1"}[f.TooLarge]
		}
		if got != c.want || d.Overflow != strings.Contains(got, "0") {
			t.Errorf("%s: %s, %v", c.name, got, d.Overflow)
		}
	}
}

func TestDiffRunsOutOfTime(t *testing.T) {
	t.Parallel()
	g := gittest.Generate(t, gittest.Size{Commits: 1, Files: 3000, Lines: 100})
	r := newEngine(t, Limits{}).Repo(g.Path)
	o := DiffOptions{To: "main", MaxFiles: 5000, MaxLines: 1e6, Time: time.Millisecond}
	d, err := r.Diff(t.Context(), o)
	if err != nil || !d.TimedOut {
		t.Fatalf("%+v %v", d, err)
	}
	// A partial result is not cached.
	o.Time = 0
	d, err = r.Diff(t.Context(), o)
	if err != nil || d.TimedOut || d.Overflow || len(d.Files) != 3000 || d.Files[2999].Added != 100 {
		t.Errorf("%d files, %v %v %v", len(d.Files), d.TimedOut, d.Overflow, err)
	}
}

func FuzzDiff(f *testing.F) {
	raw := ":100644 100644 " + string(ZeroOID) + " " + string(ZeroOID) + " M\x00a\x00"
	f.Add(raw + "\x00diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n")
	f.Add(":100644 120000 1 2 T\x00a\x00\x00diff --git\n@@\n-x\ndiff --git\n@@\n+y")
	f.Add(raw + raw + "\x00diff --git x\nBinary files a\ndiff --git y\n@@\n")
	f.Fuzz(func(t *testing.T, s string) {
		p := diffParser{o: DiffOptions{MaxFiles: 3, MaxLines: 5, MaxFileSize: 50, MaxSize: 1000, Unidiff: len(s)%2 == 0}, diff: &Diff{}}
		if err := p.read(strings.NewReader(s)); err != nil && !errors.Is(err, errEnough) {
			return
		}
		p.finish()
		for _, f := range p.diff.Files {
			if len(f.Diff) > 300 {
				t.Errorf("%+v", f)
			}
		}
	})
}

// TestDiffWithSeveralBases checks that if a criss-cross merge has two merge bases, one is
// chosen, and the comparison uses it.
func TestDiffWithSeveralBases(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	commit := func(branch, path string, parents ...string) string {
		return g.Commit(gittest.Commit{Branch: branch, Parents: parents, Changes: []gittest.Change{{Path: path, Content: path}}})
	}
	root := commit("a", "root")
	a := commit("a", "a1", root)
	z := commit("z", "z1", root)
	commit("a", "a2", a, z)
	commit("z", "z2", z, a)
	if bases := strings.Fields(g.Git("merge-base", "--all", "a", "z")); len(bases) != 2 {
		t.Fatalf("bases %q", bases)
	}
	d, err := r.Diff(t.Context(), DiffOptions{From: "a", To: "z"})
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range d.Files {
		paths = append(paths, f.NewPath)
	}
	want := strings.Fields(g.Git("diff", "--name-only", string(d.Base), "z"))
	if !slices.Equal(paths, want) || string(d.Base) != a && string(d.Base) != z {
		t.Errorf("base %s, %q, want %q", d.Base, paths, want)
	}
	// Later calls return the same result.
	again, err := r.Diff(t.Context(), DiffOptions{From: "a", To: "z"})
	if err != nil || again != d {
		t.Errorf("again: %v, %v", again, err)
	}
}

// TestDiffInPieces parses a comparison in one piece and byte by byte, as a process may write
// it, and compares the results at every limit.
func TestDiffInPieces(t *testing.T) {
	t.Parallel()
	_, g := open(t)
	lines := strings.Repeat("line\n", 40)
	g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: lines}, {Path: "b", Content: "b\n"}, {Path: "d", Content: lines}}})
	g.Commit(gittest.Commit{Changes: []gittest.Change{
		{Path: "a", Content: "diff --git a/x b/x\n" + lines + "+++\n---"}, {Path: "b", Content: "\xff\n"}, {Path: "d", Content: strings.ReplaceAll(lines, "i", "\n")},
	}})
	cmd := gittest.Command(g.Path, "diff-tree", "-r", "--raw", "-p", "-z", "main~1", "main")
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	parse := func(o DiffOptions, in io.Reader) *Diff {
		p := diffParser{o: o.filled(&Engine{}), diff: &Diff{}}
		if err := p.read(in); err != nil && !errors.Is(err, errEnough) {
			t.Fatal(err)
		}
		p.finish()
		return p.diff
	}
	texts := 0
	for limit := range 200 {
		for _, o := range []DiffOptions{{MaxLines: limit + 1}, {MaxFileSize: 3*limit + 1}, {MaxSize: 3*limit + 1, Unidiff: true}, {MaxFiles: limit%4 + 1}} {
			whole := parse(o, bytes.NewReader(text))
			if diff := cmp.Diff(whole, parse(o, iotest.OneByteReader(bytes.NewReader(text)))); diff != "" {
				t.Fatalf("%+v: %s", o, diff)
			}
			for _, f := range whole.Files {
				texts += min(len(f.Diff), 1)
			}
		}
	}
	if texts < 1000 {
		t.Errorf("only %d texts were read", texts)
	}
}
