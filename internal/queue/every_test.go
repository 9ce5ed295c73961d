package queue

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/waittest"
)

func TestEvery(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		nodes := 1
		if src.URL != "" {
			nodes = 2
		}
		var good, bad, wild atomic.Int64
		var logs []*testLog
		var queues []*Queue
		began := time.Now()
		for range nodes {
			q, log := newQueue(Deps{DB: src.Open(t)})
			q.Every("good", time.Second, func(context.Context) error { good.Add(1); return nil })
			q.Every("bad", time.Second, func(context.Context) error { bad.Add(1); return errors.New("bad luck") })
			q.Every("wild", time.Second, func(context.Context) error { wild.Add(1); panic("wild") })
			q.Every("rare", time.Hour, func(context.Context) error { t.Error("too soon"); return nil })
			start(t, q)
			queues, logs = append(queues, q), append(logs, log)
		}
		waittest.For(t, "three turns each", func() bool { return good.Load() >= 3 && bad.Load() >= 3 && wild.Load() >= 3 })
		for _, q := range queues {
			stop(t, q)
		}
		if most := int64(time.Since(began)/time.Second) + 1; good.Load() > most || bad.Load() > most || wild.Load() > most {
			t.Errorf("%d, %d, %d runs in %v", good.Load(), bad.Load(), wild.Load(), time.Since(began))
		}
		all := ""
		for _, log := range logs {
			all += log.String()
		}
		if !strings.Contains(all, "bad luck") || !strings.Contains(all, "panic: wild") {
			t.Error(all)
		}
		var n int
		if err := queues[0].DB.QueryRowContext(t.Context(), "SELECT count(*) FROM river_job").Scan(&n); err != nil || n != 4 {
			t.Errorf("%d rows, %v", n, err)
		}
	})
}

// TestEveryAfterARestart checks that the time of the next run is stored in the database.
func TestEveryAfterARestart(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var mu sync.Mutex
		turns := map[string]int{}
		passed := make(chan bool, 1) // a job that became due
		count := func(name string) int {
			mu.Lock()
			defer mu.Unlock()
			return turns[name]
		}
		// restart starts the queue with a clock that is off by some time.
		restart := func(off, every time.Duration, names ...string) *Queue {
			t.Helper()
			q, _ := newQueue(Deps{DB: d})
			if off != 0 {
				q, _ = newQueue(Deps{DB: d, Now: func() time.Time { return time.Now().Add(off) }})
			}
			Handle(q, func(context.Context, job) error { passed <- true; return nil })
			for _, name := range names {
				q.Every(name, every, func(context.Context) error {
					mu.Lock()
					defer mu.Unlock()
					turns[name]++
					return nil
				})
			}
			if err := q.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			return q
		}
		stop(t, restart(-25*time.Hour, 24*time.Hour, "missed", "dropped"))
		stop(t, restart(-23*time.Hour, 24*time.Hour, "later"))
		q := restart(0, 24*time.Hour, "missed", "later")
		waittest.For(t, "the turn that was missed", func() bool { return count("missed") == 1 })
		idle(t, q)
		add(t, q, job{}, Delay(time.Second))
		waittest.Receive(t, "work that becomes due", passed)
		idle(t, q)
		stop(t, q)
		if count("missed") != 1 || count("later") != 0 || count("dropped") != 0 {
			t.Errorf("runs: %v", turns)
		}
		// The next run is in a day; then a newer release shortens the interval to an hour.
		stop(t, restart(0, time.Hour, "missed"))
		q = restart(65*time.Minute, time.Hour, "missed")
		waittest.For(t, "the turn of the shorter period", func() bool { return count("missed") > 1 })
		stop(t, q)
		if count("later") != 0 {
			t.Error("a run was brought forward")
		}
	})
}
