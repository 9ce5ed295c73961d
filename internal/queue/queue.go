// Package queue runs background jobs that survive the process.
//
// A job is added in the transaction of the change that needs it, so that both
// happen or neither. It runs at least once, on one node at a time: after a
// crash, or if its result could not be saved, it runs again, so handlers must be
// idempotent. The library that stores jobs in the database (River) is not
// exposed.
package queue

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"

	"svc/internal/db"
)

// Work is the arguments of one piece of work: a struct that JSON can hold.
// Its kind ("user.delete") is stored with it, so it must not change while
// such work may be waiting.
type Work interface{ Kind() string }

// Deps are what the queue needs.
type Deps struct {
	DB  *db.DB
	Log *slog.Logger
	// Workers is how much work runs at once on this node in the default lane;
	// 0 means twice the number of processors.
	Workers int
	// Now is the clock; nil means that of the database.
	Now func() time.Time
	// Pulse is how often nodes tell each other that they live; 0 is the usual
	// time.
	Pulse time.Duration
}

// Queue keeps work and runs it. Its methods are safe for concurrent use, but
// for Handle, Every and Lane, which come before Start.
type Queue struct {
	Deps
	driver   *driver
	inserter *river.Client[*sql.Tx]
	handlers map[string]handler
	lanes    map[string]int
	every    map[string]periodic
	pulse    time.Duration
	poll     time.Duration
	quick    bool // tests: no random pauses at the start

	// client is there from Start to Stop; meanwhile the maps do not change.
	client  atomic.Pointer[river.Client[*sql.Tx]]
	life    sync.Mutex         // one Start or Stop at a time
	stop    context.CancelFunc // ends tend
	tending sync.WaitGroup
}

// handler is what Handle was given, without its type.
type handler struct {
	do      func(ctx context.Context, args []byte) error
	timeout time.Duration
	args    reflect.Type
}

const (
	// defaultLane is the name by which River knows the lane of all work that
	// names none.
	defaultLane = river.QueueDefault
	// defaultTimeout bounds one run of a handler that names no other bound.
	defaultTimeout = 5 * time.Minute
	// poll is how soon a lane finds what it was not woken for.
	poll = time.Second
	// defaultTries makes work fail for good about half a day after it was
	// first tried: see backoff.
	defaultTries = 12
)

// New returns a queue. Work can be added to it at once; it runs after Start.
func New(d Deps) *Queue {
	q := &Queue{
		Deps:     d,
		driver:   newDriver(d.DB),
		handlers: map[string]handler{},
		lanes:    map[string]int{defaultLane: d.Workers},
		every:    map[string]periodic{},
		pulse:    cmp.Or(d.Pulse, pulse),
		poll:     poll,
	}
	if d.Workers <= 0 {
		q.lanes[defaultLane] = 2 * runtime.GOMAXPROCS(0)
	}
	inserter, err := river.NewClient(q.driver, &river.Config{Logger: riverLog(d.Log), Test: river.TestConfig{Time: clock{d.Now}}})
	if err != nil {
		panic(fmt.Sprintf("queue: %v", err)) // the configuration is fixed, so it is always right or always wrong
	}
	q.inserter = inserter
	return q
}

// Option changes how a kind of work is handled.
type Option func(*handler)

// Timeout bounds one run; the context of the handler ends then. Without it a
// run has five minutes.
func Timeout(d time.Duration) Option { return func(h *handler) { h.timeout = d } }

// Handle says how work of the type W is done, before Start. When do returns nil
// the work is finished. An error of the kinds errs.KindInvalid and
// errs.KindNotFound says that trying again is in vain, and the work is given
// up; after any other error, or a panic, it is retried later, with growing
// pauses, until its tries are used up and it counts as failed.
func Handle[W Work](q *Queue, do func(ctx context.Context, work W) error, opts ...Option) {
	var zero W
	h := handler{
		args:    reflect.TypeFor[W](),
		timeout: defaultTimeout,
		do: func(ctx context.Context, args []byte) error {
			var work W
			if err := json.Unmarshal(args, &work); err != nil {
				return fmt.Errorf("read the arguments: %w", err)
			}
			return do(ctx, work)
		},
	}
	for _, opt := range opts {
		opt(&h)
	}
	q.handle(zero.Kind(), h)
}

// Arguments returns the types of the arguments of work by kind. Nodes of another
// release may run the work, so a test checks that fields are only added.
func (q *Queue) Arguments() map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for kind, h := range q.handlers {
		types[kind] = h.args
	}
	return types
}

func (q *Queue) handle(kind string, h handler) {
	if q.client.Load() != nil {
		panic("queue: " + kind + " is given a handler after Start")
	}
	if _, ok := q.handlers[kind]; ok {
		panic("queue: " + kind + " is given two handlers")
	}
	q.handlers[kind] = h
}

// Lane makes its own lane for work that must not keep other work waiting,
// before Start: at most workers of it run at once on this node. Work gets there
// by In.
func (q *Queue) Lane(name string, workers int) {
	if q.client.Load() != nil {
		panic("queue: the lane " + name + " is registered after Start")
	}
	q.lanes[name] = workers
}

// Start takes up work, also what an earlier process left. ctx bounds the
// start only. On SQLite this process must be the only one that has started a
// queue on the file.
func (q *Queue) Start(ctx context.Context) error {
	q.life.Lock()
	defer q.life.Unlock()
	if q.client.Load() != nil {
		return errors.New("start queue: it runs already")
	}
	if err := q.driver.pilot.know(q); err != nil {
		return fmt.Errorf("start queue: %w", err)
	}
	client, err := river.NewClient(q.driver, q.config())
	if err != nil {
		return fmt.Errorf("start queue: %w", err)
	}
	if err := q.takeOver(ctx, client.ID()); err != nil {
		return fmt.Errorf("start queue: %w", err)
	}
	if err := q.ensureEvery(ctx); err != nil {
		return fmt.Errorf("start queue: %w", err)
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start queue: %w", err)
	}
	tend, stop := context.WithCancel(context.WithoutCancel(ctx))
	q.stop = stop
	q.client.Store(client)
	if q.DB.Postgres() {
		q.tending.Go(func() { q.tend(tend, client.ID()) })
	}
	return nil
}

const (
	// stopGrace is how long Stop waits for handlers whose context it has ended.
	stopGrace = 5 * time.Second
	// electionGrace is how long Stop waits for an election.
	electionGrace = 5 * time.Second
)

// Stop takes up no more work, waits for the work that runs, and returns. When
// ctx ends first, the contexts of the handlers end too, and their work will be
// retried; Stop then returns ctx's error.
func (q *Queue) Stop(ctx context.Context) error {
	q.life.Lock()
	defer q.life.Unlock()
	client := q.client.Load()
	if client == nil {
		return nil
	}
	q.awaitElection(ctx)
	err := client.Stop(ctx)
	if err != nil {
		err = fmt.Errorf("stop queue: work is still running: %w", err)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
		defer cancel()
		if client.StopAndCancel(grace) != nil {
			return err // a handler does not heed its context: the process ends with it
		}
	}
	q.stop()
	q.tending.Wait()
	q.client.Store(nil)
	if left := q.leave(context.WithoutCancel(ctx), client.ID()); left != nil {
		// The other nodes find out when this one no longer reports itself.
		q.Log.WarnContext(ctx, "the queue cannot remove this node from the list of nodes", "error", left)
	}
	return err
}
