package markup

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// Limits limits the work of one rendering. A text that exceeds them is shown as
// plain text.
type Limits struct {
	CPU   time.Duration // processor time
	Steps int           // matches that a lexer tries, and elements that the Markdown parser processes
}

// defaultLimits are far above the cost of usual texts: a source file of 256 KiB
// takes about one second.
var defaultLimits = Limits{CPU: 2 * time.Second, Steps: 50_000_000}

// scanLimits are the limits for texts that are only searched for mentions and tasks.
// They are lower because the search runs inside transactions.
var scanLimits = Limits{CPU: 500 * time.Millisecond, Steps: 10_000_000}

// errCostly means that a rendering was stopped because it reached its limits.
var errCostly = errors.New("the text costs too much to render")

// budget counts the work of one rendering. The parser and lexer libraries cannot be
// canceled, so hooks in them call spend, which panics when the rendering must end;
// spending recovers from that panic.
type budget struct {
	ctx    context.Context
	limits Limits
	cpu    func() time.Duration
	start  time.Duration // of cpu
	steps  int
	looked time.Time // when cpu was last read
}

// lookEvery is the interval, in wall-clock time, between two checks of the processor
// time and the context. Reading the wall clock is cheaper than these checks.
const lookEvery = 2 * time.Millisecond

// stop is the panic that ends a rendering.
type stop struct{ err error }

// spending runs f with a budget. It returns how much processor time f took, and
// errCostly or the error of the context when f was stopped.
//
// The goroutine is locked to its thread, because processor time is counted per
// thread. It does not depend on the load of the machine.
func spending(ctx context.Context, l Limits, f func(b *budget) error) (cost time.Duration, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b := &budget{ctx: ctx, limits: l, cpu: threadTime, looked: time.Now()}
	b.start = b.cpu()
	defer func() {
		cost = b.cpu() - b.start
		if p := recover(); p != nil {
			s, ok := p.(stop)
			if !ok {
				panic(p)
			}
			err = s.err
		}
	}()
	b.look()
	return 0, f(b)
}

// spend adds steps to the work that was done, and panics with stop if the rendering
// must end.
func (b *budget) spend(steps int) {
	b.steps += steps
	if b.steps > b.limits.Steps {
		panic(stop{errCostly})
	}
	if now := time.Now(); now.Sub(b.looked) > lookEvery {
		b.looked = now
		b.look()
	}
}

// look panics with stop if the processor time is used up or the context has ended.
func (b *budget) look() {
	if err := b.ctx.Err(); err != nil {
		panic(stop{err})
	}
	if b.cpu()-b.start > b.limits.CPU {
		panic(stop{errCostly})
	}
}

// within runs f with lower limits inside the budget. It returns false if f was
// stopped because it reached a limit.
func (b *budget) within(l Limits, f func()) (ok bool) {
	outer := b.limits
	b.limits = Limits{CPU: min(outer.CPU, l.CPU), Steps: min(outer.Steps, l.Steps)}
	defer func() {
		b.limits = outer
		if p := recover(); p != nil {
			if s, is := p.(stop); !is || !errors.Is(s.err, errCostly) {
				panic(p)
			}
			ok = false
		}
	}()
	f()
	return true
}
