package queue

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivershared/baseservice"
	"github.com/riverqueue/river/rivershared/riverpilot"
	"github.com/riverqueue/river/rivershared/startstop"
	"github.com/riverqueue/river/rivertype"

	"svc/internal/db"
	"svc/internal/errs"
)

// config is River's configuration for a client that works.
func (q *Queue) config() *river.Config {
	workers := river.NewWorkers()
	for kind, h := range q.handlers {
		river.AddWorkerArgs(workers, item{kind: kind}, river.Worker[item](&worker{q: q, handler: h}))
	}
	river.AddWorkerArgs(workers, item{kind: everyKind}, river.Worker[item](&everyWorker{q: q}))
	c := &river.Config{
		ID:       nodeID(),
		Logger:   riverLog(q.Log),
		Queues:   map[string]river.QueueConfig{},
		Test:     river.TestConfig{Time: clock{q.Now}},
		TestOnly: q.quick,
		Workers:  workers,

		// Adding work wakes its lane at once; the poll finds what other nodes
		// added and what has become due.
		FetchCooldown:     10 * time.Millisecond,
		FetchPollInterval: q.poll,

		JobTimeout: defaultTimeout,
		// Work that a dead process left is taken over much sooner: see
		// takeOver and tend. This catches what they miss.
		RescueStuckJobsAfter: time.Hour,
		RetryPolicy:          backoff{q.now},

		CompletedJobRetentionPeriod: time.Hour,
		CancelledJobRetentionPeriod: 24 * time.Hour,
		DiscardedJobRetentionPeriod: 14 * 24 * time.Hour,
	}
	for lane, n := range q.lanes {
		c.Queues[lane] = river.QueueConfig{MaxWorkers: n}
	}
	if !q.DB.Postgres() {
		c.ReindexerSchedule = river.NeverSchedule() // would only hold up the writer
	}
	return c
}

// item is any work as River sees it.
type item struct {
	kind string
	args json.RawMessage
}

// Kind implements river.JobArgs.
func (i item) Kind() string { return i.kind }

// MarshalJSON implements json.Marshaler.
func (i item) MarshalJSON() ([]byte, error) { return i.args, nil }

// UnmarshalJSON implements json.Unmarshaler.
func (i *item) UnmarshalJSON(args []byte) error {
	i.args = bytes.Clone(args)
	return nil
}

// worker does the work of one kind.
type worker struct {
	river.WorkerDefaults[item]
	handler
	q *Queue
}

// Timeout implements river.Worker.
func (w *worker) Timeout(*river.Job[item]) time.Duration { return w.timeout }

// Work implements river.Worker.
func (w *worker) Work(ctx context.Context, job *river.Job[item]) error {
	err := guard(func() error { return w.do(ctx, job.Args.args) })
	if err == nil {
		return nil
	}
	if stopped(ctx, err) {
		return river.JobSnooze(0)
	}
	if later, ok := errors.AsType[postponed](err); ok {
		return river.JobSnooze(time.Duration(later))
	}
	log := w.q.Log.With("kind", job.Kind, "work", job.ID, "try", job.Attempt, "error", err)
	switch kind := errs.KindOf(err); {
	case kind == errs.KindInvalid, kind == errs.KindNotFound:
		log.InfoContext(ctx, "background job discarded")
		return river.JobCancel(err)
	case job.Attempt >= job.MaxAttempts:
		log.ErrorContext(ctx, "background job failed permanently")
	default:
		log.WarnContext(ctx, "background job failed and will be retried")
	}
	return err
}

// postponed is the error of work that is to be done later.
type postponed time.Duration

// Error implements error.
func (p postponed) Error() string { return "postponed for " + time.Duration(p).String() }

// Postpone returns the error of a handler that does its work later, for example
// because others should have the worker. It does not count as a try.
func Postpone(d time.Duration) error { return postponed(d) }

// stopped reports whether the work failed because the queue is being stopped,
// which does not count as a try: only then is the context of work canceled.
func stopped(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) && errors.Is(ctx.Err(), context.Canceled)
}

// guard turns a panic of f into an error that tells where it was.
func guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return f()
}

// backoff spaces the tries: 1 s, 16 s, 81 s, … the fourth power of their
// number, a tenth more or less, at most six hours.
type backoff struct{ now func() time.Time }

// NextRetry implements river.ClientRetryPolicy.
func (b backoff) NextRetry(job *rivertype.JobRow) time.Time {
	seconds := min(math.Pow(float64(job.Attempt), 4), 6*3600)
	return b.now().Add(time.Duration(seconds * (0.9 + 0.2*rand.Float64()) * float64(time.Second)))
}

// clock is River's clock. Its own gives local times where it says UTC, and
// SQLite compares times as text.
type clock struct{ now func() time.Time }

// NowUTC implements rivertype.TimeGenerator.
func (c clock) NowUTC() time.Time {
	if c.now != nil {
		return c.now().UTC()
	}
	return time.Now().UTC()
}

// NowUTCOrNil implements rivertype.TimeGenerator; nil has River ask the
// database, whose clock all nodes share.
func (c clock) NowUTCOrNil() *time.Time {
	if c.now == nil {
		return nil
	}
	now := c.now().UTC()
	return &now
}

// driver is River's driver for our database, with a pilot that can wake lanes.
// River has no other way to be told of work that was added in a transaction
// of ours, short of a connection that listens.
type driver struct {
	riverdriver.Driver[*sql.Tx]
	pilot *pilot
}

func newDriver(d *db.DB) *driver {
	if d.Postgres() {
		return &driver{riverdatabasesql.New(d.SQL()), &pilot{db: d, kinds: "[]", periodic: "[]"}}
	}
	return &driver{riversqlite.New(d.SQL()), &pilot{db: d, kinds: "[]", periodic: "[]"}}
}

// SupportsListenNotify says that no one listens, so that River need not notify.
func (d *driver) SupportsListenNotify() bool { return false }

// PluginInit is called by River before PluginPilot.
func (d *driver) PluginInit(*baseservice.Archetype) {}

// PluginPilot returns River our pilot.
func (d *driver) PluginPilot() riverpilot.Pilot { return d.pilot }

// pilot is River's own, with a way to wake a lane and a maintenance service that
// shows whether this node is the leader.
type pilot struct {
	riverpilot.StandardPilot
	db *db.DB
	// What this node has handlers for, as JSON arrays: kinds of work, and names of
	// periodic work. They do not change while the queue runs.
	kinds, periodic string
	notify          func(context.Context, []*rivertype.JobInsertResult)
	leader          leader
}

// know notes what the queue has handlers for.
func (p *pilot) know(q *Queue) error {
	// Without any, the list is empty and not null.
	kinds, err := json.Marshal(slices.AppendSeq([]string{}, maps.Keys(q.handlers)))
	if err != nil {
		return err
	}
	periodic, err := json.Marshal(slices.AppendSeq([]string{}, maps.Keys(q.every)))
	p.kinds, p.periodic = string(kinds), string(periodic)
	return err
}

// PilotInit implements riverpilot.Pilot. It is called by each new client; the
// last one is the client that works.
func (p *pilot) PilotInit(_ *baseservice.Archetype, params *riverpilot.PilotInitParams) {
	p.notify = params.NotifyNonTxJobInsert
}

// PluginMaintenanceServices returns River the services that run only on the
// leader.
func (p *pilot) PluginMaintenanceServices() []startstop.Service {
	return []startstop.Service{&p.leader}
}

// PluginServices returns River the services that run on every node.
func (p *pilot) PluginServices() []startstop.Service { return nil }

// JobGetAvailable implements riverpilot.Pilot. Work of kinds that this node has no
// handler for stays for the nodes of a newer release. River takes work by an
// update, for which SQLite needs its only writer even when no work waits; a read
// does not hold up anyone.
func (p *pilot) JobGetAvailable(ctx context.Context, exec riverdriver.Executor, _ riverpilot.ProducerState, params *riverdriver.JobGetAvailableParams) ([]*rivertype.JobRow, error) {
	if !p.db.Postgres() {
		if available, err := laneHasWork(ctx, p.db, params.Queue); err != nil || !available {
			return nil, err
		}
	}
	ids, err := take(ctx, p.db, params, p.kinds, p.periodic)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return exec.JobGetByIDMany(ctx, &riverdriver.JobGetByIDManyParams{ID: ids, Schema: params.Schema})
}

func (p *pilot) wake(lane string) {
	p.notify(context.Background(), []*rivertype.JobInsertResult{{Job: &rivertype.JobRow{Queue: lane}}})
}

// riverLog is our log for River's messages: what it finds worth an info is
// worth a debug to us, an error, which it tries again by itself, a warning. What
// it says of single jobs we say ourselves.
func riverLog(log *slog.Logger) *slog.Logger { return slog.New(quiet{log.Handler()}) }

type quiet struct{ slog.Handler }

// Enabled implements slog.Handler.
func (h quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, lower(level))
}

// Handle implements slog.Handler.
func (h quiet) Handle(ctx context.Context, r slog.Record) error {
	if r.Level = lower(r.Level); !h.Handler.Enabled(ctx, r.Level) || strings.HasPrefix(r.Message, "jobexecutor.JobExecutor: Job errored") {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{h.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (h quiet) WithGroup(name string) slog.Handler { return quiet{h.Handler.WithGroup(name)} }

func lower(level slog.Level) slog.Level {
	if level <= slog.LevelInfo {
		return min(level, slog.LevelDebug)
	}
	return min(level, slog.LevelWarn)
}
