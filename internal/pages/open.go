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
	// packsMax is how many archives a node holds open.
	packsMax = 256
	// entriesMax bounds the files that are known of them together, about 300
	// bytes each.
	entriesMax = 500_000
	// copiesMax bounds the bytes of those that are copies on this machine.
	copiesMax = 8 << 30
	// idleTime is how long one is kept that no one asks for: what was removed takes
	// up space as long as it is open.
	idleTime = 30 * time.Minute
	// loadTime is how long a remote store may take for one.
	loadTime = 10 * time.Minute
)

// Content is a version of a site that is open; the caller closes it.
type Content struct {
	*pack.Pack
	Rules redirect.Rules
	of    *opened
	in    *packs
}

// opened is an archive that a user reads, or did so lately.
type opened struct {
	ready  chan struct{} // closed when the rest is set
	pack   *pack.Pack
	rules  redirect.Rules
	err    error
	file   io.Closer
	users  int
	used   int64 // the greater the later
	at     time.Time
	gone   bool // it is no longer kept: who leaves last closes it
	remove string
	copied int64 // its size, if it is a copy
}

// packs are the archives that this node holds open.
type packs struct {
	mu   sync.Mutex
	open map[string]*opened
	uses int64
}

// Open opens a version of a site. NotFound when it was removed meanwhile.
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
		// Others wait for it, so it does not end with the one who came first.
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

// Close lets go of a site.
func (c *Content) Close() { c.in.leave(c.of) }

func (p *packs) leave(o *opened) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o.users--
	o.end()
}

// forget drops an archive that could not be opened, so that it is retried.
func (p *packs) forget(key string, o *opened) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[key] == o {
		delete(p.open, key)
	}
	o.gone = true
}

// end closes an archive that no one needs; the lock is held.
func (o *opened) end() {
	if !o.gone || o.users > 0 || o.file == nil {
		return
	}
	_ = o.file.Close() // it was only read
	o.file = nil
	if o.remove != "" {
		_ = os.Remove(o.remove)
	}
}

// trim lets go of those that were not used for long, and for the longest time
// if there are too many.
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

// load opens the archive: where it lies, or a copy on this machine.
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

// fetch copies an archive to this machine.
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

// ClearCache removes the copies that an earlier process left.
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
