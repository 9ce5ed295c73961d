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

// AddOption changes when and how often a job is tried.
type AddOption func(*addition)

type addition struct {
	opts   river.InsertOpts
	delay  time.Duration
	unique bool
}

// Unique adds nothing if a job with the same kind and arguments is waiting
// already. A running job does not count: it may have started before the change
// that needs the job.
func Unique() AddOption { return func(a *addition) { a.unique = true } }

// Delay delays the job. It starts up to a few seconds late.
func Delay(d time.Duration) AddOption { return func(a *addition) { a.delay = d } }

// At schedules the job for t. It starts up to a few seconds late.
func At(t time.Time) AddOption { return func(a *addition) { a.opts.ScheduledAt = t } }

// Priority sets the priority, from 1 (first, the default) to 4 (last).
func Priority(p int) AddOption { return func(a *addition) { a.opts.Priority = p } }

// Tries sets how often the job is tried before it has failed permanently.
func Tries(n int) AddOption { return func(a *addition) { a.opts.MaxAttempts = n } }

// In adds the job to a lane: see Lane.
func In(lane string) AddOption { return func(a *addition) { a.opts.Queue = lane } }

// Add adds a job in tx. It runs after tx is committed, and never if tx is rolled
// back. Once the queue is started, a job of a kind without a handler is refused.
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
		return errors.New("the arguments are not a struct")
	}
	if opts.MaxAttempts < 1 {
		return errors.New("the number of tries is less than 1")
	}
	if q.client.Load() == nil {
		return nil // a program that only adds jobs has no handlers or lanes
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
		if waiting, err := q.isWaiting(ctx, tx, it, a.opts.Queue); err != nil || waiting {
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

// wake makes the lane look for jobs now instead of at its next poll.
func (q *Queue) wake(lane string) {
	if q.client.Load() != nil {
		q.driver.pilot.wake(lane)
	}
}
