package bucket

import (
	"bytes"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
)

// Refresh implements git.Backend. All callers of one repository wait for the same
// fetch.
func (s *Storage) Refresh(ctx context.Context, dir string) (bool, error) {
	row, err := s.find(ctx, dir)
	if err != nil {
		return false, err
	}
	e := s.entry(dir)
	s.use(e)
	s.mu.Lock()
	current, stat := e.synced.has(row.version()), e.stat
	s.mu.Unlock()
	if current && s.intact(dir, stat) {
		s.count(func(c *Stats) { c.Hits++ })
		s.measureIfDue(dir, e)
		return false, nil
	}
	// A fetch that began before the row was read may be older than the row.
	changed := false
	for range 3 {
		f := s.fly(dir, e)
		select {
		case <-f.done:
		case <-ctx.Done():
			return changed, ctx.Err()
		}
		if changed = changed || f.changed; f.err != nil {
			return changed, fmt.Errorf("fetch repository: %w", f.err)
		}
		s.mu.Lock()
		current = e.synced.has(row.version())
		s.mu.Unlock()
		if current {
			return changed, nil
		}
	}
	return changed, fmt.Errorf("fetch repository: it was removed from the cache meanwhile: %w", git.ErrBusy)
}

const (
	// maxFetching is the maximum number of concurrent downloads of packs up to largeFetch,
	// and of larger ones.
	maxFetching = 8
	// largeFetch is the size from which the download of a pack must not delay those of
	// smaller packs.
	largeFetch = 16 << 20
	// maxFetch is the time limit of a fetch.
	maxFetch = 2 * time.Hour
	// maxStall is the maximum wait for the next byte of a fetch.
	maxStall = time.Minute
)

// flight is a fetch. It does not end with the request that started it, because other requests
// wait for it too, and a large repository takes longer than clients wait.
type flight struct {
	done    chan struct{}
	changed bool
	err     error
}

// wait waits for the end of the fetch.
func (f *flight) wait(ctx context.Context) error {
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fly returns the fetch of a directory that is in progress, or starts one.
func (s *Storage) fly(dir string, e *entry) *flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.flight != nil {
		return e.flight
	}
	f := &flight{done: make(chan struct{})}
	if f.err = s.life.Err(); f.err != nil {
		close(f.done)
		return f
	}
	e.flight = f
	s.running.Go(func() {
		ctx, cancel := context.WithTimeout(s.life, maxFetch)
		defer cancel()
		f.changed, f.err = s.bring(ctx, dir, e)
		s.mu.Lock()
		e.flight = nil
		s.mu.Unlock()
		close(f.done)
		s.follow(ctx, dir, e)
		s.evict(ctx)
	})
	return f
}

// bring updates a directory. Only downloads are limited: most updates need only the
// database, and must not wait for an object store that is slow or away.
func (s *Storage) bring(ctx context.Context, dir string, e *entry) (bool, error) {
	if err := lock(ctx, e); err != nil {
		return false, err
	}
	defer e.mu.Unlock()
	changed, err := s.sync(ctx, dir, e)
	if changed {
		e.changes.Add(1)
	}
	return changed, err
}

// lock locks an entry, unless ctx ends before.
func lock(ctx context.Context, e *entry) error {
	if e.mu.TryLock() {
		return nil
	}
	locked := make(chan struct{})
	go func() {
		e.mu.Lock()
		select {
		case locked <- struct{}{}:
		case <-ctx.Done():
			e.mu.Unlock()
		}
	}()
	select {
	case <-locked:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errReplaced means that a pack was replaced since the list was read.
var errReplaced = errors.New("a pack was replaced")

// sync updates a directory to the current version. The caller holds the lock of the entry. It
// tries again if packs are replaced meanwhile, or the directory is deleted.
func (s *Storage) sync(ctx context.Context, dir string, e *entry) (changed bool, err error) {
	for range 5 {
		changed, err = s.syncOnce(ctx, dir, e)
		if !errors.Is(err, errReplaced) && !errors.Is(err, fs.ErrNotExist) {
			return changed, err
		}
	}
	return changed, err
}

func (s *Storage) syncOnce(ctx context.Context, dir string, e *entry) (bool, error) {
	row, err := s.find(ctx, dir)
	if err != nil {
		return false, err
	}
	now := row.version()
	if e.synced.has(now) && s.complete(dir, e) && !arrived(dir, e.later) {
		return false, nil // another caller was faster, or a push changed the directory
	}
	// The packs are read after the refs, so that no object of a ref is missing.
	v, err := s.snapshot(ctx, dir, row)
	if err != nil {
		return false, err
	}
	packs, err := findPacks(ctx, s.DB, row.id)
	if err != nil {
		return false, fmt.Errorf("read packs: %w", err)
	}
	if _, ok := s.layout(dir); !ok || e.synced.id != 0 && e.synced.id != row.id {
		if err := s.makeDir(dir, e, row.head); err != nil {
			return false, err
		}
	}
	needed, later := neededNow(dir, e, row, packs)
	for _, p := range needed {
		if hasPack(dir, p) && (e.synced.id == row.id || sound(dir, p)) {
			continue
		}
		if err := s.fetch(ctx, dir, p); err != nil {
			return true, err
		}
	}
	if err := s.writeRefs(dir, row.head, v); err != nil {
		return true, err
	}
	s.clean(dir, e, append(slices.Clip(needed), later...))
	stat, err := os.Stat(filepath.Join(dir, "objects", "pack"))
	if err != nil {
		return true, err
	}
	stat = s.steady(stat)
	for _, p := range needed { // the directory may be deleted at any time
		if !hasPack(dir, p) {
			return true, fmt.Errorf("%w: pack %s disappeared from the cache", errReplaced, p.hash)
		}
	}
	if s.measureDue(e) {
		s.measureLoose(dir, e)
	}
	e.size.Store(packBytes(dir) + e.loose.Load())
	s.mu.Lock()
	e.synced, e.packs, e.later, e.stat = now, needed, later, stat
	s.mu.Unlock()
	return true, nil
}

// makeDir replaces the content of a directory by an empty repository.
func (s *Storage) makeDir(dir string, e *entry, head string) error {
	if err := s.drop(dir, e); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return err
	}
	draft, err := s.temp(".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(draft)
	if err := git.Layout(draft, head); err != nil {
		return err
	}
	return os.Rename(draft, dir)
}

// writeRefs writes the refs for git. It is not durable, because it is a cache.
func (s *Storage) writeRefs(dir, head string, v *snapshot) error {
	list := make([]git.Ref, len(v.refs))
	for i, r := range v.refs {
		list[i] = git.Ref{Name: r.name, ID: r.target, Target: r.target}
		if r.peeled != "" {
			list[i].Tag, list[i].Target = r.target, r.peeled
		}
	}
	if err := replace(filepath.Join(dir, "packed-refs"), git.PackedRefs(list)); err != nil {
		return err
	}
	return replace(filepath.Join(dir, "HEAD"), "ref: "+git.Heads+head+"\n")
}

// replace replaces the content of a small file, if it differs.
func replace(path, content string) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == content {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".svc-")
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, content)
	if err := errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	return os.Rename(f.Name(), path)
}

// leftoverAge is the age at which files are removed that belong to no pack of the repository.
// A push adds its pack before it updates the refs.
const leftoverAge = 6 * time.Hour

// clean removes packs that the repository no longer has, whose objects are in other packs,
// and files that pushes and killed processes left behind.
func (s *Storage) clean(dir string, e *entry, now []packRow) {
	listed := map[string]bool{}
	for _, p := range now {
		listed["pack-"+p.hash] = true
	}
	replaced := map[string]bool{}
	for _, p := range e.packs {
		replaced["pack-"+p.hash] = !listed["pack-"+p.hash]
	}
	packs := filepath.Join(dir, "objects", "pack")
	files, _ := os.ReadDir(packs) // the next use tries again
	for _, f := range files {
		base := strings.TrimSuffix(f.Name(), filepath.Ext(f.Name()))
		info, err := f.Info()
		if err != nil || listed[base] || !replaced[base] && s.Now().Sub(info.ModTime()) < leftoverAge {
			continue
		}
		_ = os.Remove(filepath.Join(packs, f.Name())) // a leftover does no harm
	}
}

// fetch downloads the files of a pack.
func (s *Storage) fetch(ctx context.Context, dir string, p packRow) error {
	if p.inRow {
		pack, index, err := findContent(ctx, s.DB, p.id)
		if errors.Is(err, db.ErrNoRows) {
			return errReplaced
		}
		if err != nil {
			return err
		}
		if err := s.put(dir, p.hash, ".pack", bytes.NewReader(pack), p.size); err != nil {
			return err
		}
		return s.put(dir, p.hash, ".idx", bytes.NewReader(index), p.idx)
	}
	slots := s.fetching
	if p.size > largeFetch {
		slots = s.fetchingLarge
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, part := range p.parts() {
		err := s.download(ctx, dir, p, part)
		if errs.Is(err, errs.KindNotFound) {
			return fmt.Errorf("%w, or it is missing in the object storage: %s%s", errReplaced, p.object, part.suffix)
		}
		if err != nil {
			return fmt.Errorf("get %s%s: %w", p.object, part.suffix, err)
		}
	}
	s.count(func(c *Stats) { c.Fetches++; c.FetchedBytes += p.total() })
	if p.size >= graphSize {
		s.graphIsOld(dir)
	}
	return nil
}

// download downloads a file of a pack.
func (s *Storage) download(ctx context.Context, dir string, p packRow, of part) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stall := time.AfterFunc(maxStall, cancel)
	defer stall.Stop()
	in, err := s.Store.GetRange(ctx, p.object+of.suffix, 0, -1)
	if err != nil {
		return err
	}
	defer in.Close()
	body := &body{in: in, stall: stall}
	err = s.put(dir, p.hash, of.suffix, body, of.size)
	if body.err != nil {
		return errs.Unavailable("The object storage does not answer.").Because(body.err)
	}
	return err
}

// body is the content of an object that is being downloaded.
type body struct {
	in    io.Reader
	stall *time.Timer // cancels the download
	err   error       // of the object store
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	b.stall.Reset(maxStall)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

// put writes a file of a pack, and verifies the checksum at its end.
func (s *Storage) put(dir, hash, suffix string, in io.Reader, size int64) error {
	packs := filepath.Join(dir, "objects", "pack")
	f, err := os.CreateTemp(packs, "tmp_pack_")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // a no-op after the rename
	sum := newTrailer()
	n, err := io.Copy(io.MultiWriter(f, sum), in)
	if err := errors.Join(err, f.Chmod(0o440), f.Sync(), f.Close()); err != nil {
		return err
	}
	if n != size || !sum.ok() || suffix == ".pack" && fmt.Sprintf("%x", sum.last) != hash {
		return fmt.Errorf("pack-%s%s has %d bytes or another content than was stored: %w", hash, suffix, n, git.ErrCorrupt)
	}
	return os.Rename(f.Name(), packBase(dir, hash)+suffix)
}

// trailer verifies data that ends with the SHA-1 of the rest.
type trailer struct {
	sum  hash.Hash
	last []byte // the last bytes, up to 20, which are not hashed yet
}

func newTrailer() *trailer { return &trailer{sum: sha1.New()} }

// Write implements io.Writer.
func (t *trailer) Write(b []byte) (int, error) {
	if len(b) >= sha1.Size {
		t.sum.Write(t.last)
		t.sum.Write(b[:len(b)-sha1.Size])
		t.last = append(t.last[:0], b[len(b)-sha1.Size:]...)
		return len(b), nil
	}
	all := append(t.last, b...)
	cut := max(0, len(all)-sha1.Size)
	t.sum.Write(all[:cut])
	t.last = append([]byte(nil), all[cut:]...)
	return len(b), nil
}

func (t *trailer) ok() bool { return bytes.Equal(t.sum.Sum(nil), t.last) }

// sound reports whether the ends of a pack and its index match, for files of an earlier
// process: after a power failure they may have any content.
func sound(dir string, p packRow) bool {
	base := packBase(dir, p.hash)
	return strings.EqualFold(endOf(base+".pack", p.size, sha1.Size), p.hash) && strings.EqualFold(endOf(base+".idx", p.idx-sha1.Size, sha1.Size), p.hash)
}

// endOf returns the n bytes before an offset of a file, in hex.
func endOf(path string, end int64, n int) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, n)
	if _, err := f.ReadAt(b, end-int64(n)); err != nil {
		return ""
	}
	return fmt.Sprintf("%x", b)
}
