package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/git"
	"svc/internal/waittest"
)

// faultyStore is an object store that cannot be read while away is set.
type faultyStore struct {
	blob.Store
	away atomic.Bool
}

var errAway = errors.New("the object store is away")

// GetRange implements blob.Store.
func (s *faultyStore) GetRange(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if s.away.Load() {
		return nil, errAway
	}
	return s.Store.GetRange(ctx, key, offset, length)
}

// packFiles returns the packs in the cache of a node.
func (n node) packFiles(t *testing.T, name string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(n.dir(name), "objects", "pack", "*.pack"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(found, " ")
}

// pushes makes commits that are stored as objects.
func pushes(t *testing.T, r git.Repo, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		commit(t, r, "main", fmt.Sprint("large", i), fmt.Sprint(i)+incompressible(100<<10))
	}
}

// TestReadsAfterHousekeeping reads on another node after housekeeping, while the new pack
// cannot be fetched.
func TestReadsAfterHousekeeping(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := newCluster(t, d)
		a := c.node()
		store := &faultyStore{Store: c.store}
		c.store = store
		b := c.node()
		if _, err := a.Git.Init(t.Context(), a.dir("1"), "main"); err != nil {
			t.Fatal(err)
		}
		pushes(t, a.repo("1"), 0, 4)
		count := func(n node) int {
			t.Helper()
			count, err := n.repo("1").Count(t.Context(), git.LogOptions{From: []string{"main"}})
			if err != nil {
				t.Fatal(err)
			}
			return count
		}
		if n := count(b); n != 4 {
			t.Fatalf("%d commits", n)
		}
		store.away.Store(true)
		if _, err := a.repo("1").Housekeep(t.Context(), git.HousekeepOptions{Full: true}); err != nil {
			t.Fatal(err)
		}
		commit(t, a.repo("1"), "main", "small", "x")
		if n := count(b); n != 5 {
			t.Errorf("%d commits", n)
		}
		if _, err := c.node().repo("1").Count(t.Context(), git.LogOptions{From: []string{"main"}}); !errors.Is(err, errAway) {
			t.Errorf("a node without a cache: %v", err)
		}
		store.away.Store(false)
		commit(t, a.repo("1"), "main", "small2", "x")
		waittest.For(t, "packs of housekeeping", func() bool {
			if n := count(b); n != 6 {
				t.Fatalf("%d commits", n)
			}
			return strings.Count(b.packFiles(t, "1"), ".pack") == 3
		})
		if problems, err := b.repo("1").Fsck(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
		if _, err := os.Stat(filepath.Join(b.dir("1"), "objects", "info", "commit-graphs")); err == nil {
			t.Error("a commit-graph was written for small packs")
		}
	})
}

// TestHousekeepWithoutPacks combines packs on a node that does not have those of the last
// housekeeping yet.
func TestHousekeepWithoutPacks(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := newCluster(t, d)
		a := c.node()
		store := &faultyStore{Store: c.store}
		c.store = store
		b := c.node()
		if _, err := a.Git.Init(t.Context(), a.dir("1"), "main"); err != nil {
			t.Fatal(err)
		}
		pushes(t, a.repo("1"), 0, 3)
		if _, err := b.repo("1").Count(t.Context(), git.LogOptions{From: []string{"main"}}); err != nil {
			t.Fatal(err)
		}
		store.away.Store(true)
		if _, err := a.repo("1").Housekeep(t.Context(), git.HousekeepOptions{Full: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.repo("1").Housekeep(t.Context(), git.HousekeepOptions{Full: true}); !errors.Is(err, errAway) {
			t.Errorf("without the store: %v", err)
		}
		store.away.Store(false)
		pushes(t, a.repo("1"), 3, 6)
		if _, err := b.repo("1").Housekeep(t.Context(), git.HousekeepOptions{Full: true}); err != nil {
			t.Fatal(err)
		}
		for _, n := range []node{a, b, c.node()} {
			if problems, err := n.repo("1").Fsck(t.Context()); err != nil || len(problems) > 0 {
				t.Errorf("%v, %v", problems, err)
			}
			if count, err := n.repo("1").Count(t.Context(), git.LogOptions{From: []string{"main"}}); err != nil || count != 6 {
				t.Errorf("%d commits, %v", count, err)
			}
		}
	})
}

// TestPrefetch pushes a large pack and expects it in the cache of a node that has used the
// repository, and nowhere else.
func TestPrefetch(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := newCluster(t, d)
		a, b, cold := c.node(), c.node(), c.node()
		if _, err := a.Git.Init(t.Context(), a.dir("1"), "main"); err != nil {
			t.Fatal(err)
		}
		commit(t, a.repo("1"), "main", "small", "x")
		if _, err := b.repo("1").Count(t.Context(), git.LogOptions{From: []string{"main"}}); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			commit(t, a.repo("1"), "main", fmt.Sprint("large", i), fmt.Sprint(i)+incompressible(2<<20))
			waittest.For(t, "prefetched pack", func() bool { return b.packFiles(t, "1") == strings.ReplaceAll(a.packFiles(t, "1"), a.Dir, b.Dir) })
		}
		waittest.For(t, "commit-graph", func() bool {
			_, err := os.Stat(filepath.Join(b.dir("1"), "objects", "info", "commit-graphs"))
			return err == nil
		})
		if n := a.Stats().Fetches; n != 0 {
			t.Errorf("the node that pushed fetched %d packs", n)
		}
		if n := cold.Stats().Fetches; n != 0 {
			t.Errorf("a node that does not use the repository fetched %d packs", n)
		}
	})
}
