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

// Deps are the dependencies of a Renderer. All have defaults.
type Deps struct {
	Log    *slog.Logger
	Limits Limits             // of one rendering
	Share  *limit.ShareLimits // of concurrent renderings
	// Images returns a function that returns the URL from which an image is
	// loaded, or "" to replace the image with a link. Nil does not change images.
	Images func(ctx context.Context) (func(address string) string, error)
}

// Renderer renders texts and source code within limits. A text that is too expensive
// is shown as plain text. Results are cached. Concurrent requests for the same text
// share one rendering, which is canceled when all of them are canceled. The number
// of concurrent renderings is limited, also per caller.
type Renderer struct {
	log     *slog.Logger
	limits  Limits
	share   *limit.Share
	images  func(ctx context.Context) (func(address string) string, error)
	secret  string // of the placeholders of tasks and suggestions: see marks, slots
	library library
	idle    sync.Pool // of *session
	cache   cache

	mu      sync.Mutex
	flights map[flightKey]*flight
	runs    atomic.Int64
	costly  atomic.Int64
	steps   atomic.Int64
}

// renderWait is how long a rendering waits for a free slot before the text is shown
// as plain text.
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
	Active int   // renderings that are running or waiting
	Held   int   // slots of the share that are in use
}

// Stats returns the counts.
func (r *Renderer) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Stats{Runs: r.runs.Load(), Costly: r.costly.Load(), Steps: r.steps.Load(), Active: len(r.flights), Held: r.share.Held()}
}

// pageCPU is how much processor time all renderings of one page may take. When it is
// used up, no further rendering is started for the page.
const pageCPU = 3 * time.Second

// Texts on an HTML page are rendered completely up to these limits. Above them, only
// their beginning is shown, as plain text: see cut.
const (
	pageSource = 2 << 20   // bytes of Markdown of all texts
	pageHTML   = 8 << 20   // bytes of HTML of all texts
	longSource = 256 << 10 // bytes of Markdown of one text, if the page links the raw text
	partSource = 16 << 10  // bytes that are shown of a long text
	restSource = 500       // bytes that are shown of a text when a limit of the page is reached
)

// page counts the cost of all renderings of one request.
type page struct {
	spent atomic.Int64 // nanoseconds
	busy  atomic.Bool  // a rendering was rejected, so no further one is tried

	bounded      bool // it is an HTML page: texts are cut
	source, html atomic.Int64
}

// part returns how many bytes of a text of n bytes the page shows as plain text, or
// 0 if the text is rendered completely. elsewhere means that the page links the raw
// text.
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

// WithPage returns a context whose renderings share the limits of one page. Like
// limit.WithAddress, it affects only cost, not permissions.
func WithPage(ctx context.Context) context.Context {
	if _, ok := ctx.Value(pageKey{}).(*page); ok {
		return ctx
	}
	return context.WithValue(ctx, pageKey{}, &page{})
}

// WithShownPage is like WithPage for an HTML page: texts that are too long for it
// are cut.
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

// Degraded reports whether a text of the page of ctx may have been rendered as plain
// text because the page is over its limits or the server is busy. Such a page must
// not be cached.
func Degraded(ctx context.Context) bool {
	p := pageOf(ctx)
	return p.over() || p.source.Load() > pageSource || p.html.Load() > pageHTML
}

// sum identifies a rendering: it is the hash of all its inputs.
type sum [sha256.Size]byte

func sumOf(parts ...string) sum {
	h := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return sum(h.Sum(nil))
}

// flightKey identifies a running rendering. Anonymous callers have separate flights,
// so that signed-in users do not wait for the share of anonymous callers.
type flightKey struct {
	sum
	anonymous bool
}

// flight is a running rendering with the number of callers that wait for it.
type flight struct {
	waiting int
	cancel  context.CancelFunc
	done    chan struct{}

	result
	busy bool
	cost time.Duration
	err  error
}

// result is the result of a rendering. ok is false if the text is shown as plain
// text.
type result struct {
	html string
	ok   bool
}

// render returns the result of a rendering from the cache or by calling work. It
// returns the error of the context or of work.
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

// join starts a flight, or joins a running one. The caller must call the returned
// function; when all callers have called it, the work is canceled.
func (r *Renderer) join(ctx context.Context, of sum, work func(b *budget) (string, error)) (*flight, func()) {
	key := flightKey{of, limit.CallerOf(ctx).Anonymous()}
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.flights[key]
	if f == nil {
		f = &flight{done: make(chan struct{})}
		// The work must not end with the context of the first caller: others may
		// wait.
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
			r.cache.put(key.sum, result{}) // shown as plain text
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
	if found, ok := r.cache.get(key.sum); ok { // rendered in the meantime
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
	ID       string // identifies the content in the cache; may be empty
}

// Lines returns the lines of highlighted code as HTML. Code that is too expensive to
// highlight is returned as plain text.
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

// cache is a cache of results with a maximum size. It has two halves: entries that
// are used are copied to the young half. When that is full, it replaces the old
// half.
type cache struct {
	mu         sync.Mutex
	young, old map[sum]result
	size       int // of the young half
}

// maxCached is the size of a half in bytes.
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
