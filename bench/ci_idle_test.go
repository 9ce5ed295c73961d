package bench

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

const (
	waitingRunners = 1000
	// arrival is how long to wait until all requests have arrived, and waitingTime
	// how long they are measured, which is longer than a request is held.
	arrival     = 5 * time.Second
	waitingTime = 60 * time.Second
)

// idleRunners measures a server that only holds requests of runners.
func idleRunners(b *testing.B, t *table) {
	var share, grown []float64
	for b.Loop() {
		addr := freeAddr(b)
		p := start(b, b.TempDir(), addr)
		s := newSite(b, addr)
		r := s.newRunner(b)
		_, err := r.request() // gets the cursor
		check(b, err)
		time.Sleep(idle)
		before := p.resident(b)
		end := make(chan struct{})
		var wg sync.WaitGroup
		for range waitingRunners {
			one := runnerAt(b, addr, r.token)
			one.cursor = r.cursor
			wg.Go(func() {
				for {
					_, err := one.request()
					select {
					case <-end:
						return
					default:
					}
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		time.Sleep(arrival)
		peak, spent, began := p.watch(b), p.spent(b), time.Now()
		time.Sleep(waitingTime)
		share = append(share, (p.spent(b)-spent)/time.Since(began).Seconds()*100)
		grown = append(grown, (peak()-before)/mebi)
		close(end)
		p.stop(b)
		wg.Wait()
	}
	name := fmt.Sprintf("%d idle runners, ", waitingRunners)
	t.add(b, figure{name: name + "processor", measured: median(share), limit: 5, unit: "% of a core"})
	t.add(b, figure{name: name + "memory", measured: median(grown), limit: 64, unit: "MiB"})
}
