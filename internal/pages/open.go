package pages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"svc/internal/pages/pack"
	"svc/internal/pages/redirect"
	"svc/internal/secret"
)

const (
	// packsMax is the maximum number of archives that a node keeps open.
	packsMax = 256
	// entriesMax is the maximum number of files in the open archives, at about
	// 300 bytes of memory each.
	entriesMax = 500_000
	// copiesMax is the maximum size of the local copies of archives.
	copiesMax = 8 << 30
	// idleTime is how long an unused archive is kept open. A deleted archive
	// takes up disk space while it is open.
	idleTime = 30 * time.Minute
	// loadTime is the timeout for fetching an archive from object storage.
	loadTime = 10 * time.Minute
)

// Content is an open version of a site. The caller must close it.
type Content struct {
	*pack.Pack
	Rules redirect.Rules
	of    *opened
	in    *packs
}

// opened is an archive that is in use or was used recently.
type opened struct {
	ready  chan struct{} // closed when the other fields are set
	pack   *pack.Pack
	rules  redirect.Rules
	err    error
	file   io.Closer
	users  int
	used   int64 // sequence number of the last use
	at     time.Time
	gone   bool // removed from packs; the last request that uses it closes it
	remove string
	copied int64 // size of the local copy, if there is one
}

// packs is the set of open archives of this node.
type packs struct {
	mu   sync.Mutex
	open map[string]*opened
	uses int64
}

// Open opens a version of a site. It returns NotFound if it was deleted in the
// meantime.
func (s *Service) Open(ctx context.Context, v *Version) (*Content, error) {
	p := &s.packs
	p.mu.Lock()
	o := p.open[v.blob]
	fresh := o == nil
	if fresh {
		o = &opened{ready: make(chan struct{})}
		p.open[v.blob] = o
	}
	o.users++
	p.uses++
	o.used, o.at = p.uses, s.Now()
	p.mu.Unlock()
	if fresh {
		// Other requests wait for the archive, so loading it must not end with
		// the first request.
		loading, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTime)
		s.load(loading, o, v.blob)
		cancel()
		close(o.ready)
		p.trim(v.blob, s.Now())
	}
	select {
	case <-o.ready:
	case <-ctx.Done():
		p.leave(o)
		return nil, ctx.Err()
	}
	if o.err != nil {
		p.forget(v.blob, o)
		p.leave(o)
		return nil, fmt.Errorf("open site: %w", o.err)
	}
	return &Content{Pack: o.pack, Rules: o.rules, of: o, in: p}, nil
}

// Close releases the archive.
func (c *Content) Close() { c.in.leave(c.of) }

func (p *packs) leave(o *opened) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o.users--
	o.end()
}

// forget removes an archive that could not be opened, so that opening it is retried.
func (p *packs) forget(key string, o *opened) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[key] == o {
		delete(p.open, key)
	}
	o.gone = true
}

// end closes an archive that is no longer used. The caller holds the lock.
func (o *opened) end() {
	if !o.gone || o.users > 0 || o.file == nil {
		return
	}
	_ = o.file.Close() // opened read-only
	o.file = nil
	if o.remove != "" {
		_ = os.Remove(o.remove)
	}
}

// trim closes archives that were not used for idleTime, and the least recently used
// ones if there are too many. It does not close the archive with the key but.
func (p *packs) trim(but string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		entries, copied := 0, int64(0)
		oldest := ""
		for key, o := range p.open {
			select {
			case <-o.ready:
			default:
				continue
			}
			if o.pack != nil {
				entries += o.pack.Len()
				copied += o.copied
			}
			if key != but && (oldest == "" || o.used < p.open[oldest].used) {
				oldest = key
			}
		}
		if oldest == "" {
			return
		}
		o := p.open[oldest]
		if len(p.open) <= packsMax && entries <= entriesMax && copied <= copiesMax && now.Sub(o.at) < idleTime {
			return
		}
		delete(p.open, oldest)
		o.gone = true
		o.end()
	}
}

// load opens an archive: directly in a local store, else as a local copy.
func (s *Service) load(ctx context.Context, o *opened, key string) {
	object, err := s.Blobs.Get(ctx, key)
	if err != nil {
		o.err = err
		return
	}
	var in io.ReaderAt
	if at, ok := object.ReadSeekCloser.(io.ReaderAt); ok {
		in, o.file = at, object
	} else {
		var file *os.File
		file, err = s.fetch(object, key)
		if err = errors.Join(err, object.Close()); err != nil {
			o.err = err
			return
		}
		in, o.file, o.remove, o.copied = file, file, file.Name(), object.Size
	}
	if o.pack, err = pack.Open(in, object.Size); err == nil {
		o.rules, err = readRules(o.pack)
	}
	if err != nil {
		o.err = errors.Join(err, o.file.Close())
		if o.file = nil; o.remove != "" {
			o.err = errors.Join(o.err, os.Remove(o.remove))
		}
	}
}

// fetch copies an archive to a local file.
func (s *Service) fetch(from io.Reader, key string) (*os.File, error) {
	if err := os.MkdirAll(s.CacheDir, 0o700); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(s.CacheDir, secret.Digest(key)[:16]+"-*.zip")
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(file, from); err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	return file, nil
}

// ClearCache removes the local copies of previous processes.
func (s *Service) ClearCache() error { return os.RemoveAll(filepath.Clean(s.CacheDir)) }

func readRules(p *pack.Pack) (redirect.Rules, error) {
	f := p.Find("_redirects")
	if f == nil {
		return nil, nil
	}
	text, err := io.ReadAll(io.LimitReader(p.Read(f.Plain), redirect.MaxSize+1))
	if err != nil {
		return nil, err
	}
	rules, _ := redirect.Parse(text)
	return rules, nil
}
