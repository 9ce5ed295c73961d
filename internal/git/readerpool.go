package git

import (
	"context"
	"sync"
	"time"

	"svc/internal/limit"
)

// readerPool holds the readers of all repositories, up to a limit. The longest
// idle reader is stopped if another one is needed.
type readerPool struct {
	start func(Repo) (*reader, error)
	share *limit.Share // one slot for each reader in use
	most  int
	idle  time.Duration

	mu      sync.Mutex
	resting []*reader // idle readers, the longest idle first
	inUse   int
	epoch   int // incremented by forget
	closed  bool
	sweep   *time.Timer
}

func newReaderPool(share *limit.Share, most int, idle time.Duration, start func(Repo) (*reader, error)) *readerPool {
	return &readerPool{start: start, share: share, most: most, idle: idle}
}

// take returns a reader of r for exclusive use. The caller must call give or drop.
func (p *readerPool) take(ctx context.Context, r Repo) (*reader, error) {
	release, err := acquire(ctx, p.share)
	if err != nil {
		return nil, err
	}
	found, excess := p.claim(r.scope())
	if excess != nil {
		excess.end()
	}
	if found != nil {
		found.release = release
		return found, nil
	}
	p.mu.Lock()
	epoch := p.epoch
	p.mu.Unlock()
	started, err := p.start(r)
	if err != nil {
		p.leave(release)
		return nil, err
	}
	started.epoch, started.release = epoch, release
	return started, nil
}

// claim returns an idle reader of the scope. If a new one is needed and the limit
// is reached, it returns a reader to stop.
func (p *readerPool) claim(scope string) (found, excess *reader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inUse++
	// The most recently used reader has the warmest caches.
	for i := len(p.resting) - 1; i >= 0; i-- {
		if p.resting[i].scope == scope {
			found = p.resting[i]
			p.resting = append(p.resting[:i], p.resting[i+1:]...)
			return found, nil
		}
	}
	if p.inUse+len(p.resting) > p.most {
		excess = p.resting[0]
		p.resting = p.resting[1:]
	}
	return nil, excess
}

func (p *readerPool) leave(release func()) {
	p.mu.Lock()
	p.inUse--
	p.mu.Unlock()
	release()
}

// give returns a reader to the pool after complete answers.
func (p *readerPool) give(r *reader) {
	release := r.release // the next caller may take the reader before the slot is released
	p.mu.Lock()
	r.reused, r.since = true, time.Now()
	// Another repository may have been forgotten, but starting a new reader is cheap.
	expired := p.closed || r.epoch != p.epoch
	if !expired {
		p.resting = append(p.resting, r)
		if p.sweep == nil {
			p.sweep = time.AfterFunc(p.idle, p.tidy)
		}
	}
	p.inUse--
	p.mu.Unlock()
	release()
	if expired {
		r.end()
	}
}

// drop stops a reader that must not be reused and returns the end of its stderr.
func (p *readerPool) drop(r *reader) string {
	stderr := r.end()
	p.leave(r.release)
	return stderr
}

// tidy stops the readers that have been idle for too long.
func (p *readerPool) tidy() {
	p.mu.Lock()
	n := 0
	for n < len(p.resting) && time.Since(p.resting[n].since) >= p.idle {
		n++
	}
	old := p.resting[:n:n]
	p.resting = append([]*reader(nil), p.resting[n:]...)
	p.sweep = nil
	if len(p.resting) > 0 {
		p.sweep = time.AfterFunc(p.idle-time.Since(p.resting[0].since)+time.Millisecond, p.tidy)
	}
	p.mu.Unlock()
	for _, r := range old {
		r.end()
	}
}

// forget stops the idle readers of a scope, and those in use when they are
// returned, because they may have removed files open.
func (p *readerPool) forget(scope string) {
	p.mu.Lock()
	p.epoch++
	for _, r := range p.resting {
		r.epoch = p.epoch
	}
	p.mu.Unlock()
	p.remove(func(r *reader) bool { return r.scope == scope })
}

func (p *readerPool) close() {
	p.mu.Lock()
	p.closed = true
	if p.sweep != nil {
		p.sweep.Stop()
	}
	p.mu.Unlock()
	p.remove(func(*reader) bool { return true })
}

func (p *readerPool) remove(match func(*reader) bool) {
	p.mu.Lock()
	var removed, kept []*reader
	for _, r := range p.resting {
		if match(r) {
			removed = append(removed, r)
		} else {
			kept = append(kept, r)
		}
	}
	p.resting = kept
	p.mu.Unlock()
	for _, r := range removed {
		r.end()
	}
}
