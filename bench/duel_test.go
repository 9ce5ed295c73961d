package bench

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"
)

// duel measures git and svc alternately.
type duel struct {
	rounds int
	before func() // is not measured
	git    func()
	ours   func()
	again  float64 // limit of the ratio for repeated requests; 0 means no limit
}

// run returns the shortest times, in seconds, because other load on the machine only
// makes measurements longer.
func (d duel) run() (theirs, ours float64) {
	timed := func(f func()) float64 {
		if d.before != nil {
			d.before()
		}
		began := time.Now()
		f()
		return time.Since(began).Seconds()
	}
	var a, z []float64
	for range d.rounds {
		a = append(a, timed(d.git))
		z = append(z, timed(d.ours))
	}
	return slices.Min(a), slices.Min(z)
}

// figure runs a duel and returns its result.
func (d duel) figure(b *testing.B, t *table, name, against string, limit float64) {
	b.Helper()
	var theirs, ours float64
	add := func(b *testing.B, name string, limit float64) {
		t.add(b, figure{
			name: name, measured: ours / theirs, limit: limit, unit: "of " + against,
			note: fmt.Sprintf("%.2f of %.2f ms, the best of %d", ours*1e3, theirs*1e3, d.rounds),
		})
	}
	b.Run(name, func(b *testing.B) {
		for b.Loop() {
			theirs, ours = d.run()
		}
		add(b, name, limit)
	})
	if d.again == 0 || theirs == 0 { // the first sub-benchmark was not selected with -bench
		return
	}
	b.Run(name+", again", func(b *testing.B) {
		d.ours()
		for b.Loop() {
			_, ours = duel{rounds: d.rounds, git: func() {}, ours: d.ours}.run()
		}
		add(b, name+", again", d.again)
	})
}

func TestDuel(t *testing.T) {
	t.Parallel()
	var order bytes.Buffer
	note := func(s string) func() { return func() { order.WriteString(s) } }
	theirs, ours := duel{2, note("-"), note("g"), note("o"), 0}.run()
	if order.String() != "-g-o-g-o" || theirs < 0 || ours < 0 {
		t.Errorf("%q, %v, %v", order.String(), theirs, ours)
	}
}
