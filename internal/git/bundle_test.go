package git

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/git/gittest"
)

// TestBundle transfers a repository as one file, which git itself can clone, and refuses
// invalid files.
func TestBundle(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Limits{})
	there := gittest.New(t)
	there.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "a\n"}}})
	tip := there.Commit(gittest.Commit{Message: "more", Changes: []gittest.Change{{Path: "b", Content: "b\n"}}})
	there.Git("tag", "-a", "-m", "one", "v1", tip)
	var out bytes.Buffer
	if err := e.Repo(there.Path).Bundle(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	good := out.String()

	file := filepath.Join(t.TempDir(), "x.bundle")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	gittest.Run(t, t.TempDir(), "clone", "-q", file, "copy")

	here := gittest.New(t)
	if err := e.Repo(here.Path).Unbundle(t.Context(), strings.NewReader(good), BundleLimits{Object: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	here.Git("fsck", "--strict")
	if a, b := there.Git("for-each-ref"), here.Git("for-each-ref"); a != b {
		t.Errorf("the refs are\n%s\nnot\n%s", b, a)
	}
	var again bytes.Buffer
	if err := e.Repo(here.Path).Bundle(t.Context(), &again); err != nil {
		t.Fatal(err)
	}
	if again.String() != good {
		t.Error("another bundle comes out than went in")
	}
	if err := e.Repo(gittest.New(t).Path).Bundle(t.Context(), &out); !errors.Is(err, ErrNotFound) {
		t.Errorf("a bundle of nothing: %v", err)
	}

	head, pack, _ := strings.Cut(good, "\n\n")
	for name, bad := range map[string]string{
		"nothing":                     "",
		"something else":              "PACK" + pack,
		"cut off":                     good[:len(good)-30],
		"no pack":                     head + "\n\n",
		"no refs":                     bundleHead + "\n\n" + pack,
		"needs more":                  strings.Replace(good, "\n", "\n-"+tip+"\n", 1),
		"other refs":                  strings.ReplaceAll(good, "refs/tags/", "refs/keep-around/"),
		"a bad name":                  strings.ReplaceAll(good, "refs/tags/v1", "refs/tags/../v1"),
		"an object that is not there": strings.Replace(good, tip+" refs", strings.Repeat("ab", 20)+" refs", 1),
	} {
		here := gittest.New(t)
		if err := e.Repo(here.Path).Unbundle(t.Context(), strings.NewReader(bad), BundleLimits{Object: 1 << 20}); !errors.Is(err, ErrBundle) {
			t.Errorf("%s: %v", name, err)
		}
		if refs := here.Git("for-each-ref"); refs != "" {
			t.Errorf("%s left %s", name, refs)
		}
	}
}

// FuzzReadBundle reads the header before a pack.
func FuzzReadBundle(f *testing.F) {
	f.Add(bundleHead + "\n" + strings.Repeat("ab", 20) + " refs/heads/main\n\nPACK")
	f.Add(bundleHead + "\n-" + strings.Repeat("ab", 20) + "\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		changes, err := readBundle(bufio.NewReader(strings.NewReader(text)), func(c *RefChange) string {
			if !strings.HasPrefix(c.Ref, "refs/") {
				return "no"
			}
			return ""
		})
		if err != nil {
			if !errors.Is(err, ErrBundle) {
				t.Fatal(err)
			}
			return
		}
		for _, c := range changes {
			if c.New == ZeroOID || c.Old != ZeroOID || !strings.HasPrefix(c.Ref, "refs/") {
				t.Fatalf("%+v", c)
			}
		}
	})
}
