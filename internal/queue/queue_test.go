package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/errs"
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

// testLog is where a queue writes its log in a test.
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

func newQueue(d Deps) (*Queue, *testLog) {
	log := &testLog{}
	d.Log = slog.New(slog.NewTextHandler(log, nil))
	q := New(d)
	q.quick = true
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
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
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

func idle(t *testing.T, q *Queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := q.Idle(ctx); err != nil {
		t.Fatalf("idle: %v", err)
	}
}

func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
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
			time.Sleep(50 * time.Millisecond)
			if slices.Contains(r.numbers(), 3) {
				t.Error("work ran before the commit")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		idle(t, q)
		got := r.numbers()
		slices.Sort(got)
		if !slices.Equal(got, []int{1, 3, 4, 5}) {
			t.Errorf("ran %v", got)
		}
		if text := r.jobs[len(r.jobs)-1].Text; text != `it's "ü"` {
			t.Errorf("the text became %s", text)
		}
		stop(t, q)
		if log.String() != "" {
			t.Errorf("the log is not quiet: %s", log)
		}
		if s := stats(t, q); s != "" {
			t.Errorf("left: %s", s)
		}
	})
}

func TestWorkStartsAtOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q, _ := newQueue(Deps{DB: d})
		began := make(chan time.Time, 1)
		Handle(q, func(context.Context, job) error { began <- time.Now(); return nil })
		start(t, q)
		var waits []time.Duration
		for n := range 9 {
			time.Sleep(20 * time.Millisecond)
			add(t, q, job{N: n})
			committed := time.Now()
			waits = append(waits, (<-began).Sub(committed))
		}
		slices.Sort(waits)
		// Polling alone would take half a second in the middle.
		if waits[4] > 250*time.Millisecond {
			t.Errorf("work waited %v", waits)
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
		until(t, "all states", func() bool {
			return stats(t, q) == "test.job failed 1, test.job given_up 2, test.job retry 3"
		})
		for _, want := range []string{"work given up", "User not found", "the name is wrong", "the disk is full", "oh dear", "queue_test.go", "level=ERROR", "failed for good"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not tell: %s", want)
			}
		}
		if n := strings.Count(log.String(), "the disk is full"); n != 1 {
			t.Errorf("the log tells %d times of one error:\n%s", n, log)
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
		start(t, q)
		add(t, q, job{N: 1})
		// The pauses are 1, 16 and 81 seconds, a tenth more or less.
		for i, pause := range []time.Duration{time.Second, 16 * time.Second, 81 * time.Second} {
			until(t, "next try", func() bool { return len(r.numbers()) == i+1 })
			idle(t, q)
			clock.forward(pause * 8 / 10)
			time.Sleep(1200 * time.Millisecond) // a poll has passed
			if n := len(r.numbers()); n != i+1 {
				t.Fatalf("try %d came too soon", n)
			}
			if s := stats(t, q); s != "test.job retry 1" {
				t.Error(s)
			}
			clock.forward(pause * 4 / 10)
		}
		until(t, "last try", func() bool { return len(r.numbers()) == 4 })
		idle(t, q)
		if s := stats(t, q); s != "" {
			t.Error(s)
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

func TestUnique(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q, _ := newQueue(Deps{DB: d, Workers: 4})
		var r runs
		gate := make(chan struct{})
		Handle(q, func(ctx context.Context, j job) error { <-gate; return r.do(ctx, j) })
		Handle(q, func(context.Context, other) error { return nil })
		running := func(n int) {
			t.Helper()
			until(t, fmt.Sprint(n, " running"), func() bool { return strings.Contains(stats(t, q), fmt.Sprint("test.job running ", n)) })
		}
		for range 3 {
			add(t, q, job{N: 1}, Unique())
			add(t, q, other{}, Unique())
		}
		add(t, q, job{N: 2}, Unique(), Delay(time.Hour))
		add(t, q, job{N: 2}, Unique())
		if s := stats(t, q); s != "test.job waiting 2, test.other waiting 1" {
			t.Error(s)
		}
		start(t, q)
		running(1)
		// While it runs the same work is added once more, and no further
		// while that waits: it gets its turn at once, so there are workers
		// for two, and the third comes in while both run.
		add(t, q, job{N: 1}, Unique())
		running(2)
		add(t, q, job{N: 1}, Unique())
		running(3)
		close(gate)
		idle(t, q)
		if got := r.numbers(); !slices.Equal(got, []int{1, 1, 1}) {
			t.Errorf("ran %v", got)
		}
		add(t, q, job{N: 1}, Unique())
		idle(t, q)
		if got := r.numbers(); len(got) != 4 {
			t.Errorf("ran %v: work that is over stands in the way", got)
		}
		if s := stats(t, q); s != "test.job waiting 1" {
			t.Error(s)
		}
	})
}

func TestUniqueWhileRunningWaitsOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q, _ := newQueue(Deps{DB: d, Workers: 1})
		var r runs
		gate := make(chan struct{})
		Handle(q, func(ctx context.Context, j job) error { <-gate; return r.do(ctx, j) })
		Handle(q, func(ctx context.Context, _ other) error { <-gate; return nil })
		start(t, q)
		add(t, q, job{N: 1}, Unique())
		add(t, q, other{}, Unique())
		until(t, "running", func() bool { return strings.Contains(stats(t, q), "test.job running 1") })
		for range 4 {
			add(t, q, job{N: 1}, Unique())
			add(t, q, other{}, Unique())
		}
		if s := stats(t, q); s != "test.job running 1, test.job waiting 1, test.other waiting 1" {
			t.Error(s)
		}
		close(gate)
		idle(t, q)
		if got := r.numbers(); !slices.Equal(got, []int{1, 1}) {
			t.Errorf("ran %v", got)
		}
	})
}

func TestPriorityAndDelay(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q, _ := newQueue(Deps{DB: d, Workers: 1})
		var r runs
		Handle(q, r.do)
		began := time.Now()
		add(t, q, job{N: 4}, Priority(4))
		add(t, q, job{N: 2}, Priority(2))
		add(t, q, job{N: 1})
		add(t, q, job{N: 9}, At(began.Add(time.Hour)))
		add(t, q, job{N: 5}, Delay(2*time.Second))
		start(t, q)
		until(t, "three", func() bool { return len(r.numbers()) >= 3 })
		idle(t, q)
		if got := r.numbers(); !slices.Equal(got, []int{1, 2, 4}) {
			t.Errorf("ran %v", got)
		}
		until(t, "the delayed", func() bool { return len(r.numbers()) == 4 })
		if waited := time.Since(began); waited < 2*time.Second || r.numbers()[3] != 5 {
			t.Errorf("ran %v after %v", r.numbers(), waited)
		}
		idle(t, q)
		if s := stats(t, q); s != "test.job waiting 1" {
			t.Error(s)
		}
	})
}

func TestLanes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q, _ := newQueue(Deps{DB: d, Workers: 1})
		q.Lane("slow", 2)
		gate := make(chan struct{})
		var r runs
		Handle(q, r.do)
		Handle(q, func(context.Context, other) error { <-gate; return nil })
		start(t, q)
		for range 3 {
			add(t, q, other{}, In("slow"))
		}
		until(t, "a full lane", func() bool { return stats(t, q) == "test.other running 2, test.other waiting 1" })
		add(t, q, job{N: 1})
		until(t, "the other lane", func() bool { return len(r.numbers()) == 1 })
		if s := stats(t, q); !strings.Contains(s, "test.other running 2, test.other waiting 1") {
			t.Error(s)
		}
		close(gate)
		idle(t, q)
	})
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q, log := newQueue(Deps{DB: d})
		bounds := make(chan time.Duration, 2)
		Handle(q, func(ctx context.Context, _ job) error {
			end, _ := ctx.Deadline()
			bounds <- time.Until(end)
			<-ctx.Done()
			return ctx.Err()
		}, Timeout(100*time.Millisecond))
		Handle(q, func(ctx context.Context, _ other) error {
			end, _ := ctx.Deadline()
			bounds <- time.Until(end)
			return nil
		})
		start(t, q)
		add(t, q, job{N: 1})
		if b := <-bounds; b > 100*time.Millisecond {
			t.Error(b)
		}
		until(t, "retry", func() bool { return stats(t, q) == "test.job retry 1" })
		if !strings.Contains(log.String(), "deadline exceeded") {
			t.Error(log)
		}
		add(t, q, other{})
		if b := <-bounds; b > defaultTimeout || b < defaultTimeout-time.Minute {
			t.Error(b)
		}
	})
}

func TestRefused(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q, _ := newQueue(Deps{DB: d})
		Handle(q, func(context.Context, job) error { return nil })
		for name, f := range map[string]func(){
			"two handlers": func() { Handle(q, func(context.Context, job) error { return nil }) },
			"a second name": func() {
				q.Every("a", time.Hour, nil)
				q.Every("a", time.Hour, nil)
			},
		} {
			if !panics(f) {
				t.Errorf("%s: no panic", name)
			}
		}
		start(t, q)
		if err := q.Start(t.Context()); err == nil {
			t.Error("started twice")
		}
		for name, f := range map[string]func(){
			"a late handler": func() { Handle(q, func(context.Context, other) error { return nil }) },
			"a late lane":    func() { q.Lane("x", 1) },
			"a late turn":    func() { q.Every("b", time.Hour, nil) },
		} {
			if !panics(f) {
				t.Errorf("%s: no panic", name)
			}
		}
		for name, c := range map[string]struct {
			work Work
			opts []AddOption
		}{
			"no handler":    {other{}, nil},
			"no lane":       {job{}, []AddOption{In("nowhere")}},
			"no struct":     {text("x"), nil},
			"no JSON":       {broken{}, nil},
			"bad priority":  {job{}, []AddOption{Priority(9)}},
			"no tries left": {job{}, []AddOption{Tries(-1)}},
		} {
			err := d.Tx(t.Context(), func(tx *db.Tx) error { return q.Add(t.Context(), tx, c.work, c.opts...) })
			if err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		if s := stats(t, q); s != "" {
			t.Error(s)
		}
	})
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

type text string

func (text) Kind() string { return "test.job" }

type broken struct{ F func() }

func (broken) Kind() string { return "test.job" }
