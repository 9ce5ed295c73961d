package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svc/internal/git/gittest"
)

// TestCopy checks that a copy has all refs, their reflogs, unreachable objects and the
// configuration of the operator.
func TestCopy(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"loose", "packed", "empty"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			r, g := open(t)
			loose := ""
			if form != "empty" {
				fill(g)
				g.Git("-c", "core.logAllRefUpdates=always", "update-ref", "refs/svc/keep/x", "main")
				loose = g.Git("hash-object", "-t", "tree", "-w", "/dev/null")
			}
			if form == "packed" {
				g.Git("repack", "-adbq")
				g.Git("pack-refs", "--all")
			}
			g.Git("config", "some.thing", "set by hand")
			path := filepath.Join(t.TempDir(), "deep", "copy.git")
			c, err := r.engine.Copy(t.Context(), r, path)
			if err != nil {
				t.Fatal(err)
			}
			copied := gittest.At(t, path)
			if got, want := copied.Git("for-each-ref"), g.Git("for-each-ref"); got != want {
				t.Errorf("refs\n%s, want\n%s", got, want)
			}
			if got := copied.Git("config", "some.thing"); got != "set by hand" {
				t.Error(got)
			}
			if differs, err := r.Differs(t.Context(), c); differs != "" || err != nil {
				t.Error(differs, err)
			}
			if form == "empty" {
				return
			}
			copied.Git("fsck", "--strict", "--no-dangling")
			copied.Git("cat-file", "-e", loose)
			if was, err := c.WasAt(t.Context(), "refs/svc/keep/x", ZeroOID); !was || err != nil {
				t.Errorf("the log of a ref: %t, %v", was, err)
			}
			if _, err := r.engine.Copy(t.Context(), r, path); !errors.Is(err, ErrExists) {
				t.Errorf("over another: %v", err)
			}
			g.Git("update-ref", "refs/heads/later", "main")
			if differs, err := r.Differs(t.Context(), c); differs != "refs/heads/later is not in the copy" || err != nil {
				t.Error(differs, err)
			}
			g.Git("update-ref", "-d", "refs/heads/later")
			g.Git("update-ref", "refs/heads/main", "side/branch")
			if differs, err := r.Differs(t.Context(), c); !strings.HasPrefix(differs, "refs/heads/main is at ") || err != nil {
				t.Error(differs, err)
			}
		})
	}
}

// TestCopyOfDamaged checks that a broken ref is reported, and that nothing is left behind.
func TestCopyOfDamaged(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	fill(g)
	if err := os.WriteFile(filepath.Join(g.Path, "refs", "heads", "gone"), []byte(strings.Repeat("a", 40)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	_, err := r.engine.Copy(t.Context(), r, filepath.Join(dir, "copy.git"))
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "refs/heads/gone") {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestLeave waits for a reader, and for some time without readers.
func TestLeave(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	fill(g)
	if _, err := r.Commit(t.Context(), "main"); err != nil { // a reader is idle now
		t.Fatal(err)
	}
	end := r.engine.uses.begin(r.dirs())
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := r.Leave(short, time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("during a read: %v", err)
	}
	end()
	if err := r.Leave(t.Context(), 20*time.Millisecond); err != nil {
		t.Error(err)
	}
	if n := len(r.engine.readers.resting); n != 0 {
		t.Errorf("%d readers hold files", n)
	}
	if n := len(r.engine.uses.of); n != 0 {
		t.Errorf("%d directories are still known", n)
	}
}

func TestBundleAll(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	dir := t.TempDir()
	var empty bytes.Buffer
	if branch, n, err := r.BundleAll(t.Context(), &empty, asTheyAre); branch != "main" || n != 0 || err != nil {
		t.Fatal(branch, n, err)
	}
	if _, err := r.engine.UnbundleAll(t.Context(), filepath.Join(dir, "empty.git"), "main", &empty); err != nil {
		t.Error(err)
	}
	fill(g)
	var b bytes.Buffer
	if _, n, err := r.BundleAll(t.Context(), &b, asTheyAre); n == 0 || err != nil {
		t.Fatal(n, err)
	}
	file := filepath.Join(dir, "x.bundle")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	gittest.Run(t, g.Path, "bundle", "verify", "-q", file)
	c, err := r.engine.UnbundleAll(t.Context(), filepath.Join(dir, "copy.git"), "main", bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	gittest.At(t, c.Path()).Git("fsck", "--strict")
	if differs, err := r.Differs(t.Context(), c); differs != "" || err != nil {
		t.Error(differs, err)
	}
	for name, text := range map[string][]byte{
		"cut off":       b.Bytes()[:b.Len()-30],
		"no bundle":     []byte("hello"),
		"one bit wrong": append(append([]byte(nil), b.Bytes()[:b.Len()-40]...), append([]byte{b.Bytes()[b.Len()-40] ^ 1}, b.Bytes()[b.Len()-39:]...)...),
	} {
		path := filepath.Join(dir, "bad.git")
		if _, err := r.engine.UnbundleAll(t.Context(), path, "main", bytes.NewReader(text)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is there", name)
		}
	}
}

func FuzzBundleHead(f *testing.F) {
	f.Add(bundleHead + strings.Repeat("a", 40) + " refs/heads/main\n\nPACK")
	f.Add(bundleHead + "\n")
	f.Add("# v3 git bundle\n")
	f.Fuzz(func(t *testing.T, text string) {
		refs, err := readBundleHead(bufio.NewReader(strings.NewReader(text)))
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
		for _, ref := range refs {
			if err := CheckRef(ref.Name); err != nil {
				t.Fatalf("%q: %v", ref.Name, err)
			}
		}
	})
}

func asTheyAre(refs []Ref) ([]Ref, error) { return refs, nil }
