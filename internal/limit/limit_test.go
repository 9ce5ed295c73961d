package limit

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// clock is a clock that tests set.
type clock struct{ nanos atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.nanos.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.nanos.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.nanos.Add(int64(d)) }

func newLimiter(keys int) (*Limiter, *clock) {
	c := newClock()
	return New(Deps{Now: c.now, Keys: keys}), c
}

func (l *Limiter) size() int {
	n := 0
	for i := range l.shards {
		n += len(l.shards[i].buckets)
	}
	return n
}

func TestAllow(t *testing.T) {
	t.Parallel()
	l, c := newLimiter(1000)
	rate := Rate{Name: "sign_in", Requests: 3, Period: time.Minute}
	type answer struct {
		OK                  bool
		Observed, Remaining int
		Reset, RetryAfter   time.Duration
	}
	for i, step := range []struct {
		wait time.Duration
		want answer
	}{
		{0, answer{true, 1, 2, 20 * time.Second, 0}},
		{0, answer{true, 2, 1, 40 * time.Second, 0}},
		{0, answer{true, 3, 0, 60 * time.Second, 0}},
		{0, answer{false, 4, 0, 60 * time.Second, 20 * time.Second}},
		{5 * time.Second, answer{false, 5, 0, 55 * time.Second, 15 * time.Second}},
		// Refused requests do not extend the wait.
		{15 * time.Second, answer{true, 3, 0, 60 * time.Second, 0}},
		{0, answer{false, 4, 0, 60 * time.Second, 20 * time.Second}},
		{45 * time.Second, answer{true, 2, 1, 35 * time.Second, 0}},
		{time.Hour, answer{true, 1, 2, 20 * time.Second, 0}},
	} {
		c.advance(step.wait)
		d := l.Allow("10.0.0.1 root", rate)
		got := answer{d.OK, d.Observed, d.Remaining, d.Reset.Sub(c.now()), d.RetryAfter}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("request %d (-want +got):\n%s", i, diff)
		}
		if d.Limit != 3 {
			t.Errorf("request %d: limit %d", i, d.Limit)
		}
	}
}

func TestBucketsAreApart(t *testing.T) {
	t.Parallel()
	l, _ := newLimiter(1000)
	a := Rate{Name: "a", Requests: 1, Period: time.Minute}
	b := Rate{Name: "b", Requests: 1, Period: time.Minute}
	for _, ask := range []struct {
		key  string
		rate Rate
		want bool
	}{
		{"x", a, true}, {"y", a, true}, {"x", b, true},
		{"x", a, false}, {"y", a, false}, {"x", b, false},
		// The pair is the key, not the concatenation of both texts.
		{"ax", Rate{Name: "", Requests: 1, Period: time.Minute}, true},
	} {
		if d := l.Allow(ask.key, ask.rate); d.OK != ask.want {
			t.Errorf("Allow(%q, %q) = %v", ask.key, ask.rate.Name, d.OK)
		}
	}
}

func TestNoLimit(t *testing.T) {
	t.Parallel()
	l, _ := newLimiter(1000)
	for _, rate := range []Rate{{}, {Name: "x", Requests: 5}, {Name: "x", Period: time.Minute}, {Requests: -1, Period: time.Minute}} {
		for range 3 {
			d := l.Allow("k", rate)
			if d != (Decision{OK: true}) {
				t.Errorf("%+v: %+v", rate, d)
			}
			h := http.Header{}
			d.Headers(h)
			if len(h) != 0 {
				t.Errorf("%+v: headers %v", rate, h)
			}
		}
	}
	if l.size() != 0 {
		t.Errorf("%d buckets for no limit", l.size())
	}
}

// TestChangedRate reduces the rate of a bucket with a debt: no one waits longer than
// the period of the new rate.
func TestChangedRate(t *testing.T) {
	t.Parallel()
	l, c := newLimiter(1000)
	for range 10 {
		l.Allow("k", Rate{Name: "x", Requests: 10, Period: time.Hour})
	}
	short := Rate{Name: "x", Requests: 2, Period: 10 * time.Second}
	if d := l.Allow("k", short); d.OK || d.RetryAfter != 5*time.Second {
		t.Errorf("after the change: %+v", d)
	}
	c.advance(5 * time.Second)
	if d := l.Allow("k", short); !d.OK {
		t.Errorf("after the wait: %+v", d)
	}
}

func TestClockSetBack(t *testing.T) {
	t.Parallel()
	l, c := newLimiter(1000)
	rate := Rate{Name: "x", Requests: 1, Period: time.Minute}
	l.Allow("k", rate)
	c.advance(-24 * time.Hour)
	if d := l.Allow("k", rate); d.OK || d.RetryAfter > time.Minute {
		t.Errorf("%+v; want a wait of a minute at most", d)
	}
}

// TestNeverTooMany sends requests at random times. In no interval are more allowed
// than a full bucket and the requests refilled in it, and a request after RetryAfter
// is allowed.
func TestNeverTooMany(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rate := Rate{
			Name:     "x",
			Requests: rapid.IntRange(1, 50).Draw(t, "requests"),
			Period:   time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "period")),
		}
		l, c := newLimiter(1000)
		one := max(1, rate.Period/time.Duration(rate.Requests))
		var passed []time.Time
		for range rapid.IntRange(1, 200).Draw(t, "asks") {
			c.advance(time.Duration(rapid.Int64Range(0, 3*int64(one)).Draw(t, "wait")))
			d := l.Allow("k", rate)
			if d.Remaining < 0 || d.Remaining > rate.Requests || d.OK != (d.RetryAfter == 0) || d.OK != (d.Observed <= d.Limit) {
				t.Fatalf("%+v", d)
			}
			if !d.OK {
				c.advance(d.RetryAfter)
				if d := l.Allow("k", rate); !d.OK {
					t.Fatalf("refused after RetryAfter: %+v", d)
				}
			}
			passed = append(passed, c.now())
		}
		for i, from := range passed {
			for j := i; j < len(passed); j++ {
				most := rate.Requests + int(passed[j].Sub(from)/one)
				if n := j - i + 1; n > most {
					t.Fatalf("%d passed in %v, at most %d may", n, passed[j].Sub(from), most)
				}
			}
		}
	})
}

func TestIdleBucketsGo(t *testing.T) {
	t.Parallel()
	l, c := newLimiter(1 << 20)
	rate := Rate{Name: "x", Requests: 10, Period: time.Minute}
	for i := range 50_000 {
		l.Allow(strconv.Itoa(i), rate)
		c.advance(10 * time.Millisecond)
	}
	// Each bucket is idle after 6 s, which is after 600 other keys.
	if n := l.size(); n > 2000 {
		t.Errorf("%d buckets are kept, about 600 are in use", n)
	}
}

func TestBoundedKeys(t *testing.T) {
	t.Parallel()
	const keys = 3200
	l, _ := newLimiter(keys)
	rate := Rate{Name: "x", Requests: 10, Period: time.Minute}
	for range rate.Requests {
		l.Allow("busy", rate)
	}
	for i := range 20 * keys {
		l.Allow(fmt.Sprint("new ", i), rate)
		if n := l.size(); i%1000 == 0 && n > keys {
			t.Fatalf("%d buckets after %d keys, at most %d may be", n, i, keys)
		}
	}
	if n := l.size(); n > keys || n < keys/2 {
		t.Errorf("%d buckets, want nearly %d", n, keys)
	}
	// Many new keys do not remove a bucket that is over its limit.
	if d := l.Allow("busy", rate); d.OK {
		t.Error("the busy bucket was dropped for idle ones")
	}
}

func TestTinyLimiter(t *testing.T) {
	t.Parallel()
	rate := Rate{Name: "x", Requests: 1, Period: time.Minute}
	tiny, _ := newLimiter(1)
	usual, _ := newLimiter(0)
	for i := range 1000 {
		tiny.Allow(strconv.Itoa(i), rate)
		usual.Allow(strconv.Itoa(i), rate)
	}
	if n := tiny.size(); n > shardCount {
		t.Errorf("%d buckets with a limit of one", n)
	}
	if n := usual.size(); n != 1000 {
		t.Errorf("%d buckets by default, want 1000", n)
	}
}

// TestAtOnce sends many requests concurrently: exactly the quota is allowed.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	l, _ := newLimiter(100_000)
	rate := Rate{Name: "x", Requests: 500, Period: time.Minute}
	var passed, other atomic.Int64
	var wg sync.WaitGroup
	for g := range 32 {
		wg.Go(func() {
			for i := range 100 {
				if l.Allow("k", rate).OK {
					passed.Add(1)
				}
				if l.Allow(fmt.Sprint(g, i), rate).OK {
					other.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if passed.Load() != 500 || other.Load() != 3200 {
		t.Errorf("%d and %d passed, want 500 and 3200", passed.Load(), other.Load())
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rate Rate
		asks int
		wait time.Duration
		want map[string]string
	}{
		"first": {
			Rate{Name: "throttle_api", Requests: 60, Period: time.Minute}, 1, 0,
			map[string]string{"Name": "throttle_api", "Limit": "60", "Observed": "1", "Remaining": "59",
				"Reset": "1772366401", "ResetTime": "Sun, 01 Mar 2026 12:00:01 GMT"},
		},
		"refused": {
			Rate{Name: "sign_in", Requests: 10, Period: time.Minute}, 12, 0,
			map[string]string{"Name": "sign_in", "Limit": "10", "Observed": "12", "Remaining": "0",
				"Reset": "1772366460", "ResetTime": "Sun, 01 Mar 2026 12:01:00 GMT", "Retry-After": "6"},
		},
		"scaled from an hour, rounded up": {
			Rate{Name: "export", Requests: 100, Period: time.Hour}, 1, 0,
			map[string]string{"Name": "export", "Limit": "2", "Observed": "1", "Remaining": "99",
				"Reset": "1772366436", "ResetTime": "Sun, 01 Mar 2026 12:00:36 GMT"},
		},
		"scaled from a second": {
			Rate{Name: "burst", Requests: 5, Period: time.Second}, 1, 0,
			map[string]string{"Name": "burst", "Limit": "300", "Observed": "1", "Remaining": "4",
				"Reset": "1772366401", "ResetTime": "Sun, 01 Mar 2026 12:00:01 GMT"},
		},
		"a short wait is one second": {
			Rate{Name: "burst", Requests: 5, Period: time.Second}, 6, 0,
			map[string]string{"Name": "burst", "Limit": "300", "Observed": "6", "Remaining": "0",
				"Reset": "1772366401", "ResetTime": "Sun, 01 Mar 2026 12:00:01 GMT", "Retry-After": "1"},
		},
		"a wait is rounded up": {
			Rate{Name: "sign_in", Requests: 10, Period: time.Minute}, 11, 300 * time.Millisecond,
			map[string]string{"Name": "sign_in", "Limit": "10", "Observed": "12", "Remaining": "0",
				"Reset": "1772366460", "ResetTime": "Sun, 01 Mar 2026 12:01:00 GMT", "Retry-After": "6"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, c := newLimiter(1000)
			var d Decision
			for range tt.asks {
				d = l.Allow("k", tt.rate)
			}
			if tt.wait > 0 {
				c.advance(tt.wait)
				d = l.Allow("k", tt.rate)
			}
			h := http.Header{}
			d.Headers(h)
			want := http.Header{}
			for name, value := range tt.want {
				if name != "Retry-After" {
					name = "RateLimit-" + name
				}
				want.Set(name, value)
			}
			if diff := cmp.Diff(want, h); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func BenchmarkAllow(b *testing.B) {
	l := New(Deps{Now: time.Now, Keys: 100_000})
	rate := Rate{Name: "x", Requests: 600, Period: time.Minute}
	keys := make([]string, 4096)
	for i := range keys {
		keys[i] = fmt.Sprintf("10.0.%d.%d", i/256, i%256)
	}
	var n atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		i := int(n.Add(1)) * 997
		for pb.Next() {
			i++
			l.Allow(keys[i%len(keys)], rate)
		}
	})
}

// BenchmarkAllowFlood measures the worst case: every key is new and no bucket is
// idle.
func BenchmarkAllowFlood(b *testing.B) {
	l := New(Deps{Now: time.Now, Keys: 100_000})
	rate := Rate{Name: "x", Requests: 1, Period: time.Hour}
	i := 0
	for b.Loop() {
		i++
		l.Allow(strconv.Itoa(i), rate)
	}
}
