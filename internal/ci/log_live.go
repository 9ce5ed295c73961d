package ci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// liveLog keeps the logs of jobs that run. It is a file where there is one
// node, and rows of the database where there are several.
//
// A log is only added to. When a runner finds that what is stored is not what
// it sent, it sends all of it again (restart); what was there stays readable
// until the new one is as long, so that for a reader a log never shrinks.
type liveLog interface {
	// add adds bytes at a place, which must be the end: a gapError tells
	// where that is. It gives the size then.
	add(ctx context.Context, jobID, at int64, p []byte) (int64, error)
	// size is how much was written since the last restart.
	size(ctx context.Context, jobID int64) (int64, error)
	// restart begins a log anew; restarted tells whether that was done.
	restart(ctx context.Context, jobID int64) error
	restarted(ctx context.Context, jobID int64) (bool, error)
	// open reads what there is, nil when there is nothing: the longer of the
	// two, or with newest the one that was written last.
	open(ctx context.Context, jobID int64, newest bool) (*logReader, error)
	// sync has what was written survive the machine.
	sync(ctx context.Context, jobID int64) error
	remove(ctx context.Context, jobID int64) error
	// jobs are those that have a live log.
	jobs(ctx context.Context) ([]int64, error)
}

// gapError says that bytes do not follow on what there is.
type gapError struct{ size int64 }

func (e *gapError) Error() string { return fmt.Sprintf("the log has %d bytes", e.size) }

// logReader reads a log, as it was when it was opened.
type logReader struct {
	io.ReadSeeker
	size  int64
	close func() error
}

// Close gives up what the reader holds.
func (r *logReader) Close() error {
	if r.close == nil {
		return nil
	}
	return r.close()
}

// logFiles is a directory with a file for each log.
type logFiles struct {
	dir   string
	locks [64]sync.Mutex // each for some of the jobs
}

func (l *logFiles) lock(jobID int64) func() {
	m := &l.locks[uint64(jobID)%uint64(len(l.locks))]
	m.Lock()
	return m.Unlock
}

// path is that of the log, or of the one before a restart.
func (l *logFiles) path(jobID int64, before bool) string {
	name := strconv.FormatInt(jobID, 10) + ".log"
	if before {
		name += ".before"
	}
	return filepath.Join(l.dir, fmt.Sprintf("%02x", uint8(jobID)), name)
}

func (l *logFiles) add(_ context.Context, jobID, at int64, p []byte) (int64, error) {
	defer l.lock(jobID)()
	path := l.path(jobID, false)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return 0, err
		}
		f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	}
	if err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, errors.Join(err, f.Close())
	}
	if info.Size() != at {
		return info.Size(), errors.Join(&gapError{info.Size()}, f.Close())
	}
	n, err := f.Write(p)
	return at + int64(n), errors.Join(err, f.Close())
}

func (l *logFiles) size(_ context.Context, jobID int64) (int64, error) {
	return sizeOf(l.path(jobID, false))
}

func sizeOf(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (l *logFiles) restart(_ context.Context, jobID int64) error {
	defer l.lock(jobID)()
	err := os.Rename(l.path(jobID, false), l.path(jobID, true))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (l *logFiles) restarted(_ context.Context, jobID int64) (bool, error) {
	_, err := os.Stat(l.path(jobID, true))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (l *logFiles) open(_ context.Context, jobID int64, newest bool) (*logReader, error) {
	defer l.lock(jobID)()
	path := l.path(jobID, false)
	now, err := sizeOf(path)
	if err != nil {
		return nil, err
	}
	before, err := sizeOf(l.path(jobID, true))
	if err != nil {
		return nil, err
	}
	if before > now && !newest {
		path, now = l.path(jobID, true), before
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &logReader{io.NewSectionReader(f, 0, now), now, f.Close}, nil
}

func (l *logFiles) sync(_ context.Context, jobID int64) error {
	f, err := os.Open(l.path(jobID, false))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (l *logFiles) remove(_ context.Context, jobID int64) error {
	defer l.lock(jobID)()
	for _, before := range []bool{false, true} {
		if err := os.Remove(l.path(jobID, before)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (l *logFiles) jobs(context.Context) ([]int64, error) {
	var found []int64
	err := filepath.WalkDir(l.dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		name, _, _ := strings.Cut(d.Name(), ".")
		if id, err := strconv.ParseInt(name, 10, 64); err == nil {
			found = append(found, id)
		}
		return nil
	})
	slices.Sort(found)
	return slices.Compact(found), err
}
