package markup

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"svc/internal/errs"
	"svc/internal/limit"
)

// Deps are what a Renderer needs. All have defaults.
type Deps struct {
	Log    *slog.Logger
	Limits Limits             // of one rendering
	Share  *limit.ShareLimits // of renderings at the same time
	// Images returns a function that returns the URL from which an image is
	// loaded, or an empty text if it becomes a link. Nil does not change images.
	Images func(ctx context.Context) (func(address string) string, error)
}

// Renderer renders texts and source code within bounds. A text that costs too
// much is shown as it was written. It keeps what it has rendered, renders a text
// once for all who ask for it at the same time, and stops when all of them have
// left. Renderings that run at once are shared fairly among callers.
type Renderer struct {
	log     *slog.Logger
	limits  Limits
	share   *limit.Share
	images  func(ctx context.Context) (func(address string) string, error)
	secret  string // of the marks of tasks: see marks
	library library
	idle    sync.Pool // of *session
	cache   cache

	mu      sync.Mutex
	flights map[flightKey]*flight
	runs    atomic.Int64
	costly  atomic.Int64
	steps   atomic.Int64
}

// renderWait is how long a rendering waits for a processor before the text is
// shown plain.
const renderWait = 3 * time.Second

// New returns a Renderer.
func New(d Deps) *Renderer {
	cores := max(2, runtime.GOMAXPROCS(0))
	share := limit.ShareLimits{Total: cores, Reserve: cores / 2, PerUser: max(1, cores/2), PerAddress: max(1, cores/4), Queue: 32, Wait: renderWait}
	if d.Share != nil {
		share = *d.Share
	}
	return &Renderer{
		log:     cmp.Or(d.Log, slog.New(slog.DiscardHandler)),
		limits:  Limits{CPU: cmp.Or(d.Limits.CPU, defaultLimits.CPU), Steps: cmp.Or(d.Limits.Steps, defaultLimits.Steps)},
		share:   limit.NewShare("renderings", share),
		images:  d.Images,
		secret:  rand.Text(),
		flights: map[flightKey]*flight{},
	}
}

// Stats counts the work of a Renderer, for metrics and tests.
type Stats struct {
	Runs   int64 // renderings that were started
	Costly int64 // of these, how many reached their limits
	Steps  int64 // of all of them
	Active int   // renderings that run or wait now
	Held   int   // slots of the share that are taken
}

// Stats returns the counts.
func (r *Renderer) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Stats{Runs: r.runs.Load(), Costly: r.costly.Load(), Steps: r.steps.Load(), Active: len(r.flights), Held: r.share.Held()}
}

// pageCPU is how much processor time the renderings of one page may take
// together: when it is used up, no further one is started for the page.
const pageCPU = 3 * time.Second

// The texts of a page for users are shown whole up to these bounds. What is
// longer is shown in part, as plain text: see cut.
const (
	pageSource = 2 << 20   // bytes of Markdown of all texts
	pageHTML   = 8 << 20   // bytes of HTML of all texts
	longSource = 256 << 10 // bytes of Markdown of a text that can be read elsewhere
	partSource = 16 << 10  // what is shown of a long text
	restSource = 500       // what is shown of a text when the page is full
)

// page is the account of the renderings of one request.
type page struct {
	spent atomic.Int64 // nanoseconds
	busy  atomic.Bool  // a rendering was turned away, so that the next ones are not tried

	bounded      bool // it is a page for users
	source, html atomic.Int64
}

// part is how much of a text of n bytes the page shows as plain text, and 0 when
// it is shown whole. A long text is one that can be read elsewhere, if that is
// known.
func (p *page) part(n int, elsewhere bool) int {
	if !p.bounded {
		return 0
	}
	long := elsewhere && n > longSource
	if long {
		n = partSource
	}
	if p.source.Add(int64(n)) > pageSource || p.html.Load() > pageHTML {
		return restSource
	}
	if long {
		return partSource
	}
	return 0
}

type pageKey struct{}

// WithPage returns a context whose renderings share the limits of one page. It
// decides about cost only, like limit.WithAddress.
func WithPage(ctx context.Context) context.Context {
	if _, ok := ctx.Value(pageKey{}).(*page); ok {
		return ctx
	}
	return context.WithValue(ctx, pageKey{}, &page{})
}

// WithShownPage is WithPage for a page that users look at: its texts are cut
// when they are too long for one.
func WithShownPage(ctx context.Context) context.Context {
	return context.WithValue(ctx, pageKey{}, &page{bounded: true})
}

func pageOf(ctx context.Context) *page {
	if p, ok := ctx.Value(pageKey{}).(*page); ok {
		return p
	}
	return &page{}
}

func (p *page) over() bool { return p.busy.Load() || p.spent.Load() > int64(pageCPU) }

// Degraded reports whether a text of the page of ctx may have been shown plain
// because the page is over its limits or the server is busy: what was drawn with
// it is not to be kept.
func Degraded(ctx context.Context) bool {
	p := pageOf(ctx)
	return p.over() || p.source.Load() > pageSource || p.html.Load() > pageHTML
}

// sum names a rendering by all that it depends on.
type sum [sha256.Size]byte

func sumOf(parts ...string) sum {
	h := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return sum(h.Sum(nil))
}

// flightKey names a rendering that is under way. Callers who have not signed in
// have flights of their own: no one else waits for their share.
type flightKey struct {
	sum
	anonymous bool
}

// flight is a rendering that is under way, and those who wait for it.
type flight struct {
	waiting int
	cancel  context.CancelFunc
	done    chan struct{}

	result
	busy bool
	cost time.Duration
	err  error
}

// result is the result of a rendering. Ok is false if the text is shown as plain
// text.
type result struct {
	html string
	ok   bool
}

// render returns the result of a rendering: from the cache, or from work. The
// error is that of the context, or of work.
func (r *Renderer) render(ctx context.Context, of sum, work func(b *budget) (string, error)) (result, error) {
	if found, ok := r.cache.get(of); ok {
		return found, nil
	}
	page := pageOf(ctx)
	if page.over() {
		return result{}, nil
	}
	f, leave := r.join(ctx, of, work)
	defer leave()
	select {
	case <-f.done:
	case <-ctx.Done():
		return result{}, ctx.Err()
	}
	page.spent.Add(int64(f.cost))
	if f.busy {
		page.busy.Store(true)
	}
	return f.result, f.err
}

// join starts a flight, or takes part in one. Anyone who joins must leave; with
// the last one the work ends.
func (r *Renderer) join(ctx context.Context, of sum, work func(b *budget) (string, error)) (*flight, func()) {
	key := flightKey{of, limit.CallerOf(ctx).Anonymous()}
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.flights[key]
	if f == nil {
		f = &flight{done: make(chan struct{})}
		// The work goes on when the first one leaves and others wait.
		var own context.Context
		own, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
		r.flights[key] = f
		go r.fly(own, f, key, work)
	}
	f.waiting++
	return f, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if f.waiting--; f.waiting == 0 {
			f.cancel()
			if r.flights[key] == f {
				delete(r.flights, key)
			}
		}
	}
}

func (r *Renderer) fly(ctx context.Context, f *flight, key flightKey, work func(b *budget) (string, error)) {
	defer close(f.done)
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("rendering panicked", "panic", p, "stack", string(debug.Stack()))
			r.cache.put(key.sum, result{}) // shown plain
		}
	}()
	release, err := r.share.Acquire(ctx)
	if errs.Is(err, errs.KindUnavailable) {
		f.busy = true
		return
	} else if err != nil {
		f.err = err
		return
	}
	defer release()
	if found, ok := r.cache.get(key.sum); ok { // rendered meanwhile
		f.result = found
		return
	}
	r.runs.Add(1)
	var html string
	f.cost, err = spending(ctx, r.limits, func(b *budget) (err error) {
		defer func() { r.steps.Add(int64(b.steps)) }()
		html, err = work(b)
		return err
	})
	switch {
	case errors.Is(err, errCostly):
		r.costly.Add(1)
	case err != nil:
		f.err = err
		return
	default:
		f.result = result{html, true}
	}
	r.cache.put(key.sum, f.result)
}

// Source is code to highlight.
type Source struct {
	Name     string // of its file
	Language string // if it is known
	Text     string
	ID       string // of its content, if it has one
}

// Lines highlights code and gives its lines as HTML. Code that costs too much is
// plain.
func (r *Renderer) Lines(ctx context.Context, s Source) ([]string, error) {
	lexer := lexerFor(s.Name, s.Language, s.Text)
	if lexer == nil || s.Text == "" {
		return plainLines(s.Text), nil
	}
	of := sumOf("lines", lexer.Config().Name, s.ID, cmp.Or(s.ID, s.Text))
	found, err := r.render(ctx, of, func(b *budget) (string, error) {
		use := r.session()
		defer r.idle.Put(use)
		tokens, ok := use.highlight(b, lexer, s.Text)
		if !ok {
			return "", errCostly
		}
		return strings.Join(htmlLines(tokens), "\n"), nil
	})
	if err != nil {
		return nil, err
	}
	if !found.ok {
		return plainLines(s.Text), nil
	}
	return strings.Split(found.html, "\n"), nil
}

func (r *Renderer) session() *session {
	if s, ok := r.idle.Get().(*session); ok {
		return s
	}
	return r.library.session()
}

// cache keeps results up to a number of bytes. It has two halves: what is used is
// moved to the young one, and when that is full it becomes the old one.
type cache struct {
	mu         sync.Mutex
	young, old map[sum]result
	size       int // of the young half
}

// maxCached is how many bytes a half has.
const maxCached = 32 << 20

func (c *cache) get(key sum) (result, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.young[key]; ok {
		return r, true
	}
	r, ok := c.old[key]
	if ok {
		c.add(key, r)
	}
	return r, ok
}

func (c *cache) put(key sum, r result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(key, r)
}

func (c *cache) add(key sum, r result) {
	if c.young == nil || c.size > maxCached {
		c.young, c.old, c.size = map[sum]result{}, c.young, 0
	}
	if _, ok := c.young[key]; !ok {
		c.size += len(r.html) + 200
	}
	c.young[key] = r
}
