package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/git/gittest"
)

func TestFork(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"loose", "packed", "both", "alternates", "empty"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			r, g := open(t)
			dir := t.TempDir()
			if form != "empty" {
				fill(g)
			}
			switch form {
			case "packed":
				g.Git("repack", "-adbq")
				g.Git("pack-refs", "--all")
			case "both":
				g.Git("repack", "-adq")
				g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "late", Content: "4"}}})
			case "alternates":
				lean := filepath.Join(dir, "lean.git")
				gittest.Run(t, "", "clone", "-q", "--bare", "--shared", g.Path, lean)
				r, g = r.engine.Repo(lean), gittest.At(t, lean)
				g.Git("update-ref", "refs/internal/x", "main")
			}
			path := filepath.Join(dir, "deep", "er", "fork.git")
			f, err := r.engine.Fork(t.Context(), r, path, "")
			if err != nil {
				t.Fatal(err)
			}
			// The fork does not depend on the source.
			want := g.Git("for-each-ref", "refs/heads", "refs/tags")
			if err := os.RemoveAll(g.Path); err != nil {
				t.Fatal(err)
			}
			copied := gittest.At(t, path)
			copied.Git("fsck", "--strict", "--no-dangling")
			if got := copied.Git("for-each-ref"); got != want {
				t.Errorf("refs\n%s, want\n%s", got, want)
			}
			if form != "empty" && !strings.Contains(want, "refs/tags/v1") {
				t.Errorf("the test has no tag: %s", want)
			}
			if got := copied.Git("symbolic-ref", "HEAD"); got != "refs/heads/main" {
				t.Error(got)
			}
			if _, err := os.Stat(filepath.Join(path, "objects/info/alternates")); err == nil {
				t.Error("it depends on another repository")
			}
			if form != "empty" {
				if c, err := f.Commit(t.Context(), "v1"); err != nil || c.Message != "First\n" {
					t.Errorf("%v, %v", c, err)
				}
			}
			if _, err := r.engine.Fork(t.Context(), f, path, ""); !errors.Is(err, ErrExists) {
				t.Errorf("a second time: %v", err)
			}
			left, err := os.ReadDir(filepath.Dir(path))
			if err != nil || len(left) != 1 {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
	e := newEngine(t, Limits{})
	if _, err := e.Fork(t.Context(), e.Repo(filepath.Join(t.TempDir(), "none")), filepath.Join(t.TempDir(), "x"), ""); !errors.Is(err, ErrNoRepository) {
		t.Error(err)
	}
}

// fill creates branches, an annotated and a lightweight tag, and a ref that is not copied to
// forks.
func fill(g *gittest.Repo) {
	g.Commit(gittest.Commit{Message: "First\n", Changes: []gittest.Change{{Path: "a", Content: "1"}}})
	g.Git("tag", "-m", "tagged", "v1", "main")
	g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "b", Content: "2"}}})
	g.Git("tag", "light", "main")
	g.Commit(gittest.Commit{Branch: "side/branch", Root: true, Changes: []gittest.Change{{Path: "c", Content: "3"}}})
	g.Git("update-ref", "refs/internal/x", "main")
}

// TestForkOfDamaged checks that a repository with missing objects is not forked, and that
// nothing is left behind.
func TestForkOfDamaged(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	fill(g)
	if err := os.WriteFile(filepath.Join(g.Path, "refs/heads/broken"), []byte(strings.Repeat("ab", 20)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// git skips such a ref in lists, and so does the fork.
	f, err := r.engine.Fork(t.Context(), r, filepath.Join(dir, "f.git"), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Ref(t.Context(), "refs/heads/broken"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	// Objects that another program removed are noticed.
	g.Git("tag", "late", g.Object("blob", "late"))
	if _, err := r.Ref(t.Context(), "refs/tags/late"); err != nil { // now it is cached
		t.Fatal(err)
	}
	id := g.Tip("refs/tags/late")
	if err := os.Remove(filepath.Join(g.Path, "objects", id[:2], id[2:])); err != nil {
		t.Fatal(err)
	}
	if _, err := r.engine.Fork(t.Context(), r, filepath.Join(dir, "g.git"), ""); !errors.Is(err, ErrNotFound) {
		t.Errorf("with an object missing: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestLinkOrCopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := os.WriteFile(from, []byte("content"), 0o440); err != nil {
		t.Fatal(err)
	}
	if err := copySynced(from, to, 0o440); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(to); err != nil || string(text) != "content" {
		t.Errorf("%q, %v", text, err)
	}
	if err := linkOrCopy(from, to); err != nil {
		t.Errorf("what is there: %v", err)
	}
	if err := linkOrCopy(from+"x", to+"x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what went meanwhile: %v", err)
	}
}
