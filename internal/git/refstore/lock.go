package refstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Git locks a ref with a file, and a killed process leaves the file behind: from then on, all
// updates of the ref fail. A blocked update removes the file as soon as no process on any node
// can own it (writers.go). On a repository with constant writes that may never be the case,
// but no writing process lives longer than Limits.Write, so a lock that is much older is
// stale as well.

// deadAge is the age after which a lock is stale.
func (r *Files) deadAge() time.Duration { return 2*r.host.Write + time.Minute }

// breakLocks removes stale locks that block updates. It reports whether the
// updates may succeed now.
func (r *Files) breakLocks(ctx context.Context, updates []Update) (bool, error) {
	// The branch that HEAD names is locked together with HEAD.
	names := []string{"HEAD.lock", "packed-refs.lock", "packed-refs.new"}
	for _, u := range updates {
		names = append(names, u.Ref+".lock")
	}
	var found []string
	for _, name := range names {
		path := filepath.Join(r.dir, filepath.FromSlash(name))
		if info, err := os.Lstat(path); err == nil && !info.IsDir() {
			found = append(found, path)
		}
	}
	if len(found) == 0 {
		return false, nil
	}
	before := time.Now().Add(-r.deadAge())
	alone, err := r.SoleWriter(ctx, soleWait)
	if err != nil {
		return false, fmt.Errorf("remove an old lock: %w", err)
	}
	if alone != nil {
		defer Unlock(alone)
		before = time.Now().Add(time.Hour) // of any age, whatever the clock of the file system
	}
	broken := alone != nil // the blocking locks are gone
	for _, path := range found {
		removed, err := removeOld(path, before)
		if err != nil {
			return broken, fmt.Errorf("remove an old lock: %w", err)
		}
		broken = broken || removed
	}
	return broken, nil
}

// removeOld removes a file that was last written before a time.
func removeOld(path string, before time.Time) (bool, error) {
	info, err := os.Stat(path)
	if err == nil && (info.IsDir() || !info.ModTime().Before(before)) {
		return false, nil
	}
	if err == nil {
		err = os.Remove(path)
	}
	if notAFile(err) {
		return false, nil
	}
	return err == nil, err
}

// reclaimWait is how long Reclaim waits for the processes of a killed server,
// which end soon because their pipes are closed.
const reclaimWait = 10 * time.Second

// Reclaim takes over the repository of a server that was killed: it waits for the end of its
// processes, and removes their locks. The caller must know that no other server uses the
// repository. It returns ErrBusy if a process does not end, and ErrNoRepository.
func (r *Files) Reclaim(ctx context.Context) error {
	if err := r.Exists(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, reclaimWait, ErrBusy)
	defer cancel()
	for r.worked() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("take over %s: %w", r.dir, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
	return r.DropLocks(time.Now().Add(time.Hour)) // of any age
}

// worked reports whether a process of another server works in the directory of the
// repository. It returns false if the system cannot show that.
func (r *Files) worked() bool {
	dirs, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, dir := range dirs {
		at, err := os.Readlink(dir)
		if err == nil && at == r.dir && !ownChild(filepath.Dir(dir)) {
			return true
		}
	}
	return false
}

// ownChild reports whether the process with a directory in /proc is a child of this
// process.
func ownChild(proc string) bool {
	text, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return false
	}
	// The process name may contain any character, including parentheses.
	i := strings.LastIndexByte(string(text), ')')
	field := strings.Fields(string(text[i+1:]))
	return len(field) > 1 && field[1] == strconv.Itoa(os.Getpid())
}

// DropLocks removes the locks of all refs that are older than a time.
func (r *Files) DropLocks(before time.Time) error {
	var faults []error
	drop := func(path string) {
		if _, err := removeOld(path, before); err != nil {
			faults = append(faults, err)
		}
	}
	for _, name := range []string{"HEAD.lock", "packed-refs.lock", "packed-refs.new"} {
		drop(filepath.Join(r.dir, name))
	}
	err := filepath.WalkDir(filepath.Join(r.dir, "refs"), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".lock") {
			drop(path)
		}
		return err
	})
	if err := errors.Join(append(faults, err)...); err != nil {
		return fmt.Errorf("remove locks: %w", err)
	}
	return nil
}
