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

// Work is the arguments of a background job: a struct that can be encoded as JSON.
// Its kind ("user.delete") is stored with it and must not change while such jobs
// may be waiting.
type Work interface{ Kind() string }

// Deps are the dependencies of the queue.
type Deps struct {
	DB  *db.DB
	Log *slog.Logger
	// Workers is the number of concurrent jobs in the default lane on this node; 0
	// means twice the number of CPUs.
	Workers int
	// Now is the clock; nil means the clock of the database.
	Now func() time.Time
	// Pulse is the interval of the heartbeats of nodes; 0 means the default.
	Pulse time.Duration
}

// Queue stores and runs background jobs. Its methods are safe for concurrent use,
// except for Handle, Every and Lane, which must be called before Start.
type Queue struct {
	Deps
	driver   *driver
	inserter *river.Client[*sql.Tx]
	handlers map[string]handler
	lanes    map[string]int
	every    map[string]periodic
	pulse    time.Duration
	poll     time.Duration
	finished recent
	running  running

	// client is set from Start to Stop. The maps do not change while it is set.
	client  atomic.Pointer[river.Client[*sql.Tx]]
	life    sync.Mutex         // serializes Start and Stop
	stop    context.CancelFunc // stops tend
	tending sync.WaitGroup
}

// handler is a registered handler with untyped arguments.
type handler struct {
	do      func(ctx context.Context, args []byte) error
	timeout time.Duration
	args    reflect.Type
}

const (
	// defaultLane is River's name for the default lane.
	defaultLane = river.QueueDefault
	// defaultTimeout is the default time limit of a run.
	defaultTimeout = 5 * time.Minute
	// poll is the interval at which a lane looks for jobs that it was not woken for.
	poll = time.Second
	// defaultTries makes a job fail permanently about half a day after its first try:
	// see backoff.
	defaultTries = 12
)

// New returns a queue. Jobs can be added immediately; they run after Start.
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
		panic(fmt.Sprintf("queue: %v", err)) // the configuration is constant, so this is a programming error
	}
	q.inserter = inserter
	return q
}

// Option changes how a kind of job is handled.
type Option func(*handler)

// Timeout sets the time limit of a run, at which the context of the handler ends.
// The default is five minutes.
func Timeout(d time.Duration) Option { return func(h *handler) { h.timeout = d } }

// Handle registers the handler for jobs with arguments of type W. It must be
// called before Start. If do returns nil, the job is finished. An error of kind
// errs.KindInvalid or errs.KindNotFound means that retrying is pointless, and the
// job is discarded. After any other error, or a panic, the job is retried with
// increasing delays until it has failed permanently.
func Handle[W Work](q *Queue, do func(ctx context.Context, work W) error, opts ...Option) {
	var w W
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
	q.handle(w.Kind(), h)
}

// Arguments returns the argument types of jobs by kind. Nodes of another release
// may run a job, so a test checks that fields are only added.
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

// Lane registers a lane with its own workers on this node, for jobs that must not
// delay others. It must be called before Start. Use In to add jobs to a lane.
func (q *Queue) Lane(name string, workers int) {
	if q.client.Load() != nil {
		panic("queue: the lane " + name + " is registered after Start")
	}
	q.lanes[name] = workers
}

// Start starts running jobs, including those left by an earlier process. ctx
// applies to the start only. On SQLite this process must be the only one that has
// started a queue on the file.
func (q *Queue) Start(ctx context.Context) error {
	q.life.Lock()
	defer q.life.Unlock()
	if q.client.Load() != nil {
		return errors.New("start queue: it runs already")
	}
	if err := q.driver.pilot.setHandlers(q); err != nil {
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
	// stopGrace is how long Stop waits for handlers after it has canceled their
	// contexts.
	stopGrace = 5 * time.Second
	// electionGrace is how long Stop waits for an election.
	electionGrace = 5 * time.Second
)

// Stop stops taking jobs and waits for running ones. If ctx ends first, the
// contexts of the handlers are canceled and their jobs will be retried; Stop then
// returns the error of ctx.
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
			return err // a handler ignores its context; the process must end
		}
	}
	q.stop()
	q.tending.Wait()
	q.client.Store(nil)
	if left := q.leave(context.WithoutCancel(ctx), client.ID()); left != nil {
		// The other nodes notice when the heartbeats stop.
		q.Log.WarnContext(ctx, "the queue cannot remove this node from the list of nodes", "error", left)
	}
	return err
}
