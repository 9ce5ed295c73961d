package bucket

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/git"
)

// hookedStore is an object store that calls a function before a pack is stored.
type hookedStore struct {
	blob.Store
	before func()
}

// Put implements blob.Store.
func (s *hookedStore) Put(ctx context.Context, key string, r io.Reader, o blob.Options) (int64, error) {
	if s.before != nil && strings.HasSuffix(key, ".pack") {
		s.before()
	}
	return s.Store.Put(ctx, key, r, o)
}

func housekeep(t *testing.T, n node, name string) {
	t.Helper()
	if _, err := n.repo(name).Housekeep(t.Context(), git.HousekeepOptions{Full: true}); err != nil {
		t.Fatal(err)
	}
}

// sound checks a repository on a new node.
func (c *cluster) sound(name string) {
	c.t.Helper()
	if problems, err := c.node().repo(name).Fsck(c.t.Context()); err != nil || len(problems) > 0 {
		c.t.Errorf("%v, %v", problems, err)
	}
}

// TestGrace deletes a branch whose commits are in an old pack, and expects that they are kept for
// a while after housekeeping has found them unreachable.
func TestGrace(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := newCluster(t, d)
		var moved atomic.Int64
		c.now = func() time.Time { return time.Now().Add(time.Duration(moved.Load())) }
		pass := func(d time.Duration) { moved.Add(int64(d)) }
		a := c.node()
		if _, err := a.Git.Init(t.Context(), a.dir("1"), "main"); err != nil {
			t.Fatal(err)
		}
		commit(t, a.repo("1"), "main", "a", incompressible(400<<10))
		gone := commit(t, a.repo("1"), "topic", "b", incompressible(150<<10)+"topic")
		second := commit(t, a.repo("1"), "second", "b", "second")
		housekeep(t, a, "1")
		remove := func(branch string) {
			t.Helper()
			if err := a.repo("1").UpdateRefs(t.Context(), []git.Update{{Ref: git.Heads + branch, New: git.ZeroOID}}); err != nil {
				t.Fatal(err)
			}
		}
		has := func(id git.OID) bool {
			t.Helper()
			_, err := c.node().repo("1").Commit(t.Context(), string(id))
			return err == nil
		}
		pass(unreachableGrace + 24*time.Hour)
		remove("topic")
		housekeep(t, a, "1")
		if !has(gone) {
			t.Fatal("a commit was dropped right after its branch")
		}
		pass(unreachableGrace - 2*leftoverPeriod)
		remove("second")
		housekeep(t, a, "1")
		if !has(gone) || !has(second) {
			t.Error("a commit was dropped too early")
		}
		if needs, err := a.repo("1").Needs(t.Context()); err != nil || needs.Any() || needs.Packs != 1 {
			t.Errorf("%+v, %v", needs, err)
		}
		pass(2*leftoverPeriod + time.Hour)
		housekeep(t, a, "1")
		if has(gone) || !has(second) {
			t.Errorf("after two weeks: the first commit exists: %t, the second: %t", has(gone), has(second))
		}
		// What becomes reachable again is not a leftover any more.
		if err := a.repo("1").UpdateRefs(t.Context(), []git.Update{{Ref: git.Heads + "again", New: second, Old: git.ZeroOID}}); err != nil {
			t.Fatal(err)
		}
		pass(2 * unreachableGrace)
		remove("again")
		housekeep(t, a, "1")
		if !has(second) {
			t.Error("a commit was dropped right after it became unreachable again")
		}
		pass(2 * unreachableGrace)
		housekeep(t, a, "1")
		if has(second) {
			t.Error("a commit was not dropped")
		}
		c.sound("1")
	})
}

// TestHousekeepBusy combines all packs while refs change all the time.
func TestHousekeepBusy(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := newCluster(t, d)
		var moved atomic.Int64
		c.now = func() time.Time { return time.Now().Add(time.Duration(moved.Load())) }
		b := c.node()
		store := &hookedStore{Store: c.store}
		c.store = store
		a := c.node()
		if _, err := a.Git.Init(t.Context(), a.dir("1"), "main"); err != nil {
			t.Fatal(err)
		}
		update := func(branch string, to git.OID) {
			t.Helper()
			if err := b.repo("1").UpdateRefs(t.Context(), []git.Update{{Ref: git.Heads + branch, New: to}}); err != nil {
				t.Fatal(err)
			}
		}
		commit(t, a.repo("1"), "main", "a", incompressible(400<<10))
		expired := commit(t, a.repo("1"), "expired", "b", incompressible(150<<10)+"expired")
		again := commit(t, a.repo("1"), "again", "b", incompressible(150<<10)+"again")
		update("expired", git.ZeroOID)
		update("again", git.ZeroOID)
		housekeep(t, a, "1")
		moved.Add(int64(unreachableGrace + time.Hour))
		last := commit(t, a.repo("1"), "last", "b", incompressible(150<<10)+"last")

		n := 0
		store.before = func() {
			commit(t, b.repo("1"), "main", fmt.Sprint("more", n), "x")
			if n == 0 {
				update("again", again)
				update("last", git.ZeroOID)
			}
			n++
		}
		housekeep(t, a, "1")
		store.before = nil
		if n == 0 {
			t.Fatal("nothing was stored")
		}
		fresh := c.node().repo("1")
		for id, want := range map[git.OID]bool{expired: false, again: true, last: true} {
			if _, err := fresh.Commit(t.Context(), string(id)); (err == nil) != want {
				t.Errorf("%s: %v", id, err)
			}
		}
		if count, err := fresh.Count(t.Context(), git.LogOptions{From: []string{"main"}}); err != nil || count != 1+n {
			t.Errorf("%d commits, %v", count, err)
		}
		if needs, err := fresh.Needs(t.Context()); err != nil || needs.Bitmap {
			t.Errorf("%+v, %v", needs, err)
		}
		c.sound("1")
		moved.Add(int64(unreachableGrace + time.Hour))
		for range 2 {
			housekeep(t, b, "1")
		}
		if _, err := c.node().repo("1").Commit(t.Context(), string(again)); err != nil {
			t.Error(err)
		}
		c.sound("1")
	})
}

// TestSmallDefaultBranch expects a bitmap also if only other branches are large.
func TestSmallDefaultBranch(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newCluster(t, d).node()
		if _, err := a.Git.Init(t.Context(), a.dir("1"), "main"); err != nil {
			t.Fatal(err)
		}
		commit(t, a.repo("1"), "main", "a", "x")
		commit(t, a.repo("1"), "topic", "a", incompressible(400<<10))
		if needs, err := a.repo("1").Needs(t.Context()); err != nil || !needs.Bitmap {
			t.Errorf("before: %+v, %v", needs, err)
		}
		if _, err := a.repo("1").Housekeep(t.Context(), git.HousekeepOptions{}); err != nil {
			t.Fatal(err)
		}
		if needs, err := a.repo("1").Needs(t.Context()); err != nil || needs.Any() {
			t.Errorf("after: %+v, %v", needs, err)
		}
	})
}
