package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"svc/internal/db"
)

// periodic is a periodic job.
type periodic struct {
	every time.Duration
	do    func(ctx context.Context) error
}

// everyKind is the kind of all periodic jobs. There is one permanent row for each
// name: after a run, it is scheduled again. The schedule therefore survives
// restarts, a missed run is caught up, and only one node runs it.
const everyKind = "queue.every"

// everyRetry is the delay after which a failed periodic job is retried, unless its
// next run is sooner.
const everyRetry = time.Minute

type everyArgs struct {
	Name string `json:"name"`
}

// Every registers a periodic job that runs about every d, on one node at a time.
// It must be called before Start. The first run is d after the first start; a run
// that was missed because no node was running is caught up soon after the next
// start. An error is logged, and the job is retried after at most a minute. The
// time limit of a run is five minutes, or d if that is longer.
func (q *Queue) Every(name string, d time.Duration, do func(ctx context.Context) error) {
	if q.client.Load() != nil {
		panic("queue: " + name + " is registered as periodic after Start")
	}
	if _, ok := q.every[name]; ok {
		panic("queue: " + name + " is registered as periodic twice")
	}
	q.every[name] = periodic{d, do}
}

// ensureEvery adds missing rows, and reschedules rows whose interval was
// shortened.
func (q *Queue) ensureEvery(ctx context.Context) error {
	return q.DB.Tx(ctx, func(tx *db.Tx) error {
		rows, err := q.everyRows(ctx, tx)
		if err != nil {
			return fmt.Errorf("list periodic jobs: %w", err)
		}
		// Sorted by name, so that two nodes that start at the same time do not deadlock.
		var missing []river.InsertManyParams
		for _, name := range slices.Sorted(maps.Keys(q.every)) {
			at := q.now().Add(q.every[name].every)
			if row, ok := rows[name]; ok {
				if row.State != rivertype.JobStateScheduled || !row.ScheduledAt.After(at) {
					continue
				}
				if _, err := q.inserter.JobCancelTx(ctx, tx.SQL(), row.ID); err != nil {
					return fmt.Errorf("bring %s forward: %w", name, err)
				}
			}
			job, err := everyJob(name, at)
			if err != nil {
				return err
			}
			missing = append(missing, job)
		}
		if len(missing) == 0 {
			return nil
		}
		if _, err := q.inserter.InsertManyTx(ctx, tx.SQL(), missing); err != nil {
			return fmt.Errorf("add periodic jobs: %w", err)
		}
		return nil
	})
}

var waitingOrRunning = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable,
	rivertype.JobStateRunning, rivertype.JobStateScheduled,
}

// everyRows returns the rows of periodic jobs by name.
func (q *Queue) everyRows(ctx context.Context, tx *db.Tx) (map[string]*rivertype.JobRow, error) {
	const limit = 1000 // more than there can be: there is one row for each name
	found, err := q.inserter.JobListTx(ctx, tx.SQL(), river.NewJobListParams().Kinds(everyKind).States(waitingOrRunning...).First(limit))
	if err != nil {
		return nil, err
	}
	rows := map[string]*rivertype.JobRow{}
	for _, row := range found.Jobs {
		var args everyArgs
		if err := json.Unmarshal(row.EncodedArgs, &args); err != nil {
			return nil, err
		}
		rows[args.Name] = row
	}
	return rows, nil
}

// everyJob returns the row of a periodic job. A second row with the same name is
// not inserted.
func everyJob(name string, at time.Time) (river.InsertManyParams, error) {
	args, err := json.Marshal(everyArgs{name})
	return river.InsertManyParams{Args: item{everyKind, args}, InsertOpts: &river.InsertOpts{
		MaxAttempts: math.MaxInt16, // never discarded
		Queue:       defaultLane,
		ScheduledAt: at,
		UniqueOpts:  river.UniqueOpts{ByArgs: true, ByState: waitingOrRunning},
	}}, err
}

// everyWorker runs all periodic jobs.
type everyWorker struct {
	river.WorkerDefaults[item]
	q *Queue
}

// Timeout implements river.Worker.
func (w *everyWorker) Timeout(job *river.Job[item]) time.Duration {
	return max(defaultTimeout, w.find(job).every)
}

// Work implements river.Worker. It always schedules the next run.
func (w *everyWorker) Work(ctx context.Context, job *river.Job[item]) error {
	if w.q.DB.Postgres() {
		defer w.q.running.begin(job.ID)()
	}
	p := w.find(job)
	if p.do == nil {
		return river.JobSnooze(time.Hour) // this node does not take unknown names
	}
	if err := guard(func() error { return p.do(ctx) }); err != nil {
		if stopped(ctx, err) {
			return river.JobSnooze(0)
		}
		w.q.Log.ErrorContext(ctx, "periodic job failed", "work", string(job.Args.args), "error", err)
		return river.JobSnooze(min(p.every, everyRetry))
	}
	return river.JobSnooze(p.every)
}

func (w *everyWorker) find(job *river.Job[item]) periodic {
	var args everyArgs
	if err := json.Unmarshal(job.Args.args, &args); err != nil {
		return periodic{}
	}
	return w.q.every[args.Name]
}
