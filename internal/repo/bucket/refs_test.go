package bucket

import (
	"fmt"
	"testing"

	"svc/internal/db"
	"svc/internal/db/dbtest"
)

// TestLargeSnapshot keeps the refs of small repositories in memory while those of repositories with
// very many refs come and go.
func TestLargeSnapshot(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newCluster(t, d).node()
		keep := func(dir string, generation int64, refs int) {
			a.keep(dir, &snapshot{version: version{id: 1, generation: generation}, refs: make([]ref, refs)})
		}
		expect := func(dir string, generation int64) {
			t.Helper()
			a.mu.Lock()
			defer a.mu.Unlock()
			if v, ok := a.cached(dir); ok != (generation > 0) || ok && v.generation != generation {
				t.Errorf("%s: %v, %t, want generation %d", dir, v, ok, generation)
			}
		}
		many := snapshotBytes/200 + 1
		for i := range 10 {
			keep(fmt.Sprint("small", i), 1, 10)
		}
		keep("one", 1, many)
		keep("two", 1, many)
		for i := range 10 {
			expect(fmt.Sprint("small", i), 1)
		}
		expect("one", 0)
		expect("two", 1)
		keep("two", 2, 1)
		expect("two", 2)
		keep("two", 3, many)
		expect("two", 3)
		keep("two", 2, 1) // read earlier
		expect("two", 3)
	})
}
