package markup

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// Limits bounds the work of one rendering. What would cost more is shown as
// plain text.
type Limits struct {
	CPU   time.Duration // processor time
	Steps int           // matches that a lexer tries, and elements that the Markdown parser looks at
}

// defaultLimits are far above what texts cost that users write: a source file
// of 256 KiB takes about a second.
var defaultLimits = Limits{CPU: 2 * time.Second, Steps: 50_000_000}

// scanLimits are for texts that are looked through and not shown: for mentions and
// tasks. That happens inside transactions.
var scanLimits = Limits{CPU: 500 * time.Millisecond, Steps: 10_000_000}

// errCostly says that a rendering was stopped because it reached its limits.
var errCostly = errors.New("the text costs too much to render")

// budget is the work that one rendering may still do. Parsers and lexers of
// others have no way to be stopped from outside, so they are stopped from inside:
// each hook in them calls spend, which panics when the rendering is to end, and
// spending recovers.
type budget struct {
	ctx    context.Context
	limits Limits
	cpu    func() time.Duration
	start  time.Duration // of cpu
	steps  int
	looked time.Time // when cpu was last read
}

// lookEvery is how much time may pass before the processor time and the context
// are looked at again. The processor time is never more than the time that
// passes, and to read that is cheap.
const lookEvery = 2 * time.Millisecond

// stop is the panic that ends a rendering.
type stop struct{ err error }

// spending runs f with a budget. It returns how much processor time f took, and
// errCostly or the error of the context when f was stopped.
//
// The goroutine keeps its thread meanwhile: processor time is counted by thread,
// and does not depend on how busy the machine is.
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

// spend takes steps out of the budget.
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

// look ends the rendering when its processor time is used up or no one waits
// for it any more.
func (b *budget) look() {
	if err := b.ctx.Err(); err != nil {
		panic(stop{err})
	}
	if b.cpu()-b.start > b.limits.CPU {
		panic(stop{errCostly})
	}
}

// within runs f with limits of its own inside the budget. It reports false when f
// reached them.
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
