package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/git/gittest"
)

func TestFsck(t *testing.T) {
	t.Parallel()
	// damage returns the object that the problem is about, if any.
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, g *gittest.Repo) string
		kinds  string
	}{
		{"nothing", func(*testing.T, *gittest.Repo) string { return "" }, ""},
		{"dangling", func(_ *testing.T, g *gittest.Repo) string {
			g.Object("blob", "dangling")
			return ""
		}, ""},
		{"what pushes may have", func(_ *testing.T, g *gittest.Repo) string {
			tree := g.Git("rev-parse", "main^{tree}")
			g.Git("update-ref", "refs/heads/old", g.Object("commit", "tree "+tree+"\nauthor A <a@x> 5 +051800\ncommitter A <a@x> 5 +0000\n\nold\n"))
			return ""
		}, ""},
		{"a missing blob", func(t *testing.T, g *gittest.Repo) string {
			id := g.Git("rev-parse", "main:a")
			remove(t, objectPath(g, id))
			return id
		}, "missing,broken link"},
		{"a missing commit", func(t *testing.T, g *gittest.Repo) string {
			id := g.Git("rev-parse", "main~1")
			remove(t, objectPath(g, id))
			return id
		}, "missing,broken link"},
		{"a damaged blob", func(t *testing.T, g *gittest.Repo) string {
			id := g.Git("rev-parse", "main:a")
			remove(t, objectPath(g, id))
			write(t, objectPath(g, id), "no zlib")
			return id
		}, "corrupt,missing"},
		{"a damaged pack", func(t *testing.T, g *gittest.Repo) string {
			g.Git("repack", "-adq")
			packs, err := filepath.Glob(filepath.Join(g.Path, "objects/pack/*.pack"))
			if err != nil || len(packs) != 1 {
				t.Fatal(packs, err)
			}
			content, err := os.ReadFile(packs[0])
			if err != nil {
				t.Fatal(err)
			}
			content[len(content)/2] ^= 0x55
			remove(t, packs[0])
			write(t, packs[0], string(content))
			return ""
		}, "corrupt"},
		{"a bad ref", func(t *testing.T, g *gittest.Repo) string {
			write(t, filepath.Join(g.Path, "refs/heads/bad"), strings.Repeat("ab", 20)+"\n")
			return ""
		}, "bad ref"},
		{"a bad tree", func(t *testing.T, g *gittest.Repo) string {
			blob := g.Git("rev-parse", "main:a")
			tree := gittest.RunInput(t, g.Path, strings.NewReader("100644 blob "+blob+"\tb\n100644 blob "+blob+"\tb\n"), "mktree")
			g.Git("update-ref", "refs/heads/tree", g.Git("commit-tree", "-m", "x", tree))
			return tree
		}, "bad object"},
		{"a bad HEAD", func(t *testing.T, g *gittest.Repo) string {
			remove(t, filepath.Join(g.Path, "HEAD"))
			write(t, filepath.Join(g.Path, "HEAD"), "ref: refs/tags/x\n")
			return ""
		}, "bad ref"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, g := open(t)
			g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "1"}}})
			g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "b", Content: "2"}}})
			id := c.damage(t, g)
			problems, err := r.Fsck(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			named := id == ""
			for _, p := range problems {
				if !strings.Contains(c.kinds, p.Kind) || p.Text == "" || strings.Contains(p.Text, g.Path) {
					t.Errorf("%+v", p)
				}
				named = named || string(p.Object) == id
			}
			for kind := range strings.SplitSeq(c.kinds, ",") {
				if kind != "" && !hasProblem(problems, kind) {
					t.Errorf("no %q in %+v", kind, problems)
				}
			}
			if !named {
				t.Errorf("%s is not named in %+v", id, problems)
			}
		})
	}
	e := newEngine(t, Limits{})
	if _, err := e.Repo(t.TempDir()).Fsck(t.Context()); !errors.Is(err, ErrNoRepository) {
		t.Error(err)
	}
	empty, err := e.Init(t.Context(), filepath.Join(t.TempDir(), "e.git"), "main")
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := empty.Fsck(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("an empty one: %+v, %v", problems, err)
	}
}

func hasProblem(list []Problem, kind string) bool {
	for _, p := range list {
		if p.Kind == kind {
			return true
		}
	}
	return false
}

func objectPath(g *gittest.Repo, id string) string {
	return filepath.Join(g.Path, "objects", id[:2], id[2:])
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
