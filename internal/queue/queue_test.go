package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/errs"
	"svc/internal/waittest"
)

// job is the work of most tests.
type job struct {
	N    int
	Text string `json:"text,omitempty"`
}

func (job) Kind() string { return "test.job" }

// other is work of another kind.
type other struct{}

func (other) Kind() string { return "test.other" }

// runs collects what has run.
type runs struct {
	mu   sync.Mutex
	jobs []job
}

func (r *runs) do(_ context.Context, j job) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.jobs = append(r.jobs, j)
	return nil
}

func (r *runs) numbers() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := []int{}
	for _, j := range r.jobs {
		n = append(n, j.N)
	}
	return n
}

// testLog is the log of a queue in a test.
type testLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *testLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *testLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// fromRiver matches the log lines of River, which warns of errors that it retries itself,
// for example while it is being stopped on a busy machine.
var fromRiver = regexp.MustCompile(`level=WARN msg="\w+\.\w+: `)

// ours returns the log without the lines of River.
func (l *testLog) ours() string {
	var own strings.Builder
	for line := range strings.Lines(l.String()) {
		if !fromRiver.MatchString(line) {
			own.WriteString(line)
		}
	}
	return own.String()
}

func newQueue(d Deps) (*Queue, *testLog) {
	log := &testLog{}
	d.Log = slog.New(slog.NewTextHandler(log, nil))
	q := New(d)
	return q, log
}

func start(t *testing.T, q *Queue) {
	t.Helper()
	if err := q.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, q) })
}

func stop(t *testing.T, q *Queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := q.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func add(t *testing.T, q *Queue, work Work, opts ...AddOption) {
	t.Helper()
	if err := q.DB.Tx(t.Context(), func(tx *db.Tx) error { return q.Add(t.Context(), tx, work, opts...) }); err != nil {
		t.Fatal(err)
	}
}

// idle waits until all jobs are done and their rows are marked.
func idle(t *testing.T, q *Queue) {
	t.Helper()
	waittest.For(t, "jobs are marked as done", func() bool {
		if err := q.Idle(t.Context()); err != nil {
			t.Fatalf("idle: %v", err)
		}
		return !strings.Contains(stats(t, q), string(Running))
	})
}

func stats(t *testing.T, q *Queue) string {
	t.Helper()
	counts, err := q.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := []string{}
	for _, c := range counts {
		text = append(text, fmt.Sprintf("%s %s %d", c.Kind, c.State, c.N))
	}
	return strings.Join(text, ", ")
}

func TestWorkRunsAfterCommitOnly(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q, log := newQueue(Deps{DB: d})
		var r runs
		Handle(q, r.do)
		add(t, q, job{N: 1}) // before the start
		start(t, q)
		fault := errors.New("undone")
		err := d.Tx(t.Context(), func(tx *db.Tx) error {
			if err := q.Add(t.Context(), tx, job{N: 2}); err != nil {
				return err
			}
			return fault
		})
		if err != fault {
			t.Error(err)
		}
		err = d.Tx(t.Context(), func(tx *db.Tx) error {
			for n := 3; n < 6; n++ {
				if err := q.Add(t.Context(), tx, job{N: n, Text: `it's "ü"`}); err != nil {
					return err
				}
			}
			if d.Postgres() { // on SQLite no one else can write now
				add(t, q, job{N: 6})
				waittest.For(t, "work that was added later", func() bool { return slices.Contains(r.numbers(), 6) })
			}
			if slices.Contains(r.numbers(), 3) {
				t.Error("work ran before the commit")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		idle(t, q)
		got := slices.DeleteFunc(r.numbers(), func(n int) bool { return n == 6 })
		slices.Sort(got)
		if !slices.Equal(got, []int{1, 3, 4, 5}) {
			t.Errorf("ran %v", got)
		}
		for _, j := range r.jobs { // in any order
			if j.N > 1 && j.N < 6 && j.Text != `it's "ü"` {
				t.Errorf("the text became %s", j.Text)
			}
		}
		stop(t, q)
		if log.ours() != "" {
			t.Errorf("the log is not quiet: %s", log)
		}
		if s := stats(t, q); s != "" {
			t.Errorf("left: %s", s)
		}
	})
}

// TestWorkStartsAtOnce checks that adding a job wakes its lane, without waiting for the
// next poll.
func TestWorkStartsAtOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q, _ := newQueue(Deps{DB: d})
		q.poll = time.Hour
		began := make(chan int, 1)
		Handle(q, func(_ context.Context, j job) error { began <- j.N; return nil })
		start(t, q)
		for n := range 9 {
			add(t, q, job{N: n})
			if got := waittest.Receive(t, "work begins before the next poll", began); got != n {
				t.Fatalf("work %d began, not %d", got, n)
			}
		}
	})
}

func TestErrors(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q, log := newQueue(Deps{DB: d})
		Handle(q, func(_ context.Context, j job) error {
			switch j.N {
			case 1:
				return fmt.Errorf("delete: %w", errs.NotFound("User"))
			case 2:
				return errs.Invalid("the name is wrong")
			case 3:
				return errs.Unavailable("the disk is full")
			case 4:
				panic("oh dear")
			}
			return errors.New("a fault")
		})
		start(t, q)
		for n := 1; n < 6; n++ {
			add(t, q, job{N: n})
		}
		add(t, q, job{N: 6}, Tries(1))
		waittest.For(t, "all states", func() bool {
			return stats(t, q) == "test.job failed 1, test.job given_up 2, test.job retry 3"
		})
		for _, want := range []string{"background job discarded", "User not found", "the name is wrong", "the disk is full", "oh dear", "queue_test.go", "level=ERROR", "failed permanently"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log lacks %q", want)
			}
		}
		told := 0
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, "try=1") && strings.Contains(line, "the disk is full") {
				told++
			}
		}
		if told != 1 {
			t.Errorf("the log tells %d times of the error of one try:\n%s", told, log)
		}
	})
}

// now is a clock that tests set.
type now struct {
	mu sync.Mutex
	at time.Time
}

func (n *now) Now() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.at
}

func (n *now) forward(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.at = n.at.Add(d)
}

func TestRetry(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		clock := &now{at: time.Date(2031, 5, 1, 12, 0, 0, 0, time.Local)}
		q, _ := newQueue(Deps{DB: d, Now: clock.Now})
		var r runs
		Handle(q, func(ctx context.Context, j job) error {
			r.do(ctx, j)
			if len(r.numbers()) < 4 {
				return errors.New("not yet")
			}
			return nil
		})
		var passed atomic.Int64 // work that became due just before the next try
		Handle(q, func(context.Context, other) error { passed.Add(1); return nil })
		start(t, q)
		add(t, q, job{N: 1})
		// The pauses are 1, 16 and 81 seconds, a tenth more or less.
		for i, pause := range []time.Duration{time.Second, 16 * time.Second, 81 * time.Second} {
			waittest.For(t, "next try", func() bool { return len(r.numbers()) == i+1 })
			idle(t, q)
			add(t, q, other{}, Delay(pause*7/10))
			clock.forward(pause * 8 / 10)
			waittest.For(t, "other work becomes due", func() bool { return passed.Load() == int64(i+1) })
			idle(t, q)
			if n := len(r.numbers()); n != i+1 {
				t.Fatalf("try %d came too soon", n)
			}
			if s := stats(t, q); s != "test.job retry 1" {
				t.Error(s)
			}
			clock.forward(pause * 4 / 10)
		}
		waittest.For(t, "last try", func() bool { return len(r.numbers()) == 4 })
		idle(t, q)
		if s := stats(t, q); s != "" {
			t.Error(s)
		}
	})
}

// TestPostpone postpones work more often than it has tries.
func TestPostpone(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q, log := newQueue(Deps{DB: d})
		var r runs
		Handle(q, func(ctx context.Context, j job) error {
			r.do(ctx, j)
			if len(r.numbers()) < 4 {
				return Postpone(time.Millisecond)
			}
			return nil
		})
		start(t, q)
		add(t, q, job{N: 1}, Tries(2))
		waittest.For(t, "the work", func() bool { return len(r.numbers()) == 4 })
		idle(t, q)
		if s := stats(t, q); s != "" {
			t.Error(s)
		}
		if text := log.String(); strings.Contains(text, "failed") {
			t.Error(text)
		}
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	at := time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC)
	var total time.Duration
	for try := 1; try < defaultTries; try++ {
		row := jobRow(try)
		want := min(time.Duration(try*try*try*try)*time.Second, 6*time.Hour)
		got := backoff{func() time.Time { return at }}.NextRetry(row).Sub(at)
		if got < want*9/10 || got > want*11/10 {
			t.Errorf("after try %d: %v, not %v", try, got, want)
		}
		total += want
	}
	if total < 8*time.Hour || total > 16*time.Hour {
		t.Errorf("work fails for good after %v", total)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q, log := newQueue(Deps{DB: d})
		first, bound := make(chan time.Duration, 1), make(chan time.Duration, 1)
		Handle(q, func(ctx context.Context, _ job) error {
			end, _ := ctx.Deadline()
			select {
			case first <- time.Until(end):
			default: // it is tried again
			}
			<-ctx.Done()
			return ctx.Err()
		}, Timeout(100*time.Millisecond))
		Handle(q, func(ctx context.Context, _ other) error {
			end, _ := ctx.Deadline()
			bound <- time.Until(end)
			return nil
		})
		start(t, q)
		add(t, q, job{N: 1})
		if b := <-first; b > 100*time.Millisecond {
			t.Error(b)
		}
		waittest.For(t, "retry", func() bool { return stats(t, q) == "test.job retry 1" })
		if !strings.Contains(log.String(), "deadline exceeded") {
			t.Error(log)
		}
		add(t, q, other{})
		if b := <-bound; b > defaultTimeout || b < defaultTimeout-time.Minute {
			t.Error(b)
		}
	})
}

// TestIdle has jobs that add the next one: Idle waits for all of them, although it
// does not wait until their rows are marked.
func TestIdle(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q, _ := newQueue(Deps{DB: d})
		var runs atomic.Int64
		Handle(q, func(ctx context.Context, j job) error {
			runs.Add(1)
			if j.N == 0 {
				return nil
			}
			return q.DB.Tx(ctx, func(tx *db.Tx) error { return q.Add(ctx, tx, job{N: j.N - 1}) })
		})
		start(t, q)
		for round := int64(1); round <= 20; round++ {
			add(t, q, job{N: 9})
			if err := q.Idle(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := runs.Load(); got != round*10 {
				t.Fatalf("round %d: %d runs", round, got)
			}
		}
	})
}

func TestRecent(t *testing.T) {
	t.Parallel()
	var r recent
	n := int64(len(r.ring))
	for id := int64(1); id <= n+1; id++ {
		r.add(id)
	}
	if ids := r.copy(); int64(len(ids)) != n || ids[1] || !ids[2] || !ids[n+1] {
		t.Errorf("%d IDs, %v", len(ids), ids[1])
	}
}
