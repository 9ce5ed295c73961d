// Package spool lets several readers share the making of packs and archives.
package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"svc/internal/limit"
)

// Spool makes what is costly to make once for all who want the same: packs and
// archives. It is written to disk, and its readers follow while it grows, each
// at its own pace; what is complete is kept for a while for those who come
// later. What one client alone wants goes through it as well: the process that
// makes it ends as soon as it can, however slowly the client reads.
//
// The bytes on disk are bounded. What has no reader goes first, the one that
// was not used for longest. When that is not enough, what outgrows the space
// loses its beginning as soon as its readers are past it, and takes no new
// ones.
//
// Files have no names, so nothing is left behind by a crash.
type Spool struct {
	dir    string
	budget int64
	age    time.Duration // how long something complete is kept
	stall  time.Duration // how long one reader may hold up others

	mu    sync.Mutex
	used  int64
	items map[string]*spooled // those that take new readers, by key
}

// spooled is one thing that is or was made. The lock of the spool guards it.
type spooled struct {
	spool   *Spool
	key     string
	scope   string
	segment int64      // bytes of a full segment
	files   []*os.File // segments; nil when given back
	first   int        // the first segment that is still there
	size    int64      // bytes written
	held    int64      // bytes of the budget
	readers map[*reader]bool
	// anonymous says that the caller who started it had not signed in.
	anonymous bool
	cancel    context.CancelFunc // ends who makes it
	done      bool
	err       error
	changed   chan struct{} // closed at the next change
	used      time.Time
}

// reader is someone who follows.
type reader struct {
	at    int64
	moved time.Time
	cut   bool // it held up others for too long
}

var (
	errCutOff = errors.New("read too slowly")
	errUnread = errors.New("it has no readers left")
)

// New returns nil, which shares nothing, when there is no directory for it.
func New(dir string, budget int64, age time.Duration) (*Spool, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a place for packs: %w", err)
	}
	// A crash may have come before a file lost its name.
	left, err := filepath.Glob(filepath.Join(dir, "spool-*"))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return nil, fmt.Errorf("tidy the place for packs: %w", err)
	}
	return &Spool{dir: dir, budget: budget, age: age, stall: time.Minute, items: map[string]*spooled{}}, nil
}

// Serve writes to w what produce writes, which is called once for all who ask for
// the same key at a time; an empty key is shared with no one. When the spool has no
// room, produce writes to w alone. Where w fails or ctx ends, the others are served
// on; produce ends with its last reader. An error of produce is that of all.
//
// The scope is the repository, for Forget.
func (s *Spool) Serve(ctx context.Context, scope, key string, w io.Writer, produce func(context.Context, io.Writer) error) error {
	if s == nil {
		return produce(ctx, w)
	}
	item, r, isNew := s.join(scope, key, limit.CallerOf(ctx).Anonymous())
	if item == nil {
		return produce(ctx, w)
	}
	if isNew {
		inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
		s.mu.Lock()
		item.cancel = cancel
		s.mu.Unlock()
		go func() {
			defer cancel()
			item.finish(produce(inner, item))
		}()
	}
	defer item.leave(r)
	return item.copyTo(ctx, w, r)
}

// join finds what is there under the key, or makes room for it. It gives
// nothing when there is no room. A caller who has signed in does not wait
// together with one who has not for a process to be started: the former can
// have slots that the latter cannot.
func (s *Spool) join(scope, key string, anonymous bool) (item *spooled, r *reader, isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	r = &reader{moved: now}
	if item, ok := s.items[key]; ok && (anonymous || !item.anonymous || item.size > 0 || item.done) {
		item.readers[r], item.used = true, now
		return item, r, false
	}
	item = &spooled{spool: s, key: key, scope: scope, segment: min(16<<20, max(s.budget/64, 4096)), changed: make(chan struct{}),
		readers: map[*reader]bool{r: true}, anonymous: anonymous, cancel: func() {}, used: now}
	if !s.room(item.segment) || item.extend() != nil {
		return nil, nil, false
	}
	if key != "" {
		s.items[key] = item
	}
	return item, r, true
}

// room drops what no one reads until there is room for n bytes more.
func (s *Spool) room(n int64) bool {
	for s.used+n > s.budget {
		var oldest *spooled
		for _, item := range s.items {
			if item.done && len(item.readers) == 0 && (oldest == nil || item.used.Before(oldest.used)) {
				oldest = item
			}
		}
		if oldest == nil {
			return false
		}
		oldest.retire()
		oldest.release(len(oldest.files))
	}
	return true
}

// Forget drops what was made of a repository; those who read it go on.
func (s *Spool) Forget(scope string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, item := range s.items {
		if item.scope == scope || strings.HasPrefix(item.scope, scope+"\x00") {
			item.retire()
			item.releaseUnread()
		}
	}
}

// Close ends all that is being made and drops the rest.
func (s *Spool) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.budget = 0 // nothing new
	for _, item := range s.items {
		item.cancel()
		item.retire()
		item.releaseUnread()
	}
}

// Usage is the number of bytes on disk, and of things that take new readers.
func (s *Spool) Usage() (used int64, items int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, len(s.items)
}

// Write adds to what is made. It fails when no one reads it any more.
func (i *spooled) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		file, at, free, err := i.end()
		if err != nil {
			return written, err
		}
		n, err := file.WriteAt(p[:min(int64(len(p)), free)], at)
		i.spool.mu.Lock()
		i.size += int64(n)
		i.notify()
		i.spool.mu.Unlock()
		written += n
		if err != nil {
			return written, err
		}
		p = p[n:]
	}
	return written, nil
}

// end returns the place where to go on, in a new segment if need be. It waits
// for readers when there is no room.
func (i *spooled) end() (file *os.File, at, free int64, err error) {
	s := i.spool
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if len(i.readers) == 0 {
			return nil, 0, 0, errUnread
		}
		if last := len(i.files) - 1; i.size < int64(len(i.files))*i.segment {
			at = i.size - int64(last)*i.segment
			return i.files[last], at, i.segment - at, nil
		}
		if s.room(i.segment) {
			if err := i.extend(); err != nil {
				return nil, 0, 0, err
			}
			continue
		}
		i.retire()
		if i.releasePassed() {
			continue
		}
		changed := i.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(s.stall / 4):
		}
		s.mu.Lock()
	}
}

// extend adds a segment, for which there is room.
func (i *spooled) extend() error {
	f, err := os.CreateTemp(i.spool.dir, "spool-*")
	if err != nil {
		return err
	}
	if err := os.Remove(f.Name()); err != nil {
		return errors.Join(err, f.Close())
	}
	i.files = append(i.files, f)
	i.held += i.segment
	i.spool.used += i.segment
	return nil
}

// releasePassed returns the segments that all readers have passed. One that
// does not move while others wait is left behind.
func (i *spooled) releasePassed() bool {
	lowest := i.size
	for r := range i.readers {
		if len(i.readers) > 1 && r.at < i.size && time.Since(r.moved) > i.spool.stall {
			r.cut = true
			delete(i.readers, r)
			continue
		}
		lowest = min(lowest, r.at)
	}
	before := i.first
	i.release(int(lowest / i.segment))
	return i.first > before
}

// release returns the segments before one.
func (i *spooled) release(before int) {
	for ; i.first < before; i.first++ {
		_ = i.files[i.first].Close() // it has no name, so it is gone
		i.files[i.first] = nil
		give := min(i.segment, i.held)
		i.held -= give
		i.spool.used -= give
	}
}

// releaseUnread returns all of what is complete and has no reader.
func (i *spooled) releaseUnread() {
	if i.done && len(i.readers) == 0 {
		i.release(len(i.files))
	}
}

// retire takes no new readers.
func (i *spooled) retire() {
	if i.spool.items[i.key] == i {
		delete(i.spool.items, i.key)
	}
}

func (i *spooled) notify() {
	close(i.changed)
	i.changed = make(chan struct{})
}

// finish says that all has been written, or why not.
func (i *spooled) finish(err error) {
	s := i.spool
	s.mu.Lock()
	defer s.mu.Unlock()
	i.done, i.err = true, err
	// What the last segment has left is for others.
	unused := min(i.held, int64(len(i.files))*i.segment-i.size)
	i.held -= unused
	s.used -= unused
	if err != nil {
		i.retire()
	}
	if s.items[i.key] != i {
		i.releaseUnread()
	}
	i.notify()
	time.AfterFunc(s.age, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		i.retire()
		i.releaseUnread()
	})
}

// leave takes a reader away.
func (i *spooled) leave(r *reader) {
	s := i.spool
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(i.readers, r)
	i.used = time.Now()
	if len(i.readers) > 0 {
		i.notify() // who writes may wait for this one
		return
	}
	if !i.done {
		i.retire()
		i.cancel()
		i.notify()
		return
	}
	if s.items[i.key] != i {
		i.releaseUnread()
	}
}

// copyTo passes on what is there and what comes.
func (i *spooled) copyTo(ctx context.Context, w io.Writer, r *reader) error {
	buf := make([]byte, 128<<10)
	for {
		n, err := i.next(ctx, r, buf, w)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
			i.moved(r, n)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// next reads on, and waits for more when there is none. What was passed on
// before is flushed by then; before that, the caller can still answer otherwise.
func (i *spooled) next(ctx context.Context, r *reader, buf []byte, w io.Writer) (int, error) {
	s := i.spool
	s.mu.Lock()
	for r.at == i.size && !i.done {
		changed := i.changed
		s.mu.Unlock()
		if r.at > 0 {
			flush(w)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case r.cut:
		return 0, errCutOff
	case r.at == i.size && i.err != nil:
		return 0, i.err
	case r.at == i.size:
		return 0, io.EOF
	}
	number := r.at / i.segment
	from := r.at - number*i.segment
	n := min(int64(len(buf)), i.segment-from, i.size-r.at)
	file := i.files[number]
	s.mu.Unlock() // a segment stays as long as a reader is in it
	read, err := file.ReadAt(buf[:n], from)
	s.mu.Lock()
	if err == io.EOF && int64(read) == n {
		err = nil
	}
	return read, err
}

func (i *spooled) moved(r *reader, n int) {
	s := i.spool
	s.mu.Lock()
	defer s.mu.Unlock()
	r.at += int64(n)
	r.moved = time.Now()
	if s.items[i.key] != i {
		i.notify() // who writes may wait for room
	}
}

func flush(w io.Writer) {
	if f, ok := w.(interface{ Flush() }); ok {
		f.Flush()
	}
}
