package git

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"svc/internal/git/gittest"
	"svc/internal/git/refstore"
)

// holdRefs holds the lock of a process that may have locked refs.
func holdRefs(t *testing.T, path string) (release func()) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(path, refstore.WritersFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	return func() { refstore.Unlock(f) }
}

// TestLocksOfDeadProcesses checks that locks of dead processes do not block updates, whatever
// their age, and that those of a running process do.
func TestLocksOfDeadProcesses(t *testing.T) {
	t.Parallel()
	for _, lock := range []string{"refs/heads/main.lock", "HEAD.lock", "packed-refs.lock", "packed-refs.new"} {
		t.Run(lock, func(t *testing.T) {
			t.Parallel()
			r, g := open(t)
			tip := OID(g.Commit(gittest.Commit{}))
			g.Git("pack-refs", "--all")
			if err := os.WriteFile(filepath.Join(g.Path, lock), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			// A deletion needs all of the locks.
			gone := []Update{{Ref: Heads + "main", Old: tip, New: ZeroOID}}
			release := holdRefs(t, g.Path)
			if err := r.UpdateRefs(t.Context(), gone); err == nil {
				t.Error("the lock of a living process was not respected")
			}
			release()
			if err := r.UpdateRefs(t.Context(), gone); err != nil {
				t.Errorf("behind the lock of a dead process: %v", err)
			}
		})
	}
}

// TestLockOutlivesServer kills a process whose child has inherited the lock: the child still
// holds it.
func TestLockOutlivesServer(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	f, err := r.files.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("cat")
	child.ExtraFiles = []*os.File{f}
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("here\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	f.Close() // as the end of this process would
	if sole, err := r.files.SoleWriter(t.Context(), 0); sole != nil || err != nil {
		t.Errorf("alone while the child runs: %v", err)
	}
	in.Close()
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
	sole, err := r.files.SoleWriter(t.Context(), time.Minute)
	if sole == nil || err != nil {
		t.Fatalf("not alone after the child has ended: %v", err)
	}
	sole.Close()
	if _, err := r.engine.Repo(filepath.Join(g.Path, "none")).files.Hold(t.Context()); !errors.Is(err, ErrNoRepository) {
		t.Errorf("without a repository: %v", err)
	}
}

// TestHousekeepOnOneNode refuses housekeeping while another process does it, and removes the
// locks of a dead process.
func TestHousekeepOnOneNode(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "1"}}})
	lock := filepath.Join(g.Path, "objects/info/commit-graphs/commit-graph-chain.lock")
	write(t, lock, "")
	other, err := r.files.SoleUpkeep()
	if err != nil || other == nil {
		t.Fatal(err)
	}
	if _, err := r.Housekeep(t.Context(), HousekeepOptions{Now: time.Now(), Full: true}); !errors.Is(err, ErrBusy) {
		t.Errorf("beside another: %v", err)
	}
	if _, err := os.Stat(lock); err != nil {
		t.Errorf("the lock of the other: %v", err)
	}
	refstore.Unlock(other)
	if _, err := r.Housekeep(t.Context(), HousekeepOptions{Now: time.Now(), Full: true}); err != nil {
		t.Errorf("alone: %v", err)
	}
	if _, err := os.Stat(lock); err == nil {
		t.Error("the lock of a dead process is still there")
	}
}
