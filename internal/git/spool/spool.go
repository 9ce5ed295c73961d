// Package spool lets several clients share generated packs and archives.
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

// Spool generates expensive output, packs and archives, once for all clients that request the
// same. Output is written to disk while readers follow at their own pace; complete output is
// kept for a while for later clients. Output for a single client uses the spool as well, so
// that the producing process ends as early as possible, however slowly the client reads.
//
// The disk space is limited. Items without readers are removed first, the least recently used
// one first. If that is not enough, an item that exceeds the space loses its beginning once
// all readers have passed it, and accepts no new readers.
//
// Files have no names, so a crash leaves nothing behind.
type Spool struct {
	dir    string
	budget int64
	age    time.Duration // how long a complete item is kept
	stall  time.Duration // how long a reader may block others

	mu    sync.Mutex
	used  int64
	items map[string]*spooled // items that accept new readers, by key
}

// spooled is an item that is being produced or is complete. It is protected by the lock of
// the spool.
type spooled struct {
	spool   *Spool
	key     string
	scope   string
	segment int64      // bytes of a full segment
	files   []*os.File // segments; nil if released
	first   int        // the first segment that is not released
	size    int64      // bytes written
	held    int64      // bytes of the budget
	readers map[*reader]bool
	// anonymous reports that the caller who started it was not signed in.
	anonymous bool
	cancel    context.CancelFunc // stops the producer
	done      bool
	err       error
	changed   chan struct{} // closed at the next change
	used      time.Time
}

// reader is a reader of an item.
type reader struct {
	at    int64
	moved time.Time
	cut   bool // it blocked others for too long
}

var (
	errCutOff = errors.New("read too slowly")
	errUnread = errors.New("it has no readers left")
)

// New returns a spool, or nil, which shares nothing, if there is no directory.
func New(dir string, budget int64, age time.Duration) (*Spool, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a place for packs: %w", err)
	}
	// A crash may have left files that still had names.
	left, err := filepath.Glob(filepath.Join(dir, "spool-*"))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return nil, fmt.Errorf("tidy the place for packs: %w", err)
	}
	return &Spool{dir: dir, budget: budget, age: age, stall: time.Minute, items: map[string]*spooled{}}, nil
}

// Serve writes the output of produce to w. produce is called once for all concurrent requests
// with the same key; output with an empty key is not shared. If the spool has no space,
// produce writes to w directly. If w fails or ctx ends, other readers are not affected;
// produce is stopped after its last reader has left. An error of produce is returned to all.
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

// join returns the item of the key, or makes room for a new one; nil if there is no space.
// Signed-in and anonymous callers do not share an item before its process has started,
// because signed-in callers can have slots that anonymous callers cannot.
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

// room removes items without readers until there is space for n more bytes.
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

// Forget removes the items of a repository. Current readers can continue.
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

// Close stops all producers and removes all items.
func (s *Spool) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.budget = 0 // no new items
	for _, item := range s.items {
		item.cancel()
		item.retire()
		item.releaseUnread()
	}
}

// Usage returns the number of bytes on disk, and of items that accept new readers.
func (s *Spool) Usage() (used int64, items int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, len(s.items)
}

// Write appends to an item. It fails if the item has no readers left.
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

// end returns the position for the next write, in a new segment if needed. It waits for
// readers if there is no space.
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

// extend adds a segment. The caller has checked that there is space.
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

// releasePassed releases the segments that all readers have passed. A reader that makes no
// progress while others wait is cut off.
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

// release releases the segments before the given one.
func (i *spooled) release(before int) {
	for ; i.first < before; i.first++ {
		_ = i.files[i.first].Close() // without a name, this deletes it
		i.files[i.first] = nil
		give := min(i.segment, i.held)
		i.held -= give
		i.spool.used -= give
	}
}

// releaseUnread releases a complete item without readers.
func (i *spooled) releaseUnread() {
	if i.done && len(i.readers) == 0 {
		i.release(len(i.files))
	}
}

// retire stops accepting new readers.
func (i *spooled) retire() {
	if i.spool.items[i.key] == i {
		delete(i.spool.items, i.key)
	}
}

func (i *spooled) notify() {
	close(i.changed)
	i.changed = make(chan struct{})
}

// finish records that the item is complete, or its error.
func (i *spooled) finish(err error) {
	s := i.spool
	s.mu.Lock()
	defer s.mu.Unlock()
	i.done, i.err = true, err
	// The unused rest of the last segment is returned to the budget.
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

// leave removes a reader.
func (i *spooled) leave(r *reader) {
	s := i.spool
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(i.readers, r)
	i.used = time.Now()
	if len(i.readers) > 0 {
		i.notify() // the producer may wait for this reader
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

// copyTo copies an item to w, and follows it until it is complete.
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

// next reads the next bytes, and waits for more if there are none. It flushes earlier output
// before it waits; until the first flush, the caller can still send another response.
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
	s.mu.Unlock() // a segment with a reader is not released
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
		i.notify() // the producer may wait for space
	}
}

func flush(w io.Writer) {
	if f, ok := w.(interface{ Flush() }); ok {
		f.Flush()
	}
}
