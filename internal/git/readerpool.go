package git

import (
	"context"
	"sync"
	"time"

	"svc/internal/limit"
)

// readerPool holds the readers of all repositories, at most as many as it has
// places. One that is idle gives way to one that is needed.
type readerPool struct {
	start func(Repo) (*reader, error)
	share *limit.Share // one slot for each reader in use
	most  int
	idle  time.Duration

	mu      sync.Mutex
	resting []*reader // the one that rests longest first
	inUse   int
	epoch   int // counts the calls of forget
	closed  bool
	sweep   *time.Timer
}

func newReaderPool(share *limit.Share, most int, idle time.Duration, start func(Repo) (*reader, error)) *readerPool {
	return &readerPool{start: start, share: share, most: most, idle: idle}
}

// take returns a reader of r to its caller alone, who gives or drops it.
func (p *readerPool) take(ctx context.Context, r Repo) (*reader, error) {
	release, err := acquire(ctx, p.share)
	if err != nil {
		return nil, err
	}
	found, over := p.claim(r.scope())
	if over != nil {
		over.end()
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

// claim returns a resting reader of the scope or, when a new one is needed and
// there are too many, one that has to end.
func (p *readerPool) claim(scope string) (found, over *reader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inUse++
	// The one that rested last is the one whose memory is warmest.
	for i := len(p.resting) - 1; i >= 0; i-- {
		if p.resting[i].scope == scope {
			found = p.resting[i]
			p.resting = append(p.resting[:i], p.resting[i+1:]...)
			return found, nil
		}
	}
	if p.inUse+len(p.resting) > p.most {
		over = p.resting[0]
		p.resting = p.resting[1:]
	}
	return nil, over
}

func (p *readerPool) leave(release func()) {
	p.mu.Lock()
	p.inUse--
	p.mu.Unlock()
	release()
}

// give returns a reader that has answered all it was asked.
func (p *readerPool) give(r *reader) {
	release := r.release // the next holder may have the reader before the slot is free
	p.mu.Lock()
	r.spent, r.since = true, time.Now()
	// Whether it was this reader's repository that was forgotten meanwhile is
	// not worth knowing: a new one costs little.
	over := p.closed || r.epoch != p.epoch
	if !over {
		p.resting = append(p.resting, r)
		if p.sweep == nil {
			p.sweep = time.AfterFunc(p.idle, p.tidy)
		}
	}
	p.inUse--
	p.mu.Unlock()
	release()
	if over {
		r.end()
	}
}

// drop ends a reader that cannot be trusted and gives what it said last.
func (p *readerPool) drop(r *reader) string {
	said := r.end()
	p.leave(r.release)
	return said
}

// tidy ends the readers that rest too long.
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

// forget ends the resting readers of a scope, and those at work when they are
// given back: they may have files open that are gone.
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

func (p *readerPool) remove(which func(*reader) bool) {
	p.mu.Lock()
	var gone, kept []*reader
	for _, r := range p.resting {
		if which(r) {
			gone = append(gone, r)
		} else {
			kept = append(kept, r)
		}
	}
	p.resting = kept
	p.mu.Unlock()
	for _, r := range gone {
		r.end()
	}
}
