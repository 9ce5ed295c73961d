package queue

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river/rivertype"

	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/errs"
	"svc/internal/waittest"
)

func jobRow(attempt int) *rivertype.JobRow { return &rivertype.JobRow{Attempt: attempt} }

// TestMain runs a part of a test in a process of its own, if requested. The local time
// zone is far from UTC, as it is for most users, because SQLite compares times as text.
func TestMain(m *testing.M) {
	time.Local = time.FixedZone("far west", -9*3600)
	if os.Getenv("TEST_QUEUE_CHILD") == "" {
		os.Exit(m.Run())
	}
	if err := hang(dbtest.Source{URL: os.Getenv("TEST_QUEUE_URL"), Path: os.Getenv("TEST_QUEUE_PATH")}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// hang takes a job, prints a line, and never finishes.
func hang(src dbtest.Source) error {
	ctx := context.Background()
	d, err := db.Open(ctx, src.URL, src.Path)
	if err != nil {
		return err
	}
	q := New(Deps{DB: d, Log: slog.New(slog.DiscardHandler)})
	q.pulse = 100 * time.Millisecond
	Handle(q, func(_ context.Context, j job) error {
		fmt.Println("running", j.N)
		select {}
	})
	if err := q.Start(ctx); err != nil {
		return err
	}
	select {}
}

// crash starts a child process that takes n jobs, and kills it.
func crash(t *testing.T, src dbtest.Source, n int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TEST_QUEUE_CHILD=1", "TEST_QUEUE_URL="+src.URL, "TEST_QUEUE_PATH="+src.Path, "GOMAXPROCS=4")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for range n {
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), "running") {
			t.Fatalf("the child said %q", lines.Text())
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
}

func TestWorkSurvivesKill(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		d := src.Open(t)
		q, log := newQueue(Deps{DB: d})
		q.pulse = 500 * time.Millisecond
		var r runs
		Handle(q, r.do)
		for n := range 3 {
			add(t, q, job{N: n})
		}
		add(t, q, job{N: 9}, Tries(1)) // its only try is lost
		crash(t, src, 4)
		if s := stats(t, q); s != "test.job running 4" {
			t.Fatal(s)
		}
		began := time.Now()
		start(t, q)
		add(t, q, job{N: 3})
		idle(t, q)
		got := r.numbers()
		slices.Sort(got)
		if !slices.Equal(got, []int{0, 1, 2, 3}) {
			t.Errorf("ran %v", got)
		}
		if s := stats(t, q); s != "test.job failed 1" {
			t.Error(s)
		}
		if n := strings.Count(log.String(), "was interrupted"); n != 4 {
			t.Errorf("the log has %d messages:\n%s", n, log)
		}
		if took := time.Since(began); took > 5*time.Minute { // River's own rescue comes after an hour
			t.Errorf("it took %v", took)
		}
	})
}

// TestLivingNodeKeepsItsWork checks that a node with heartbeats keeps its jobs, however
// long they run.
func TestLivingNodeKeepsItsWork(t *testing.T) {
	t.Parallel()
	if os.Getenv("TEST_POSTGRES") == "" {
		return // SQLite has one node
	}
	src := dbtest.Postgres(t)
	var tries atomic.Int64
	gate := make(chan struct{})
	node := func(pulse time.Duration) *Queue {
		q, _ := newQueue(Deps{DB: src.Open(t)})
		q.pulse = pulse
		Handle(q, func(context.Context, job) error { tries.Add(1); <-gate; return nil })
		return q
	}
	// The pulse of the checking nodes is so long that they miss no heartbeat.
	one, two, short := node(time.Hour), node(time.Hour), node(10*time.Millisecond)
	start(t, one)
	add(t, one, job{})
	waittest.For(t, "running", func() bool { return tries.Load() == 1 })
	silent := func() {
		t.Helper()
		if _, err := one.DB.ExecContext(t.Context(), "UPDATE river_client SET updated_at = now() - INTERVAL '5 hours'"); err != nil {
			t.Fatal(err)
		}
	}
	silent()
	suspects, err := two.sweep(t.Context(), nil)
	if err != nil || len(suspects) != 1 {
		t.Fatalf("suspects %v, %v", suspects, err)
	}
	for range 3 {
		silent()
		if err := one.beat(t.Context(), one.client.Load().ID()); err != nil {
			t.Fatal(err)
		}
		if suspects, err = two.sweep(t.Context(), suspects); err != nil || len(suspects) != 0 {
			t.Fatalf("suspects %v, %v", suspects, err)
		}
	}
	close(gate)
	idle(t, one)
	if tries.Load() != 1 {
		t.Errorf("%d tries", tries.Load())
	}
	// A started node sends heartbeats repeatedly.
	start(t, short)
	for range 3 {
		silent()
		waittest.For(t, "the next beat", func() bool {
			var n int
			err := two.DB.QueryRowContext(t.Context(), "SELECT count(*) FROM river_client WHERE id = ? AND updated_at > now() - INTERVAL '4 hours'", short.Node()).Scan(&n)
			if err != nil {
				t.Fatal(err)
			}
			return n == 1
		})
	}
}

// TestForgottenNodeKeepsItsWork empties the list of nodes, as a crash of the database does: a
// node that seems to be gone has one pulse to send a heartbeat.
func TestForgottenNodeKeepsItsWork(t *testing.T) {
	t.Parallel()
	if os.Getenv("TEST_POSTGRES") == "" {
		return // SQLite has one node
	}
	src := dbtest.Postgres(t)
	gate := make(chan struct{})
	one, _ := newQueue(Deps{DB: src.Open(t)})
	one.pulse = time.Hour
	Handle(one, func(context.Context, job) error { <-gate; return nil })
	start(t, one)
	defer close(gate)
	add(t, one, job{})
	waittest.For(t, "running", func() bool { return stats(t, one) == "test.job running 1" })
	if _, err := one.DB.ExecContext(t.Context(), "DELETE FROM river_client"); err != nil {
		t.Fatal(err)
	}
	two, log := newQueue(Deps{DB: src.Open(t)})
	suspects, err := two.sweep(t.Context(), nil)
	if err != nil || len(suspects) != 1 || log.ours() != "" || stats(t, two) != "test.job running 1" {
		t.Fatalf("suspects %v, %v, %s", suspects, err, log)
	}
	if err := one.beat(t.Context(), one.client.Load().ID()); err != nil {
		t.Fatal(err)
	}
	suspects, err = two.sweep(t.Context(), suspects)
	if err != nil || len(suspects) != 0 || log.ours() != "" || stats(t, two) != "test.job running 1" {
		t.Fatalf("suspects %v, %v, %s", suspects, err, log)
	}
	// A node without a heartbeat is gone.
	two.pulse = 0
	suspects, err = two.sweep(t.Context(), nil)
	if err != nil || len(suspects) != 1 {
		t.Fatal(suspects, err)
	}
	if _, err = two.sweep(t.Context(), suspects); err != nil || !strings.Contains(log.String(), "was interrupted") {
		t.Fatal(err, log)
	}
}

// TestLostJobIsRetried checks that a node retries a job that it took without noticing. It
// keeps jobs that it runs, however long, and jobs whose results it may still store.
func TestLostJobIsRetried(t *testing.T) {
	t.Parallel()
	if os.Getenv("TEST_POSTGRES") == "" {
		return // SQLite has no connection that breaks
	}
	q, log := newQueue(Deps{DB: dbtest.Postgres(t).Open(t)})
	q.pulse = 5 * time.Minute // and River frees what runs for an hour
	var tries atomic.Int64
	gate := make(chan struct{})
	Handle(q, func(_ context.Context, j job) error {
		tries.Add(1)
		if j.N == 1 {
			<-gate
		}
		return nil
	})
	start(t, q)
	add(t, q, job{N: 1})
	waittest.For(t, "running", func() bool { return tries.Load() == 1 })
	add(t, q, job{N: 2}, Delay(time.Hour))
	taken := func(age string) {
		t.Helper()
		_, err := q.DB.ExecContext(t.Context(), `UPDATE river_job SET state = 'running', attempt = 1, attempted_by = ARRAY[CAST(? AS TEXT)], attempted_at = now() - CAST(? AS INTERVAL), scheduled_at = now()
			WHERE kind = 'test.job' AND state <> 'completed'`, q.Node(), age)
		if err != nil {
			t.Fatal(err)
		}
	}
	sweep := func(suspects map[left]bool, want int) map[left]bool {
		t.Helper()
		suspects, err := q.sweep(t.Context(), suspects)
		if err != nil || len(suspects) != want {
			t.Fatalf("suspects %v, %v", suspects, err)
		}
		return suspects
	}
	taken("5 minutes")
	sweep(nil, 0)
	taken("30 minutes")
	sweep(sweep(nil, 1), 0)
	waittest.For(t, "the lost job", func() bool { return tries.Load() == 2 })
	close(gate)
	idle(t, q)
	if n := strings.Count(log.String(), "was interrupted"); n != 1 || tries.Load() != 2 {
		t.Errorf("%d tries, %d messages: %s", tries.Load(), n, log)
	}
	// The results may still be stored until the time for that is over.
	if _, err := q.DB.ExecContext(t.Context(), `UPDATE river_job SET state = 'running', finalized_at = NULL`); err != nil {
		t.Fatal(err)
	}
	taken("30 minutes")
	sweep(nil, 0)
	for id := range q.running.known(time.Hour) {
		q.running.change(id, func(run) run { return run{ended: time.Now().Add(-storing * q.pulse)} })
	}
	sweep(sweep(nil, 2), 0)
	waittest.For(t, "both again", func() bool { return tries.Load() == 4 })
}

// TestLongPeriodicJobIsKept checks that a node does not free a periodic job that it runs,
// however long, and also not when one of two runs of it has ended.
func TestLongPeriodicJobIsKept(t *testing.T) {
	t.Parallel()
	if os.Getenv("TEST_POSTGRES") == "" {
		return // SQLite has no connection that breaks
	}
	q, _ := newQueue(Deps{DB: dbtest.Postgres(t).Open(t)})
	q.pulse = 5 * time.Minute // and River frees what runs for an hour
	var tries atomic.Int64
	gate := make(chan struct{})
	q.Every("slow", time.Millisecond, func(context.Context) error {
		if tries.Add(1) == 1 {
			<-gate
		}
		return nil
	})
	start(t, q)
	waittest.For(t, "running", func() bool { return tries.Load() == 1 })
	var id int64
	if err := q.DB.QueryRowContext(t.Context(), `UPDATE river_job SET attempted_at = now() - INTERVAL '30 minutes' WHERE state = 'running' RETURNING id`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	if suspects, err := q.sweep(t.Context(), nil); err != nil || len(suspects) > 0 {
		t.Errorf("suspects %v, %v", suspects, err)
	}
	q.running.begin(id)()
	if known := q.running.known(0); !known[id] {
		t.Error("the end of another run hides the first one")
	}
	close(gate)
	waittest.For(t, "another run", func() bool { return tries.Load() > 1 })
}

func TestTwoNodesShareTheWork(t *testing.T) {
	t.Parallel()
	if os.Getenv("TEST_POSTGRES") == "" {
		return // SQLite has one node
	}
	src := dbtest.Postgres(t)
	const n = 200
	var nodes [2]*Queue
	var seen [2]runs
	begun := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	begin := [2]func(){sync.OnceFunc(func() { close(begun[0]) }), sync.OnceFunc(func() { close(begun[1]) })}
	for i := range nodes {
		nodes[i], _ = newQueue(Deps{DB: src.Open(t), Workers: 4})
		Handle(nodes[i], func(ctx context.Context, j job) error {
			begin[i]()
			<-begun[1-i] // so that both nodes run jobs
			return seen[i].do(ctx, j)
		})
	}
	for i := range n {
		add(t, nodes[0], job{N: i})
	}
	for _, node := range nodes {
		start(t, node)
	}
	idle(t, nodes[1])
	one, two := seen[0].numbers(), seen[1].numbers()
	all := append(slices.Clone(one), two...)
	slices.Sort(all)
	if len(all) != n || len(slices.Compact(all)) != n {
		t.Errorf("%d and %d runs, %d different", len(one), len(two), len(slices.Compact(all)))
	}
	if len(one) == 0 || len(two) == 0 {
		t.Errorf("the nodes did %d and %d", len(one), len(two))
	}
	// If the first node is busy, the other one runs its jobs.
	add(t, nodes[0], job{N: n})
	idle(t, nodes[0])
}

func TestRiverLogLevels(t *testing.T) {
	t.Parallel()
	var all, most testLog
	for level, log := range map[slog.Level]*testLog{slog.LevelDebug: &all, slog.LevelInfo: &most} {
		river := riverLog(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level}))).With("a", 1).WithGroup("g")
		river.Debug("a detail")
		river.Info("an info")
		river.Warn("a warning", "b", 2)
		river.Error("an error", "b", 2)
		river.Warn("jobexecutor.JobExecutor: Job errored; retrying")
	}
	if got := all.String(); strings.Count(got, "level=DEBUG") != 2 || strings.Count(got, "level=WARN") != 2 || strings.Count(got, "\n") != 4 {
		t.Error(got)
	}
	if got := most.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "a=1 g.b=2") {
		t.Error(got)
	}
}

func TestStopWaits(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q, _ := newQueue(Deps{DB: d, Workers: 2})
		gate := make(chan struct{})
		var r runs
		Handle(q, func(ctx context.Context, j job) error {
			if j.N < 2 {
				<-gate
				// Handlers may still add jobs; they run after the next start.
				err := d.Tx(ctx, func(tx *db.Tx) error { return q.Add(ctx, tx, job{N: j.N + 2}) })
				if err != nil {
					return err
				}
			}
			return r.do(ctx, j)
		})
		start(t, q)
		add(t, q, job{N: 0})
		add(t, q, job{N: 1})
		waittest.For(t, "running", func() bool { return stats(t, q) == "test.job running 2" })
		stopped := make(chan error)
		go func() {
			err := q.Stop(context.Background())
			if n := len(r.numbers()); n < 2 {
				t.Errorf("stop did not wait: %d of 2 have run", n)
			}
			stopped <- err
		}()
		waittest.For(t, "stop has begun", func() bool {
			if q.life.TryLock() {
				q.life.Unlock()
				return false
			}
			return true
		})
		close(gate)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		// The added jobs run before the workers stop or after the next start.
		ran, left := r.numbers(), ""
		if n := 4 - len(ran); n > 0 {
			left = fmt.Sprintf("test.job waiting %d", n)
		}
		if s := stats(t, q); s != left || !slices.Contains(ran, 0) || !slices.Contains(ran, 1) {
			t.Errorf("ran %v, %s", ran, s)
		}
		if err := q.Stop(t.Context()); err != nil { // again
			t.Error(err)
		}
		if err := q.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		idle(t, q)
		if got := r.numbers(); len(got) != 4 {
			t.Errorf("ran %v", got)
		}
	})
}

func TestStopTimeout(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q, log := newQueue(Deps{DB: d})
		var begun, ended atomic.Int64
		Handle(q, func(ctx context.Context, j job) error {
			if begun.Add(1) > 1 {
				return nil
			}
			<-ctx.Done()
			ended.Add(1)
			return ctx.Err()
		})
		start(t, q)
		add(t, q, job{}, Tries(1))
		waittest.For(t, "running", func() bool { return begun.Load() == 1 })
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := q.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if ended.Load() != 1 {
			t.Error("the work was left running")
		}
		// The interruption does not count as the only try.
		if err := q.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		idle(t, q)
		if s := stats(t, q); s != "" || begun.Load() != 2 || log.ours() != "" {
			t.Errorf("%s, %d runs, %s", s, begun.Load(), log)
		}
	})
}

func TestFinishedWorkIsForgotten(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		cases := []struct {
			fault    error
			minutes  int
			editable bool
		}{
			{nil, 55, true},
			{nil, 65, false},
			{errs.NotFound(""), 23 * 60, true},
			{errs.NotFound(""), 25 * 60, false},
			{errors.New("a fault"), 13 * 24 * 60, true},
			{errors.New("a fault"), 15 * 24 * 60, false},
		}
		q, _ := newQueue(Deps{DB: d})
		Handle(q, func(_ context.Context, j job) error { return cases[j.N].fault })
		for n := range cases {
			add(t, q, job{N: n}, Tries(1))
		}
		start(t, q)
		idle(t, q)
		stop(t, q)
		want := []int64{}
		for n, c := range cases {
			ago := fmt.Sprintf("datetime('now', '-%d minutes')", c.minutes)
			if d.Postgres() {
				ago = fmt.Sprintf("now() - INTERVAL '%d minutes'", c.minutes)
			}
			if err := db.ExecOne(t.Context(), d, "UPDATE river_job SET finalized_at = "+ago+" WHERE id = ?", n+1); err != nil {
				t.Fatal(err)
			}
			if c.editable {
				want = append(want, int64(n+1))
			}
		}
		if err := q.Start(t.Context()); err != nil { // a new leader cleans first
			t.Fatal(err)
		}
		left := []int64{}
		waittest.For(t, "cleaned", func() bool {
			var err error
			left, err = db.All(t.Context(), d, db.Value[int64], "SELECT id FROM river_job ORDER BY id")
			return err != nil || len(left) <= len(want)
		})
		if !slices.Equal(left, want) {
			t.Errorf("left %v, want %v", left, want)
		}
	})
}

// TestStopWhileElected stops a queue while its client receives the news that it won the
// election, which deadlocked in about half of the runs.
func TestStopWhileElected(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for range 6 {
			q, log := newQueue(Deps{DB: d})
			slow := &slowLog{Handler: slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}), elected: make(chan struct{}), stopped: make(chan struct{})}
			q.Log = slog.New(slow)
			if err := q.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-slow.elected
			time.AfterFunc(20*time.Millisecond, func() { close(slow.stopped) })
			stop(t, q)
			if t.Failed() {
				t.Fatal(log)
			}
		}
	})
}

// slowLog blocks River's election listener at its log message until the queue was elected
// and is being stopped.
type slowLog struct {
	slog.Handler
	elected, stopped chan struct{}
}

// Handle implements slog.Handler.
func (l *slowLog) Handle(ctx context.Context, r slog.Record) error {
	switch {
	case strings.HasSuffix(r.Message, ": Gained leadership"):
		close(l.elected)
	case strings.HasSuffix(r.Message, ": Election change received"):
		<-l.stopped
	}
	return l.Handler.Handle(ctx, r)
}
