package refstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Every process that locks refs, on any node, holds a shared lock (flock) on a file of the
// repository meanwhile, and so do the git processes that it starts, because they inherit the
// open file. The system releases the lock when all of them have ended, in whatever way. A
// process with the exclusive lock therefore knows that no ref lock has an owner. A second file,
// locked exclusively, limits housekeeping to one node at a time.
const (
	// WritersFile is the lock file of processes that change refs.
	WritersFile = "svc-writers"
	upkeepFile  = "svc-upkeep"
)

const (
	// soleWait is how long an update that finds a locked ref waits for the processes
	// that may own the lock.
	soleWait = time.Second
	// flockPause is the time between two attempts to get a lock.
	flockPause = 5 * time.Millisecond
)

// Locks reports whether a git command locks refs.
func Locks(name string) bool {
	return name == "update-ref" || name == "pack-refs" || name == "reflog"
}

// Hold acquires the shared lock until the file is closed. It waits while another process has
// the exclusive lock, which takes a moment. It returns ErrNoRepository.
func (r *Files) Hold(ctx context.Context) (*os.File, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.host.Write, ErrBusy)
	defer cancel()
	f, _, err := r.flock(ctx, WritersFile, syscall.LOCK_SH)
	return f, err
}

// SoleWriter acquires the exclusive lock, so that no one holds ref locks until the
// file is closed. It returns nil if others still hold the lock after some time.
func (r *Files) SoleWriter(ctx context.Context, wait time.Duration) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	f, held, err := r.flock(ctx, WritersFile, syscall.LOCK_EX)
	if held {
		return nil, nil
	}
	return f, err
}

// flock opens a file of the repository and locks it. held is true, with an error, if other
// processes held a conflicting lock until ctx ended. It does not block in the system, because
// a frozen process may have the lock.
func (r *Files) flock(ctx context.Context, name string, how int) (f *os.File, held bool, err error) {
	f, err = os.OpenFile(filepath.Join(r.dir, name), os.O_CREATE|os.O_RDWR, 0o640)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, fmt.Errorf("%w: %s", ErrNoRepository, r.dir)
	}
	if err != nil {
		return nil, false, fmt.Errorf("lock refs: %w", err)
	}
	for {
		err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return f, false, nil
		case errors.Is(err, syscall.EINTR):
			continue
		case !errors.Is(err, syscall.EWOULDBLOCK):
			_ = f.Close()
			return nil, false, fmt.Errorf("lock refs: %w", err)
		}
		timer := time.NewTimer(flockPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			_ = f.Close()
			return nil, true, fmt.Errorf("lock refs: %w", context.Cause(ctx))
		}
	}
}

// Unlock releases a lock whose processes have ended. Closing the file is not enough, because
// a process that is being started has a copy of it for a moment.
func Unlock(f *os.File) {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // closing releases it as well, if later
	_ = f.Close()
}

// SoleUpkeep acquires the lock of housekeeping; nil if another process has it.
func (r *Files) SoleUpkeep() (*os.File, error) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // one attempt
	f, held, err := r.flock(ctx, upkeepFile, syscall.LOCK_EX)
	if held {
		return nil, nil
	}
	return f, err
}
