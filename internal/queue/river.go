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

// config returns River's configuration for a client that runs jobs.
func (q *Queue) config() *river.Config {
	workers := river.NewWorkers()
	for kind, h := range q.handlers {
		river.AddWorkerArgs(workers, item{kind: kind}, river.Worker[item](&worker{q: q, handler: h}))
	}
	river.AddWorkerArgs(workers, item{kind: everyKind}, river.Worker[item](&everyWorker{q: q}))
	c := &river.Config{
		ID:      nodeID(),
		Logger:  riverLog(q.Log),
		Queues:  map[string]river.QueueConfig{},
		Test:    river.TestConfig{Time: clock{q.Now}},
		Workers: workers,

		// The only effect of this option is that maintenance starts without a random delay of
		// up to a second for each service. The delay spreads the load of many clients. We have
		// few; with the delay, periodic jobs would start late, and Stop would wait for the
		// delays (see awaitElection).
		TestOnly: true,

		// Adding a job wakes its lane immediately. The poll finds jobs that other nodes
		// added or that have become due.
		FetchCooldown:     10 * time.Millisecond,
		FetchPollInterval: q.poll,

		JobTimeout: defaultTimeout,
		// Jobs of a dead process are taken over much sooner by takeOver and tend. This is
		// a fallback.
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
		c.ReindexerSchedule = river.NeverSchedule() // it would only block the writer
	}
	return c
}

// item is the River representation of all jobs.
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

// worker runs the jobs of one kind.
type worker struct {
	river.WorkerDefaults[item]
	handler
	q *Queue
}

// Timeout implements river.Worker.
func (w *worker) Timeout(*river.Job[item]) time.Duration { return w.timeout }

// Work implements river.Worker.
func (w *worker) Work(ctx context.Context, job *river.Job[item]) error {
	if w.q.DB.Postgres() {
		defer w.q.running.begin(job.ID)()
	}
	err := guard(func() error { return w.do(ctx, job.Args.args) })
	if err == nil {
		w.q.finished.add(job.ID)
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

// postponed is the error of a handler that postpones its job.
type postponed time.Duration

// Error implements error.
func (p postponed) Error() string { return "postponed for " + time.Duration(p).String() }

// Postpone returns an error for a handler that wants to run again later, for
// example to let other jobs run. It does not count as a try.
func Postpone(d time.Duration) error { return postponed(d) }

// PostponeTurn is Postpone for a job of a user who already has as many running jobs as
// they may have. The delay grows with the number of the user's waiting jobs, so that the
// queue runs at most about ten of them per second, and those of others in between.
func PostponeTurn(waiting int) error {
	return Postpone(min(max(2*time.Second, time.Duration(waiting)*time.Second/10), 5*time.Minute))
}

// stopped reports whether a job failed because the queue is being stopped, which
// does not count as a try. The context of a job is canceled only in this case.
func stopped(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) && errors.Is(ctx.Err(), context.Canceled)
}

// guard converts a panic of f to an error with a stack trace.
func guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return f()
}

// backoff is the retry policy: the delay is the fourth power of the number of
// tries in seconds (1 s, 16 s, 81 s, …), plus or minus 10 %, at most six hours.
type backoff struct{ now func() time.Time }

// NextRetry implements river.ClientRetryPolicy.
func (b backoff) NextRetry(job *rivertype.JobRow) time.Time {
	seconds := min(math.Pow(float64(job.Attempt), 4), 6*3600)
	return b.now().Add(time.Duration(seconds * (0.9 + 0.2*rand.Float64()) * float64(time.Second)))
}

// clock is River's clock. The default one returns local times as UTC, and SQLite
// compares times as text.
type clock struct{ now func() time.Time }

// NowUTC implements rivertype.TimeGenerator.
func (c clock) NowUTC() time.Time {
	if c.now != nil {
		return c.now().UTC()
	}
	return time.Now().UTC()
}

// NowUTCOrNil implements rivertype.TimeGenerator. With nil, River uses the clock of the
// database, which all nodes share.
func (c clock) NowUTCOrNil() *time.Time {
	if c.now == nil {
		return nil
	}
	now := c.now().UTC()
	return &now
}

// driver is River's driver with a pilot that can wake lanes. Without it, River needs a
// listening connection to notice jobs that were added in our transactions.
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

// SupportsListenNotify returns false, so that River does not send notifications.
func (d *driver) SupportsListenNotify() bool { return false }

// PluginInit is called by River before PluginPilot.
func (d *driver) PluginInit(*baseservice.Archetype) {}

// PluginPilot returns the pilot to River.
func (d *driver) PluginPilot() riverpilot.Pilot { return d.pilot }

// pilot is River's standard pilot with a method to wake a lane, and a maintenance
// service that records whether this node is the leader.
type pilot struct {
	riverpilot.StandardPilot
	db *db.DB
	// Kinds of jobs and names of periodic jobs that this node has handlers for, as
	// JSON arrays. They do not change while the queue is running.
	kinds, periodic string
	notify          func(context.Context, []*rivertype.JobInsertResult)
	leader          leader
}

// setHandlers records the handlers of the queue.
func (p *pilot) setHandlers(q *Queue) error {
	// An empty list must be [] and not null.
	kinds, err := json.Marshal(slices.AppendSeq([]string{}, maps.Keys(q.handlers)))
	if err != nil {
		return err
	}
	periodic, err := json.Marshal(slices.AppendSeq([]string{}, maps.Keys(q.every)))
	p.kinds, p.periodic = string(kinds), string(periodic)
	return err
}

// PilotInit implements riverpilot.Pilot. It is called by each new client; the last
// one is the client that runs jobs.
func (p *pilot) PilotInit(_ *baseservice.Archetype, params *riverpilot.PilotInitParams) {
	p.notify = params.NotifyNonTxJobInsert
}

// PluginMaintenanceServices returns the services that run only on the leader.
func (p *pilot) PluginMaintenanceServices() []startstop.Service {
	return []startstop.Service{&p.leader}
}

// PluginServices returns the services that run on every node.
func (p *pilot) PluginServices() []startstop.Service { return nil }

// JobGetAvailable implements riverpilot.Pilot. Jobs of kinds without a handler are
// left to nodes of a newer release. River takes jobs with an UPDATE, for which
// SQLite needs the write lock even if there are no jobs, so a read checks that
// first.
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

// riverLog returns a logger for River's messages with lower levels: info becomes
// debug, and errors, which River retries, become warnings. Failures of jobs are
// dropped, because the worker logs them.
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
