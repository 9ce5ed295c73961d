package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"svc/internal/durable"
	"svc/internal/git/refstore"
)

// HousekeepOptions are the options of Housekeep.
type HousekeepOptions struct {
	Now time.Time // current time, for the age of files
	// Full combines all packs into one and removes expired unreachable objects,
	// whatever Needs says. Otherwise that happens only if packs have to be combined
	// anyway.
	Full bool
}

// HousekeepReport describes what was done.
type HousekeepReport struct {
	Did     []string // commands: pack-refs, repack, …
	Before  int64    // size of the repository in bytes
	After   int64
	Removed int // number of stale files and directories that were removed
}

const (
	// unreachableGrace is how long objects are kept after housekeeping has found them
	// unreachable. A backup may need one, and a concurrent push or commit may rely on
	// one; each such use updates its modification time.
	unreachableGrace = 14 * 24 * time.Hour
	// reflogGrace is how long reflog entries are kept.
	reflogGrace = 90 * 24 * time.Hour
	// staleGrace is the minimum age of locks and temporary files that are removed.
	staleGrace = 6 * time.Hour
)

// Housekeep does the maintenance that the repository needs. It packs refs and
// objects, writes a bitmap and a commit-graph, and removes unreachable objects
// after two weeks and files left by crashes. It may run concurrently with reads
// and pushes on all nodes, and may be interrupted at any time.
//
// Only one runs per Engine, and only one per repository on all nodes; otherwise it
// returns ErrBusy. Each step has the time limit of a transfer. It returns
// ErrNoRepository.
func (r Repo) Housekeep(ctx context.Context, o HousekeepOptions) (HousekeepReport, error) {
	var done HousekeepReport
	select {
	case r.engine.upkeep <- struct{}{}:
		defer func() { <-r.engine.upkeep }()
	default:
		return done, fmt.Errorf("housekeeping: %w", ErrBusy)
	}
	if r.backend != nil {
		done, err := r.backend.Housekeep(ctx, r.path, o)
		if err != nil {
			return done, fmt.Errorf("housekeeping: %w", err)
		}
		return done, nil
	}
	if err := r.refs.Exists(ctx); err != nil {
		return done, fmt.Errorf("housekeeping: %w", err)
	}
	alone, err := r.files.SoleUpkeep()
	if err == nil && alone == nil {
		err = ErrBusy // running on another node
	}
	if err != nil {
		return done, fmt.Errorf("housekeeping: %w", err)
	}
	defer refstore.Unlock(alone)
	err = r.housekeep(ctx, o, &done, alone)
	if err != nil {
		return done, fmt.Errorf("housekeeping: %w", err)
	}
	return done, nil
}

func (r Repo) housekeep(ctx context.Context, o HousekeepOptions, done *HousekeepReport, alone *os.File) error {
	if err := r.freeLocks(ctx); err != nil {
		return err
	}
	needs, err := r.Needs(ctx)
	if err != nil {
		return err
	}
	if done.Before, err = r.Size(ctx); err != nil {
		return err
	}
	// The longest transfer must have ended by then.
	stale := max(staleGrace, 2*r.engine.limits.Transfer)
	if done.Removed, err = r.removeStale(ctx, o.Now.Add(-stale)); err != nil {
		return err
	}
	if needs.cruft(o) {
		if err := r.renew(ctx, o.Now); err != nil {
			return err
		}
	}
	for _, s := range steps(needs, o) {
		c := command{work: upkeep, args: s, checkTips: alone}
		if name := c.name(); name == "pack-refs" || name == "reflog" {
			// These lock refs. A lock that is older is assumed to be left by a killed process
			// (lock.go).
			c.limit = r.engine.limits.Write
		}
		if _, err := r.output(ctx, c); err != nil {
			return err
		}
		done.Did = append(done.Did, c.name())
	}
	if needs.objects() || o.Full {
		if err := durable.SyncDir(filepath.Join(r.path, "objects", "pack")); err != nil {
			return err
		}
		// Idle readers would keep the old packs open, and so on disk.
		r.engine.readers.forget(r.scope())
	}
	done.After, err = r.Size(ctx)
	return err
}

// freeLocks removes the locks of killed processes: those of the commit-graph,
// which only housekeeping takes, and those of refs if no process is changing refs.
// Locks younger than a minute may belong to a process started by an operator.
func (r Repo) freeLocks(ctx context.Context) error {
	for _, name := range []string{"commit-graph.lock", "commit-graphs/commit-graph-chain.lock"} {
		err := os.Remove(filepath.Join(r.path, "objects", "info", filepath.FromSlash(name)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return fmt.Errorf("remove a lock of the commit-graph: %w", err)
		}
	}
	sole, err := r.files.SoleWriter(ctx, 0)
	if err != nil || sole == nil {
		return err
	}
	defer refstore.Unlock(sole)
	return r.files.DropLocks(time.Now().Add(-time.Minute))
}

// cruft reports whether unreachable objects are packed and removed.
func (n Needs) cruft(o HousekeepOptions) bool { return o.Full || n.objects() && n.whole() }

// renew sets the time of all objects except those in cruft packs to now. It is the time from
// which git counts the age of those that it then finds unreachable and puts into a cruft pack.
// Until then, objects have the age of their pack, and those of a branch that was just deleted
// would be removed at once.
func (r Repo) renew(ctx context.Context, now time.Time) error {
	cruft := map[string]bool{}
	var failed error
	err := r.eachFile(ctx, func(path string, f fs.FileInfo) {
		dir, name := filepath.Split(path)
		base, ext := strings.TrimSuffix(name, filepath.Ext(name)), filepath.Ext(name)
		switch {
		case f.IsDir(), temporary(path, f):
			return
		case dir == "objects/pack/" && ext == ".mtimes": // comes before .pack
			cruft[base] = true
			return
		case dir == "objects/pack/" && ext == ".pack" && !cruft[base], looseObject(path):
		default:
			return
		}
		if f.ModTime().Before(now) {
			if err := os.Chtimes(filepath.Join(r.path, path), now, now); err != nil && !errors.Is(err, fs.ErrNotExist) {
				failed = err
			}
		}
	})
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("renew objects: %w", err)
	}
	return nil
}

// steps returns the commands to run.
func steps(n Needs, o HousekeepOptions) [][]string {
	var list [][]string
	unreachable := strconv.FormatInt(o.Now.Add(-unreachableGrace).Unix(), 10)
	if o.Full {
		list = append(list, []string{"reflog", "expire", "--all",
			"--expire=" + strconv.FormatInt(o.Now.Add(-reflogGrace).Unix(), 10), "--expire-unreachable=" + unreachable})
	}
	if n.refs() || o.Full {
		list = append(list, []string{"pack-refs", "--all"})
	}
	graph := "--split"
	// One thread: requests have priority.
	repack := []string{"-c", "pack.threads=1", "repack", "-d", "-l", "-q"}
	switch {
	case n.cruft(o):
		// Unreachable objects go into a cruft pack, which stores the age of each object.
		graph = "--split=replace"
		list = append(list,
			append(repack, "--cruft", "--cruft-expiration="+unreachable, "--write-bitmap-index"),
			[]string{"prune", "--expire=" + unreachable})
	case n.objects():
		list = append(list, append(repack, "--geometric=2", "--no-write-bitmap-index"))
	}
	if n.objects() || n.Graph || o.Full {
		list = append(list, []string{"commit-graph", "write", "--reachable", "--changed-paths", "--no-progress", graph})
	}
	return list
}
