package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"

	"svc/internal/db"
)

// AddOption changes when and how often work is tried.
type AddOption func(*addition)

type addition struct {
	opts   river.InsertOpts
	delay  time.Duration
	unique bool
}

// Unique adds nothing when the same work, by kind and arguments, is waiting
// already. Work that runs just now does not count: it may have begun before
// the change that asks for it.
func Unique() AddOption { return func(a *addition) { a.unique = true } }

// Delay has the work wait. It starts up to a few seconds late.
func Delay(d time.Duration) AddOption { return func(a *addition) { a.delay = d } }

// At has the work wait until t. It starts up to a few seconds late.
func At(t time.Time) AddOption { return func(a *addition) { a.opts.ScheduledAt = t } }

// Priority is 1 for work that goes first, the default, to 4 for work that
// goes last.
func Priority(p int) AddOption { return func(a *addition) { a.opts.Priority = p } }

// Tries is how often the work is tried before it counts as failed.
func Tries(n int) AddOption { return func(a *addition) { a.opts.MaxAttempts = n } }

// In puts the work into a lane: see Lane.
func In(lane string) AddOption { return func(a *addition) { a.opts.Queue = lane } }

// Add adds work to what tx does: it runs once that is committed, and never if
// it is undone. Work of a kind that has no handler is refused by a queue that
// has been started.
func (q *Queue) Add(ctx context.Context, tx *db.Tx, work Work, opts ...AddOption) error {
	a := addition{opts: river.InsertOpts{Queue: defaultLane, MaxAttempts: defaultTries}}
	for _, opt := range opts {
		opt(&a)
	}
	if a.delay > 0 {
		a.opts.ScheduledAt = q.now().Add(a.delay)
	}
	args, err := json.Marshal(work)
	if err != nil {
		return fmt.Errorf("add %s: %w", work.Kind(), err)
	}
	if err := q.check(work.Kind(), args, a.opts); err != nil {
		return fmt.Errorf("add %s: %w", work.Kind(), err)
	}
	if err := q.insert(ctx, tx, item{work.Kind(), args}, a); err != nil {
		return fmt.Errorf("add %s: %w", work.Kind(), err)
	}
	if a.opts.ScheduledAt.IsZero() {
		tx.AfterCommit(func() { q.wake(a.opts.Queue) })
	}
	return nil
}

func (q *Queue) check(kind string, args []byte, opts river.InsertOpts) error {
	if len(args) == 0 || args[0] != '{' {
		return errors.New("the arguments are no struct")
	}
	if opts.MaxAttempts < 1 {
		return errors.New("it could not be tried once")
	}
	if q.client.Load() == nil {
		return nil // a program that only adds work knows neither
	}
	if _, ok := q.handlers[kind]; !ok {
		return errors.New("it has no handler")
	}
	if _, ok := q.lanes[opts.Queue]; !ok {
		return fmt.Errorf("there is no lane %q", opts.Queue)
	}
	return nil
}

func (q *Queue) insert(ctx context.Context, tx *db.Tx, it item, a addition) error {
	if a.unique {
		if waits, err := q.waits(ctx, tx, it, a.opts.Queue); err != nil || waits {
			return err
		}
	}
	if !q.DB.Postgres() && a.opts.ScheduledAt.IsZero() {
		return q.insertPlain(ctx, tx, it, a.opts)
	}
	_, err := q.inserter.InsertTx(ctx, tx.SQL(), it, &a.opts)
	return err
}

func (q *Queue) now() time.Time {
	if q.Now != nil {
		return q.Now().UTC()
	}
	return time.Now().UTC()
}

// wake has the lane look for work now rather than at its next glance.
func (q *Queue) wake(lane string) {
	if q.client.Load() != nil {
		q.driver.pilot.wake(lane)
	}
}
