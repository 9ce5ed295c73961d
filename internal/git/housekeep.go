package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"svc/internal/durable"
	"svc/internal/git/refstore"
)

// HousekeepOptions says how housekeeping is done.
type HousekeepOptions struct {
	Now time.Time // ages of files count back from here
	// Full makes all packs one and lets go of what nothing leads to, whatever
	// Needs says. Without it that happens only when packs have to be joined
	// anyway.
	Full bool
}

// HousekeepReport is what was done.
type HousekeepReport struct {
	Did     []string // the steps: pack-refs, repack, …
	Before  int64    // bytes of the repository
	After   int64
	Removed int // files and directories that were left behind
}

const (
	// unreachableGrace is how long objects stay that nothing leads to. A push
	// or commit that is under way may have found one and count on it; each
	// such use makes the object young again.
	unreachableGrace = 14 * 24 * time.Hour
	// reflogGrace is how long the logs of refs reach back.
	reflogGrace = 90 * 24 * time.Hour
	// staleGrace is the least age of locks and temporary files that are taken
	// for left behind.
	staleGrace = 6 * time.Hour
)

// Housekeep does what the repository needs: refs and objects are packed, with
// a bitmap and a commit-graph, what nothing leads to is removed two weeks
// after its last use, and so is what crashes left behind. It may run beside
// reads and pushes, on this node and others, and may be broken off at any
// time.
//
// One at a time runs in an Engine, and one on all nodes in a repository, with its
// own time limit, that of a transfer for each step; the others get ErrBusy. It
// returns ErrNoRepository.
func (r Repo) Housekeep(ctx context.Context, o HousekeepOptions) (HousekeepReport, error) {
	var done HousekeepReport
	select {
	case r.engine.upkeep <- struct{}{}:
		defer func() { <-r.engine.upkeep }()
	default:
		return done, fmt.Errorf("housekeeping: %w", ErrBusy)
	}
	if err := r.refs.Exists(); err != nil {
		return done, fmt.Errorf("housekeeping: %w", err)
	}
	alone, err := r.files.SoleUpkeep()
	if err == nil && alone == nil {
		err = ErrBusy // another node does it
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
	// What takes longest to move a pack must have ended by then.
	stale := max(staleGrace, 2*r.engine.limits.Transfer)
	if done.Removed, err = r.removeStale(ctx, o.Now.Add(-stale)); err != nil {
		return err
	}
	for _, s := range steps(needs, o) {
		c := command{work: upkeep, args: s, holds: alone}
		if name := c.name(); name == "pack-refs" || name == "reflog" {
			// These lock refs. A lock that outlives this is taken for one of
			// a process that was killed (lock.go).
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
		// Readers at rest would find the new packs, but keep the old files
		// open, and so on disk.
		r.engine.readers.forget(r.scope())
	}
	done.After, err = r.Size(ctx)
	return err
}

// freeLocks removes the locks that killed processes left: those of the
// commit-graph, which only housekeeping takes, and those of refs if no process is
// changing refs. A process that was started by hand has a minute.
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

// steps are the commands in their order.
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
	// One thread: requests come first.
	repack := []string{"-c", "pack.threads=1", "repack", "-d", "-l", "-q"}
	switch {
	case o.Full || n.objects() && n.whole():
		// What nothing leads to goes into its own pack, which knows the age of each
		// object.
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
