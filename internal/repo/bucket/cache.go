package bucket

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"svc/internal/git"
)

// version is the state of a repository.
type version struct {
	epoch      int64 // of the node when the state was read, because the database may lose commits
	id         int64 // of the repository, because another one may get the same directory
	generation int64
}

// has reports whether v includes all changes of another version that the database still has.
func (v version) has(other version) bool {
	if v.epoch != other.epoch {
		return v.epoch > other.epoch // v was read later: Storage.find
	}
	return v.id == other.id && v.generation >= other.generation || v.id > other.id
}

// entry is a directory of the cache.
type entry struct {
	size atomic.Int64 // bytes of its objects; 0 if there is no directory
	last atomic.Int64 // time of the last use, in Unix nanoseconds

	changes atomic.Int64 // number of fetches that changed the directory

	known version // newest version whose refs this node has read; protected by Storage.mu

	flight *flight // the fetch in progress, or nil; protected by Storage.mu

	mu     sync.Mutex // held while the directory is changed
	synced version    // version of the directory; changes also hold Storage.mu
	packs  []packRow  // of that version, or those that they were made from
	later  []packRow  // packs of that version that were made from others and are not fetched yet
	stat   fs.FileInfo

	loose    atomic.Int64 // bytes of objects that are in no pack, when they were last measured
	measured atomic.Int64 // that time, in Unix nanoseconds
	// looseAt is a time at which these were measured, and looseNewest the time of the newest
	// one then. Both are protected by mu.
	looseAt, looseNewest time.Time

	writing   atomic.Int32 // number of updates of this node that are adding packs
	expected  atomic.Bool  // a prefetch is going to start
	following atomic.Bool  // the work after a fetch is running

	graphIsOld bool // many commits are not in the commit-graph; protected by Storage.mu
}

// entry returns the entry of a directory.
func (s *Storage) entry(dir string) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[dir]
	if e == nil {
		e = &entry{}
		s.entries[dir] = e
	}
	return e
}

// use records a use of an entry.
func (s *Storage) use(e *entry) { e.last.Store(s.Now().UnixNano()) }

// resting reports whether an entry was not used for a while.
func (s *Storage) resting(last int64) bool { return s.Now().Sub(time.Unix(0, last)) >= restTime }

// Changes implements git.Backend.
func (s *Storage) Changes(dir string) int64 { return s.entry(dir).changes.Load() }

// Present implements git.Backend.
func (s *Storage) Present(dir string) bool {
	e := s.entry(dir)
	s.use(e)
	s.mu.Lock()
	current := e.synced.id != 0 && e.synced.has(e.known)
	stat := e.stat
	s.mu.Unlock()
	return current && s.intact(dir, stat)
}

// intact reports whether the files that git needs exist, and the directory of packs is
// unchanged since it was last checked.
func (s *Storage) intact(dir string, was fs.FileInfo) bool {
	now, ok := s.layout(dir, "packed-refs")
	return ok && was != nil && now != nil && os.SameFile(was, now) && was.ModTime().Equal(now.ModTime())
}

// layout reports whether the files that git needs exist, and more files if given. It returns
// the state of the directory of packs, or nil if that may change unnoticed.
func (s *Storage) layout(dir string, more ...string) (fs.FileInfo, bool) {
	for _, name := range append(more, "HEAD", "config", "refs") {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return nil, false
		}
	}
	packs, err := os.Stat(filepath.Join(dir, "objects", "pack"))
	if err != nil {
		return nil, false
	}
	return s.steady(packs), true
}

// complete reports whether the directory is a repository with all packs. The
// caller holds the lock of the entry.
func (s *Storage) complete(dir string, e *entry) bool {
	if s.intact(dir, e.stat) {
		return true
	}
	// Pushes change the directory of packs as well. Its state is read before its files, so
	// that a change in between is noticed the next time.
	stat, ok := s.layout(dir, "packed-refs")
	if !ok {
		return false
	}
	for _, p := range e.packs {
		if !hasPack(dir, p) {
			return false
		}
	}
	s.mu.Lock()
	e.stat = stat
	s.mu.Unlock()
	return true
}

// tick is more than the time within which two changes of a directory may have the same time.
const tick = 20 * time.Millisecond

// steady returns the state of a directory that was just read, or nil if later changes could
// have the same time.
func (s *Storage) steady(stat fs.FileInfo) fs.FileInfo {
	if s.Now().Sub(stat.ModTime()) < tick {
		return nil
	}
	return stat
}

// hasPack reports whether all files of a pack are in a directory.
func hasPack(dir string, p packRow) bool {
	for _, part := range p.parts() {
		info, err := os.Lstat(packBase(dir, p.hash) + part.suffix)
		if err != nil || info.Size() != part.size {
			return false
		}
	}
	return true
}

func packBase(dir, hash string) string { return filepath.Join(dir, "objects", "pack", "pack-"+hash) }

// drop removes the directory of an entry. The caller holds the lock of the entry.
func (s *Storage) drop(dir string, e *entry) error {
	s.mu.Lock()
	e.synced, e.packs, e.later, e.stat = version{}, nil, nil, nil
	s.mu.Unlock()
	e.size.Store(0)
	e.loose.Store(0)
	// Renamed first, so that git finds either the whole directory or nothing.
	gone, err := s.temp(gonePrefix)
	if err != nil {
		return err
	}
	err = os.Rename(dir, filepath.Join(gone, "repository"))
	s.Git.Local(dir).Forget() // readers have files open
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if left := os.RemoveAll(gone); left != nil { // the next process removes it
		s.Log.Warn("a part of the cache cannot be removed", "directory", gone, "error", left)
	}
	return err
}

const gonePrefix = ".gone-"

// temp creates a directory in the cache directory, which may have been deleted.
func (s *Storage) temp(prefix string) (string, error) {
	if err := os.MkdirAll(s.Dir, 0o750); err != nil {
		return "", err
	}
	return os.MkdirTemp(s.Dir, prefix)
}

// findEntries finds the repositories that an earlier process left in the cache, and completes
// its interrupted removals.
func (s *Storage) findEntries() error {
	return filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !d.IsDir() || path == s.Dir:
			return nil
		case strings.HasPrefix(d.Name(), "."): // also drafts of new repositories
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			return fs.SkipDir
		case filepath.Ext(path) != ".git":
			return nil
		}
		e := s.entry(path)
		left, _ := filepath.Glob(filepath.Join(path, "objects", git.QuarantinePrefix+"*"))
		for _, dir := range left { // of killed processes
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
		s.measureLoose(path, e)
		e.size.Store(packBytes(path) + e.loose.Load())
		if info, err := d.Info(); err == nil {
			e.last.Store(info.ModTime().UnixNano())
		}
		return fs.SkipDir
	})
}

// packBytes returns the size of the packs in a directory, and 1 for none.
func packBytes(dir string) int64 {
	size := int64(1)
	files, err := os.ReadDir(filepath.Join(dir, "objects", "pack"))
	if err != nil {
		return size
	}
	for _, f := range files {
		if info, err := f.Info(); err == nil {
			size += info.Size()
		}
	}
	return size
}

// measureEvery is how often the objects of a repository that are in no pack are measured.
const measureEvery = 10 * time.Minute

// measureIfDue measures an entry that is used without being updated. Refused changes leave
// objects behind.
func (s *Storage) measureIfDue(dir string, e *entry) {
	if !s.measureDue(e) {
		return
	}
	s.run(func() {
		if !e.mu.TryLock() {
			return // the update that is running does it
		}
		if s.measureDue(e) && e.size.Load() > 0 {
			s.measureLoose(dir, e)
			e.size.Store(packBytes(dir) + e.loose.Load())
		}
		e.mu.Unlock()
		s.evict(s.life)
	})
}

func (s *Storage) measureDue(e *entry) bool {
	return s.Now().Sub(time.Unix(0, e.measured.Load())) >= measureEvery
}

// measureLoose measures the objects that are in no pack, and removes those that were there
// leftoverAge ago: all reachable objects are in packs. They are of changes that were refused after
// their objects were written, or of killed processes. The times of files are compared only with each
// other, because the clock may be set. The caller holds the lock of the entry.
func (s *Storage) measureLoose(dir string, e *entry) {
	objects := filepath.Join(dir, "objects")
	var size int64
	var newest time.Time
	now := s.Now()
	old := func(at time.Time) bool { return now.Sub(e.looseAt) >= leftoverAge && !at.After(e.looseNewest) }
	places, _ := os.ReadDir(objects) // the next use tries again
	for _, d := range places {
		path := filepath.Join(objects, d.Name())
		if d.Name() == "pack" {
			continue
		}
		var last time.Time
		var used int64
		quarantine := strings.HasPrefix(d.Name(), git.QuarantinePrefix)
		eachFile(path, func(file string, info fs.FileInfo) {
			if len(d.Name()) == 2 && old(info.ModTime()) && os.Remove(file) == nil {
				return
			}
			used += info.Size()
			last = later(last, info.ModTime())
		})
		if info, err := d.Info(); quarantine && err == nil {
			if last = later(last, info.ModTime()); old(last) && os.RemoveAll(path) == nil {
				continue
			}
		}
		size += used
		if quarantine || len(d.Name()) == 2 {
			newest = later(newest, last)
		}
	}
	if now.Sub(e.looseAt) >= leftoverAge {
		e.looseAt, e.looseNewest = now, newest
	}
	e.loose.Store(size)
	e.measured.Store(now.UnixNano())
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// eachFile calls f with the files below a directory.
func eachFile(dir string, f func(path string, info fs.FileInfo)) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // it may be removed at any time
		}
		if info, err := d.Info(); err == nil {
			f(path, info)
		}
		return nil
	})
}

// restTime is how long a repository is not evicted after a use, because a request may have
// written objects that no ref refers to yet.
const restTime = time.Minute

// evict removes the least recently used repositories until the cache is within its size limit.
// It keeps repositories in use.
func (s *Storage) evict(ctx context.Context) {
	if s.CacheSize <= 0 || !s.evicting.TryLock() {
		return
	}
	defer s.evicting.Unlock()
	type candidate struct {
		dir  string
		e    *entry
		last int64
	}
	var list []candidate
	var total int64
	s.mu.Lock()
	for dir, e := range s.entries {
		if size := e.size.Load(); size > 0 {
			total += size
			list = append(list, candidate{dir, e, e.last.Load()})
		}
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b candidate) int { return int(min(1, max(-1, a.last-b.last))) })
	for _, c := range list {
		if total <= s.CacheSize || ctx.Err() != nil || !s.resting(c.last) {
			return
		}
		size := c.e.size.Load()
		if s.evictOne(ctx, c.dir, c.e) {
			total -= size
		}
	}
}

func (s *Storage) evictOne(ctx context.Context, dir string, e *entry) bool {
	if !e.mu.TryLock() {
		return false
	}
	defer e.mu.Unlock()
	if s.Git.InUse(dir) || !s.resting(e.last.Load()) {
		return false
	}
	if err := s.drop(dir, e); err != nil {
		s.Log.WarnContext(ctx, "a repository cannot be removed from the cache", "directory", dir, "error", err)
		return false
	}
	s.count(func(c *Stats) { c.Evictions++ })
	return true
}
