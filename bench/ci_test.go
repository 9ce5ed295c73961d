package bench

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/app"
)

// BenchmarkCI measures the limits for pipelines and runners.
func BenchmarkCI(b *testing.B) {
	t := &table{}
	b.Run("drain", func(b *testing.B) { drain(b, t) })
	b.Run("push", func(b *testing.B) { pushToJob(b, t) })
	b.Run("lists", func(b *testing.B) { jobLists(b, t) })
	b.Run("idle", func(b *testing.B) { idleRunners(b, t) })
	t.finish(b)
}

const (
	drainJobs     = 10_000
	drainRunners  = 200
	drainProjects = 10
	drainPipeline = 10 // jobs per pipeline
	// updateRound is how long the update rate of the database is measured, before
	// and after.
	updateRound = 2 * time.Second
)

// drain has many runners run many jobs, and compares the rate with that of the
// database alone: how many rows it updates per second, one at a time and each in a
// durable transaction.
func drain(b *testing.B, t *table) {
	s := serve(b, "")
	var sites []site
	for i := range drainProjects {
		p := newNamedSite(b, s.Addr(), fmt.Sprintf("drain-%d", i))
		p.pushPipeline(b, 1)
		sites = append(sites, p)
	}
	awaitQueue(b, s, drainProjects)
	var runners []*runner
	for range drainRunners {
		runners = append(runners, sites[0].newRunner(b))
	}
	for b.Loop() {
		fillJobs(b, s.DB, drainJobs/drainProjects/drainPipeline, drainPipeline)
		before := updateRate(b, s)
		d := &draining{log: sampleLog(tracePatches * tracePatch), got: map[int64]bool{}}
		began := time.Now()
		var wg sync.WaitGroup
		for _, r := range runners {
			wg.Go(func() { d.work(b, r) })
		}
		wg.Wait()
		rate := float64(len(d.got)) / time.Since(began).Seconds()
		bare := (before + updateRate(b, s)) / 2
		if len(d.got) < drainJobs || d.twice.Load() > 0 {
			b.Fatalf("%d jobs of %d, %d of them duplicates", len(d.got), drainJobs, d.twice.Load())
		}
		ended := count(b, s, `SELECT count(*) FROM jobs WHERE status = 'success'`)
		if waiting := count(b, s, `SELECT count(*) FROM job_queue`); ended < len(d.got) || waiting > 0 {
			b.Fatalf("%d of %d jobs have ended, %d are pending", ended, len(d.got), waiting)
		}
		t.add(b, figure{
			name: fmt.Sprintf("%d runners, %d jobs", drainRunners, len(d.got)), measured: rate / bare, limit: 0.1, atLeast: true,
			unit: "of one-row updates", note: fmt.Sprintf("%.0f jobs/s, %.0f updates/s", rate, bare),
		})
		slices.Sort(d.took)
		p50, p99 := d.took[len(d.took)/2], d.took[len(d.took)*99/100]
		t.add(b, figure{
			name: "jobs/request, p99", measured: p99.Seconds() / p50.Seconds(), limit: 20, unit: "× p50",
			note: fmt.Sprintf("p50 %.1f ms, p99 %.1f ms", p50.Seconds()*1e3, p99.Seconds()*1e3),
		})
	}
}

// draining has the results of all runners.
type draining struct {
	log   []byte
	twice atomic.Int64

	mu   sync.Mutex
	got  map[int64]bool
	took []time.Duration // durations of requests for jobs
}

// work runs jobs until none is pending.
func (d *draining) work(b testing.TB, r *runner) {
	r.cursor = "" // without a cursor, the server does not hold the request
	for {
		began := time.Now()
		j, err := r.request()
		took := time.Since(began)
		if err != nil {
			b.Error(err)
			return
		}
		if j == nil {
			return
		}
		d.mu.Lock()
		d.took = append(d.took, took)
		if d.got[j.ID] {
			d.twice.Add(1)
		}
		d.got[j.ID] = true
		d.mu.Unlock()
		if err := r.run(j, d.log); err != nil {
			b.Error(err)
			return
		}
	}
}

// updateRate returns how many rows the database updates per second.
func updateRate(b testing.TB, s *app.Server) float64 {
	b.Helper()
	db := s.DB.SQL()
	for _, text := range []string{"DROP TABLE IF EXISTS bench_rows", "CREATE TABLE bench_rows (id BIGINT PRIMARY KEY, value BIGINT NOT NULL)",
		"INSERT INTO bench_rows VALUES (1, 0)"} {
		_, err := db.ExecContext(b.Context(), text)
		check(b, err)
	}
	began, n := time.Now(), 0
	for ; time.Since(began) < updateRound; n++ {
		_, err := db.ExecContext(b.Context(), "UPDATE bench_rows SET value = value + 1 WHERE id = 1")
		check(b, err)
	}
	return float64(n) / time.Since(began).Seconds()
}

func count(b testing.TB, s *app.Server, query string) (n int) {
	b.Helper()
	check(b, s.DB.QueryRowContext(b.Context(), query).Scan(&n))
	return n
}

// awaitQueue waits until a number of jobs is pending.
func awaitQueue(b testing.TB, s *app.Server, n int) {
	b.Helper()
	for began := time.Now(); count(b, s, `SELECT count(*) FROM job_queue`) < n; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			b.Fatal("the pushes created no jobs")
		}
	}
}

// pushToJob returns the time from the start of a push until a waiting runner has its
// job.
func pushToJob(b *testing.B, t *table) {
	s := newSite(b, serve(b, "").Addr())
	r := s.newRunner(b)
	_, err := r.request()
	check(b, err)
	log := sampleLog(tracePatches * tracePatch)
	var whole, after []float64
	for b.Loop() {
		for n := range 40 {
			type answer struct {
				job *job
				err error
				at  time.Time
			}
			got := make(chan answer, 1)
			go func() {
				j, err := r.await()
				got <- answer{j, err, time.Now()}
			}()
			began := time.Now()
			s.pushPipeline(b, n)
			pushed := time.Now()
			a := <-got
			check(b, a.err)
			whole = append(whole, a.at.Sub(began).Seconds()*1e3)
			after = append(after, max(0, a.at.Sub(pushed).Seconds()*1e3))
			check(b, r.run(a.job, log))
		}
	}
	for _, m := range []struct {
		name   string
		values []float64
	}{{"push to job", whole}, {"end of the push to job", after}} {
		slices.Sort(m.values)
		p50, p99 := m.values[len(m.values)/2], m.values[len(m.values)*99/100]
		t.add(b, figure{name: m.name + ", p50", measured: p50, informational: true, unit: "ms"})
		t.add(b, figure{name: m.name + ", p99", measured: p99, informational: true, unit: "ms", note: fmt.Sprintf("of %d pushes", len(m.values))})
	}
}
