package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/git"
	"svc/internal/waittest"
)

// hangingStore is an object store whose downloads hang until they are canceled.
type hangingStore struct {
	blob.Store
	hangs   atomic.Bool
	hanging atomic.Int64 // number of downloads
}

// GetRange implements blob.Store.
func (s *hangingStore) GetRange(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if !s.hangs.Load() {
		return s.Store.GetRange(ctx, key, offset, length)
	}
	s.hanging.Add(1)
	defer s.hanging.Add(-1)
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestSlowFetches reads a repository that another node has changed while as many downloads as
// there may be hang.
func TestSlowFetches(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := newCluster(t, d)
		a := c.node()
		store := &hangingStore{Store: c.store}
		c.store = store
		b := c.node()
		count := func(ctx context.Context, name string) (int, error) {
			return b.repo(name).Count(ctx, git.LogOptions{From: []string{"main"}})
		}
		for i := range maxFetching + 1 {
			name := fmt.Sprint(i)
			if _, err := a.Git.Init(t.Context(), a.dir(name), "main"); err != nil {
				t.Fatal(err)
			}
			commit(t, a.repo(name), "main", "large", incompressible(150<<10))
		}
		if n, err := count(t.Context(), "0"); err != nil || n != 1 {
			t.Fatal(n, err)
		}
		store.hangs.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for i := range maxFetching {
			go count(ctx, fmt.Sprint(i+1))
		}
		waittest.For(t, "hanging downloads", func() bool { return store.hanging.Load() == maxFetching })
		commit(t, a.repo("0"), "main", "small", "x")
		read := make(chan error, 1)
		go func() {
			n, err := count(ctx, "0")
			if n != 2 {
				err = errors.Join(err, fmt.Errorf("%d commits", n))
			}
			read <- err
		}()
		waittest.For(t, "the changed repository", func() bool { return len(read) > 0 || store.hanging.Load() < maxFetching })
		if n := store.hanging.Load(); n != maxFetching {
			t.Errorf("only %d downloads hang", n)
		}
		cancel()
		if err := <-read; err != nil {
			t.Error(err)
		}
		commit(t, b.repo("0"), "main", "another", "x")
	})
}
