package git_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"svc/internal/git"
	"svc/internal/git/gittest"
)

// hold acquires the lock of a process that changes refs.
func hold(t *testing.T, repository string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(repository, "svc-writers"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
}

// TestOldLocks leaves the locks of killed processes while others change refs: old locks do
// not block updates, young ones do.
func TestOldLocks(t *testing.T) {
	t.Parallel()
	e, err := git.New(git.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	for _, lock := range []string{"refs/heads/main.lock", "HEAD.lock", "packed-refs.lock", "packed-refs.new"} {
		for _, old := range []bool{true, false} {
			name := lock + " young"
			if old {
				name = lock + " old"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				made := gittest.New(t)
				tree := git.OID(made.Git("hash-object", "-t", "tree", "-w", "/dev/null"))
				first := git.OID(made.Git("commit-tree", "-m", "one", string(tree)))
				made.Git("update-ref", "refs/heads/main", string(first))
				made.Git("pack-refs", "--all")
				path := filepath.Join(made.Path, lock)
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				hold(t, made.Path)
				if old {
					before := time.Now().Add(-6 * time.Minute)
					if err := os.Chtimes(path, before, before); err != nil {
						t.Fatal(err)
					}
				}
				// A deletion needs all of the locks.
				err := e.Repo(made.Path).UpdateRefs(t.Context(), []git.Update{{Ref: "refs/heads/main", Old: first, New: git.ZeroOID}})
				if old && err != nil {
					t.Errorf("behind an old lock: %v", err)
				}
				if !old && err == nil {
					t.Error("a young lock was not respected")
				}
			})
		}
	}
}

func TestOldHeadLock(t *testing.T) {
	t.Parallel()
	e, err := git.New(git.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	made := gittest.New(t)
	path := filepath.Join(made.Path, "HEAD.lock")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	hold(t, made.Path)
	if err := e.Repo(made.Path).SetDefaultBranch(t.Context(), "trunk"); !errors.Is(err, git.ErrConflict) {
		t.Errorf("a young lock: %v, want a conflict", err)
	}
	before := time.Now().Add(-6 * time.Minute)
	if err := os.Chtimes(path, before, before); err != nil {
		t.Fatal(err)
	}
	if err := e.Repo(made.Path).SetDefaultBranch(t.Context(), "trunk"); err != nil {
		t.Errorf("an old lock: %v", err)
	}
}

// TestReclaim waits for a process that another server has left, and removes its locks.
func TestReclaim(t *testing.T) {
	t.Parallel()
	e, err := git.New(git.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	if err := e.Repo(filepath.Join(t.TempDir(), "none.git")).Reclaim(t.Context()); !errors.Is(err, git.ErrNoRepository) {
		t.Errorf("without a repository: %v", err)
	}
	made := gittest.New(t)
	locks := []string{"HEAD.lock", "refs/heads/a/b.lock", "packed-refs.lock"}
	if err := os.MkdirAll(filepath.Join(made.Path, "refs/heads/a"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, lock := range locks {
		if err := os.WriteFile(filepath.Join(made.Path, lock), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The shell is our child, but its child is not, as after a kill.
	marker := filepath.Join(t.TempDir(), "done")
	cmd := exec.Command("sh", "-c", `(exec >/dev/null 2>&1; cd "$0" && sleep 0.3 && touch "$1") & echo started`, made.Path, marker)
	if out, err := cmd.Output(); err != nil || string(out) != "started\n" {
		t.Fatalf("%s %v", out, err)
	}
	if err := e.Repo(made.Path).Reclaim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(marker); err != nil {
		t.Error("it did not wait for the process that worked there")
	}
	for _, lock := range locks {
		if _, err := os.Stat(filepath.Join(made.Path, lock)); err == nil {
			t.Errorf("%s is still there", lock)
		}
	}
}
