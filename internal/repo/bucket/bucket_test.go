package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/git/gittest"
	"svc/internal/git/refstore"
	"svc/internal/git/refstore/refstoretest"
	"svc/internal/notice"
	"svc/internal/waittest"
)

// cluster is several nodes with one database and one object store.
type cluster struct {
	t     *testing.T
	db    *db.DB
	store blob.Store
	bus   *notice.Bus // of all nodes
	now   func() time.Time
}

func newCluster(t *testing.T, d *db.DB) *cluster {
	store, err := blob.Open(t.Context(), "", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return &cluster{t, d, store, notice.New(notice.Deps{DB: d, Log: slog.New(slog.DiscardHandler), Now: time.Now}), time.Now}
}

// node is a node with its own cache.
type node struct {
	*Storage
}

func (c *cluster) node() node {
	c.t.Helper()
	e, err := git.New(git.Deps{})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(e.Close)
	s, err := New(Deps{DB: c.db, Git: e, Store: c.store, Name: "bucket", Dir: c.t.TempDir(), Notices: c.bus, Log: slog.New(slog.DiscardHandler), Now: c.now})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			c.t.Error(err)
		}
	})
	return node{s}
}

func (n node) dir(name string) string { return filepath.Join(n.Dir, "projects", name+".git") }

func (n node) repo(name string) git.Repo { return n.Git.Repo(n.dir(name)) }

// TestRefs runs the common tests of refstore.Store, with a separate node for each store.
func TestRefs(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := newCluster(t, d)
		var mu sync.Mutex
		n := 0
		refstoretest.Run(t, func(t *testing.T) refstoretest.Fixture {
			mu.Lock()
			n++
			name := fmt.Sprint(n)
			mu.Unlock()
			g := gittest.New(t)
			one := g.Commit(gittest.Commit{Message: "one"})
			two := g.Commit(gittest.Commit{Message: "two"})
			f := refstoretest.Fixture{
				One: git.OID(one), Two: git.OID(two), Blob: git.OID(g.Object("blob", "x")),
				Tag: git.OID(g.Object("tag", "object "+one+"\ntype commit\ntag a\ntagger T <t@x> 1 +0000\n\nm\n")),
			}
			first := c.node()
			if _, err := first.Git.Init(t.Context(), first.dir(name), "main"); err != nil {
				t.Fatal(err)
			}
			f.Open = func() refstore.Store {
				other := c.node()
				if _, err := other.Refresh(t.Context(), other.dir(name)); err != nil {
					t.Error(err)
				}
				if err := os.CopyFS(filepath.Join(other.dir(name), "objects"), os.DirFS(filepath.Join(g.Path, "objects"))); err != nil && !errors.Is(err, os.ErrExist) {
					t.Error(err)
				}
				return other.Refs(other.dir(name))
			}
			return f
		})
	})
}

// commit adds a commit to a branch as a request of the API does.
func commit(t *testing.T, r git.Repo, branch, path, content string) git.OID {
	t.Helper()
	id, err := tryCommit(t.Context(), r, branch, path, content)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func tryCommit(ctx context.Context, r git.Repo, branch, path, content string) (git.OID, error) {
	who := git.Signature{Name: "T", Email: "t@example.com", When: time.Unix(1e9, 0)}
	o := git.ChangeOptions{Author: who, Committer: who, Message: "change " + path, Actions: []git.Action{{Kind: git.Create, Path: path, Content: []byte(content)}}}
	old := git.ZeroOID
	if at, err := r.Ref(ctx, git.Heads+branch); err == nil {
		old, o.Parent = at.ID, string(at.ID)
	}
	made, err := r.CommitChanges(ctx, o)
	if err != nil {
		return "", err
	}
	return made.ID, r.UpdateRefs(ctx, []git.Update{{Ref: git.Heads + branch, Old: old, New: made.ID}})
}

// TestNodes writes on one node and reads on others at once.
func TestNodes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := newCluster(t, d)
		a, b := c.node(), c.node()
		if _, err := a.Git.Init(t.Context(), a.dir("1"), "main"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Git.Init(t.Context(), b.dir("1"), "main"); !errors.Is(err, git.ErrExists) {
			t.Errorf("created again: %v", err)
		}
		if _, err := b.repo("2").DefaultBranch(t.Context()); !errors.Is(err, git.ErrNoRepository) {
			t.Errorf("no repository: %v", err)
		}
		large := strings.Repeat("0123456789abcdef\n", 20_000)
		for i := range 12 {
			from, to := a, b
			if i%2 == 1 {
				from, to = b, a
			}
			content := fmt.Sprint("text ", i)
			if i == 3 { // stored as an object
				content = incompressible(200 << 10)
			}
			if i == 4 {
				content = large
			}
			id := commit(t, from.repo("1"), "main", fmt.Sprintf("dir/%d", i), content)
			// Read a commit by its ID, without reading refs before.
			if got, err := to.repo("1").Commit(t.Context(), string(id)); err != nil || got.ID != id {
				t.Fatalf("%d: %v", i, err)
			}
			entry, err := to.repo("1").Entry(t.Context(), "main", fmt.Sprintf("dir/%d", i))
			if err != nil {
				t.Fatalf("%d: %v", i, err)
			}
			o, err := to.repo("1").Object(t.Context(), entry.OID)
			if err != nil || string(o.Content) != content {
				t.Errorf("%d: %v", i, err)
			}
		}
		for _, n := range []node{a, b, c.node()} {
			if count, err := n.repo("1").Count(t.Context(), git.LogOptions{From: []string{"main"}}); err != nil || count != 12 {
				t.Errorf("%d commits, %v", count, err)
			}
			if problems, err := n.repo("1").Fsck(t.Context()); err != nil || len(problems) > 0 {
				t.Errorf("%v, %v", problems, err)
			}
		}
	})
}

// incompressible returns a text that does not get smaller.
func incompressible(n int) string {
	var b bytes.Buffer
	x := uint32(1)
	for b.Len() < n {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b.WriteByte(byte(x>>8)%94 + 33)
	}
	return b.String()
}

// TestCacheDeleted removes the cache of a node, and parts of it, between requests.
func TestCacheDeleted(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newCluster(t, d).node()
		if _, err := a.Git.Init(t.Context(), a.dir("1"), "main"); err != nil {
			t.Fatal(err)
		}
		for i, gone := range []string{"", "objects", "objects/pack", "HEAD", "refs", "config", "packed-refs"} {
			commit(t, a.repo("1"), "main", fmt.Sprint(i), incompressible(100<<10)+fmt.Sprint(i))
			if err := os.RemoveAll(filepath.Join(a.dir("1"), gone)); err != nil {
				t.Fatal(err)
			}
			entry, err := a.repo("1").Entry(t.Context(), "main", fmt.Sprint(i))
			if err != nil {
				t.Fatalf("%q: %v", gone, err)
			}
			a.repo("1").Forget()
			if _, err := a.repo("1").Object(t.Context(), entry.OID); err != nil {
				t.Errorf("%q: %v", gone, err)
			}
		}
		packs, err := filepath.Glob(filepath.Join(a.dir("1"), "objects/pack/*.pack"))
		if err != nil || len(packs) == 0 {
			t.Fatal(packs, err)
		}
		for _, p := range packs {
			if err := os.Remove(p); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := a.repo("1").Count(t.Context(), git.LogOptions{From: []string{"main"}}); err != nil || n != 7 {
			t.Errorf("without packs: %d commits, %v", n, err)
		}
	})
}

// TestCacheChangedUnnoticed removes a pack from a cache so that the time of its directory does
// not change, as if that happened right after the directory was checked.
func TestCacheChangedUnnoticed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := newCluster(t, d)
		a := c.node()
		if _, err := a.Git.Init(t.Context(), a.dir("1"), "main"); err != nil {
			t.Fatal(err)
		}
		commit(t, a.repo("1"), "main", "a", "x")
		packs := filepath.Join(a.dir("1"), "objects", "pack")
		soon := time.Now().Add(time.Hour)
		touch := func() {
			t.Helper()
			if err := os.Chtimes(packs, soon, soon); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.Refresh(t.Context(), a.dir("1")); err != nil {
			t.Fatal(err)
		}
		touch()
		if _, err := a.Refresh(t.Context(), a.dir("1")); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(packs, "pack-*"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, f := range files {
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
		touch()
		if changed, err := a.Refresh(t.Context(), a.dir("1")); err != nil || !changed {
			t.Errorf("the packs were not fetched again: %v, %v", changed, err)
		}
	})
}

// TestCacheDeletedInUse removes the cache of a node while it is read. A call may fail,
// but never because an object or a revision does not exist.
func TestCacheDeletedInUse(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newCluster(t, d).node()
		if _, err := a.Git.Init(t.Context(), a.dir("1"), "main"); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			commit(t, a.repo("1"), "main", fmt.Sprint(i), incompressible(100<<10)+fmt.Sprint(i))
		}
		var readers sync.WaitGroup
		over := make(chan struct{})
		reads := []func(r git.Repo) error{
			func(r git.Repo) error { _, err := r.Commit(t.Context(), "main"); return err },
			func(r git.Repo) error { _, err := r.Entry(t.Context(), "main", "1"); return err },
			func(r git.Repo) error {
				_, err := r.Count(t.Context(), git.LogOptions{From: []string{"main"}})
				return err
			},
		}
		var found atomic.Int64
		who := git.Signature{Name: "x", Email: "x@example.org", When: time.Now()}
		reads = append(reads, func(r git.Repo) error {
			_, err := r.CommitChanges(t.Context(), git.ChangeOptions{
				Parent: "main", Author: who, Committer: who, Message: "x", Actions: []git.Action{{Kind: git.Create, Path: "new", Content: []byte("x")}},
			})
			return err
		})
		for _, read := range reads {
			readers.Go(func() {
				for range 60 {
					switch err := read(a.repo("1")); {
					case err == nil:
						found.Add(1)
					case errors.Is(err, git.ErrNotFound), errors.Is(err, git.ErrNoRepository):
						t.Error(err)
					}
				}
			})
		}
		go func() {
			readers.Wait()
			close(over)
		}()
		for last := int64(0); ; {
			select {
			case <-over:
				return
			default:
			}
			if n := found.Load(); n > last { // a cache that is never there brings nothing
				_ = os.RemoveAll(filepath.Join(a.dir("1"), "objects"))
				_ = os.RemoveAll(a.dir("1"))
				last = n
			}
			runtime.Gosched()
		}
	})
}

// TestHousekeep combines packs while another node writes.
func TestHousekeep(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := newCluster(t, d)
		a, b := c.node(), c.node()
		if _, err := a.Git.Init(t.Context(), a.dir("1"), "main"); err != nil {
			t.Fatal(err)
		}
		const pushes = 60
		ended := make(chan error, 1)
		go func() {
			for i := range pushes {
				if _, err := tryCommit(t.Context(), b.repo("1"), "main", fmt.Sprint("f", i), fmt.Sprint(i)); err != nil {
					ended <- fmt.Errorf("commit %d: %w", i, err)
					return
				}
			}
			ended <- nil
		}()
		for running := true; running; {
			select {
			case err := <-ended:
				if err != nil {
					t.Fatal(err)
				}
				running = false
			default:
			}
			needs, err := a.repo("1").Needs(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if needs.Any() {
				if _, err := a.repo("1").Housekeep(t.Context(), git.HousekeepOptions{}); err != nil && !errors.Is(err, git.ErrBusy) {
					t.Fatal(err)
				}
			}
		}
		gone := commit(t, a.repo("1"), "topic", "large", incompressible(150<<10))
		if err := a.repo("1").UpdateRefs(t.Context(), []git.Update{{Ref: git.Heads + "topic", New: git.ZeroOID}}); err != nil {
			t.Fatal(err)
		}
		before, err := a.repo("1").Size(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// Unreachable objects are kept for two weeks.
		done, err := a.repo("1").Housekeep(t.Context(), git.HousekeepOptions{Full: true})
		if err != nil || done.Before != before || done.After < 100<<10 {
			t.Errorf("%+v, %v", done, err)
		}
		if _, err := b.repo("1").Commit(t.Context(), string(gone)); err != nil {
			t.Errorf("a deleted branch: %v", err)
		}
		a.Now = func() time.Time { return time.Now().Add(unreachableGrace + time.Minute) }
		if done, err = a.repo("1").Housekeep(t.Context(), git.HousekeepOptions{Full: true}); err != nil || done.After > 100<<10 {
			t.Errorf("later: %+v, %v", done, err)
		}
		for _, n := range []node{a, b, c.node()} {
			r := n.repo("1")
			if count, err := r.Count(t.Context(), git.LogOptions{From: []string{"main"}}); err != nil || count != pushes {
				t.Errorf("%d commits, %v", count, err)
			}
			if problems, err := r.Fsck(t.Context()); err != nil || len(problems) > 0 {
				t.Errorf("%v, %v", problems, err)
			}
			if needs, err := r.Needs(t.Context()); err != nil || needs.Packs != 1 {
				t.Errorf("%+v, %v", needs, err)
			}
		}
	})
}

// TestCheck finds missing and changed objects.
func TestCheck(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := newCluster(t, d)
		a := c.node()
		for _, name := range []string{"1", "2", "3", "small"} {
			if _, err := a.Git.Init(t.Context(), a.dir(name), "main"); err != nil {
				t.Fatal(err)
			}
			text := "x"
			if name != "small" {
				text = incompressible(150<<10) + name
			}
			commit(t, a.repo(name), "main", "file", text)
		}
		if ok, err := a.repo("3").Remove(t.Context()); !ok || err != nil {
			t.Fatal(ok, err)
		}
		check := func(want Report, problems ...string) {
			t.Helper()
			var found []string
			got, err := a.Check(t.Context(), func(text string) { found = append(found, text) })
			if got.Bytes < 200<<10 || got.Packs != want.Packs || got.Unused != want.Unused || err != nil || len(found) != len(problems) {
				t.Fatalf("got %+v, %q, %v", got, found, err)
			}
			for i, text := range problems {
				if !strings.Contains(found[i], text) {
					t.Errorf("%q does not contain %q", found[i], text)
				}
			}
		}
		check(Report{Packs: 2, Unused: 2}) // those of the removed repository
		packs, err := findStored(t.Context(), d, a.Name, 0, 10)
		if err != nil || len(packs) != 2 {
			t.Fatal(packs, err)
		}
		if _, err := c.store.Put(t.Context(), packs[0].object+".idx", strings.NewReader("cut off"), blob.Options{}); err != nil {
			t.Fatal(err)
		}
		if err := c.store.Delete(t.Context(), packs[1].object+".pack"); err != nil {
			t.Fatal(err)
		}
		check(Report{Packs: 2, Unused: 2}, packs[0].path+": "+packs[0].object+".idx has 7 bytes instead of ", packs[1].path+": "+packs[1].object+".pack is missing")
	})
}

// TestSweep deletes only objects that no repository needs.
func TestSweep(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := newCluster(t, d)
		a := c.node()
		for _, name := range []string{"1", "2"} {
			if _, err := a.Git.Init(t.Context(), a.dir(name), "main"); err != nil {
				t.Fatal(err)
			}
			commit(t, a.repo(name), "main", "large", incompressible(150<<10)+name)
		}
		if _, err := c.store.Put(t.Context(), a.prefix()+"ab/orphan.pack", strings.NewReader("x"), blob.Options{}); err != nil {
			t.Fatal(err)
		}
		objects := func() int {
			n := 0
			for _, err := range c.store.List(t.Context(), a.prefix()) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			return n
		}
		if ok, err := a.repo("2").Remove(t.Context()); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if err := a.Sweep(t.Context()); err != nil || objects() != 6 {
			t.Errorf("at once: %d objects, %v", objects(), err)
		}
		a.Now = func() time.Time { return time.Now().Add(orphanGrace + time.Minute) }
		if err := a.Sweep(t.Context()); err != nil || objects() != 5 {
			t.Errorf("after a day: %d objects, %v", objects(), err)
		}
		a.Now = func() time.Time { return time.Now().Add(removedGrace + time.Minute) }
		if err := a.Sweep(t.Context()); err != nil || objects() != 3 {
			t.Errorf("after two weeks: %d objects, %v", objects(), err)
		}
		other := c.node()
		if _, err := other.repo("1").Entry(t.Context(), "main", "large"); err != nil {
			t.Error(err)
		}
		if problems, err := other.repo("1").Fsck(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	})
}

// TestOwner refuses to use the bucket of another instance, because the sweep would delete its
// objects.
func TestOwner(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := newCluster(t, d)
		a := c.node()
		if _, err := c.store.Put(t.Context(), a.prefix()+ownerObject, strings.NewReader("another"), blob.Options{}); err != nil {
			t.Fatal(err)
		}
		const other = "aa/of-another.pack"
		if _, err := c.store.Put(t.Context(), a.prefix()+other, strings.NewReader("x"), blob.Options{}); err != nil {
			t.Fatal(err)
		}
		a.Now = func() time.Time { return time.Now().Add(removedGrace + time.Minute) }
		if err := a.Sweep(t.Context()); err == nil || !strings.Contains(err.Error(), "another instance") {
			t.Errorf("swept: %v", err)
		}
		if _, err := c.store.Stat(t.Context(), a.prefix()+other); err != nil {
			t.Error(err)
		}
		if _, err := a.Git.Init(t.Context(), a.dir("1"), "main"); err != nil {
			t.Fatal(err)
		}
		if _, err := tryCommit(t.Context(), a.repo("1"), "main", "large", incompressible(150<<10)); err == nil {
			t.Error("stored beside the objects of another instance")
		}
	})
}

// TestCacheLosesRefs runs housekeeping in a cache that has lost its refs.
func TestCacheLosesRefs(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newCluster(t, d).node()
		if _, err := a.Git.Init(t.Context(), a.dir("1"), "main"); err != nil {
			t.Fatal(err)
		}
		id := commit(t, a.repo("1"), "main", "large", incompressible(150<<10))
		a.Now = func() time.Time { return time.Now().Add(unreachableGrace + time.Minute) }
		if err := a.repo("1").Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		row, packs, err := a.list(t.Context(), a.dir("1"))
		if err != nil {
			t.Fatal(err)
		}
		for _, lost := range []string{"packed-refs", "objects/pack"} { // after the last look at the directory
			if err := os.RemoveAll(filepath.Join(a.dir("1"), lost)); err != nil {
				t.Fatal(err)
			}
			_ = a.combineWhole(t.Context(), a.dir("1"), row, packs) // it may fail, but must not lose anything
			if got, err := a.repo("1").Commit(t.Context(), "main"); err != nil || got.ID != id {
				t.Errorf("without %s: %v", lost, err)
			}
			if problems, err := a.repo("1").Fsck(t.Context()); err != nil || len(problems) > 0 {
				t.Errorf("without %s: %v, %v", lost, problems, err)
			}
		}
	})
}

// TestEvict checks that the cache keeps to its size limit.
func TestEvict(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newCluster(t, d).node()
		a.CacheSize = 400 << 10
		for i := range 5 {
			name := fmt.Sprint(i)
			if _, err := a.Git.Init(t.Context(), a.dir(name), "main"); err != nil {
				t.Fatal(err)
			}
			commit(t, a.repo(name), "main", "large", incompressible(200<<10)+name)
			if _, err := a.Refresh(t.Context(), a.dir(name)); err != nil {
				t.Fatal(err)
			}
			// Simulate earlier uses, in order.
			a.entry(a.dir(name)).last.Store(time.Now().Add(-time.Hour + time.Duration(i)*time.Minute).UnixNano())
		}
		waittest.For(t, "three repositories are evicted", func() bool {
			a.evict(t.Context()) // one may be under way after a fetch
			return a.Stats().Evictions == 3
		})
		if now := a.Stats(); now.Bytes > a.CacheSize || now.Repositories != 2 {
			t.Errorf("%+v", now)
		}
		for i, want := range []bool{false, false, false, true, true} {
			if _, err := os.Stat(a.dir(fmt.Sprint(i))); (err == nil) != want {
				t.Errorf("%d: %v", i, err)
			}
		}
		if now := a.Stats(); now.Pinned != 0 {
			t.Errorf("%d repositories are in use", now.Pinned)
		}
		if _, err := a.repo("0").Entry(t.Context(), "main", "large"); err != nil {
			t.Error(err)
		}
		if now := a.Stats(); now.Pinned != 1 || now.PinnedBytes < 100<<10 {
			t.Errorf("%d repositories with %d bytes are in use after a read", now.Pinned, now.PinnedBytes)
		}
	})
}

// TestRefusedChanges writes objects that no ref will refer to, and expects that they count as
// part of the cache and are removed after a while.
func TestRefusedChanges(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newCluster(t, d).node()
		if _, err := a.Git.Init(t.Context(), a.dir("1"), "main"); err != nil {
			t.Fatal(err)
		}
		var moved atomic.Int64
		a.Now = func() time.Time { return time.Now().Add(time.Duration(moved.Load())) }
		commit(t, a.repo("1"), "main", "a", "x")
		refused := func(content string) {
			t.Helper()
			who := git.Signature{Name: "T", Email: "t@example.com", When: time.Unix(1e9, 0)}
			_, err := a.repo("1").CommitChanges(t.Context(), git.ChangeOptions{
				Parent: "main", Author: who, Committer: who, Message: "m", Actions: []git.Action{{Kind: git.Create, Path: "large", Content: []byte(content)}},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		used := func() (size int64) {
			eachFile(filepath.Join(a.dir("1"), "objects"), func(_ string, info os.FileInfo) { size += info.Size() })
			return size
		}
		const large = 1 << 20
		for i := range 3 {
			refused(fmt.Sprint(i) + incompressible(2*large))
		}
		killed := filepath.Join(a.dir("1"), "objects", git.QuarantinePrefix+"killed")
		if err := os.MkdirAll(filepath.Join(killed, "pack"), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(killed, "pack", "tmp_pack_x"), make([]byte, large), 0o640); err != nil {
			t.Fatal(err)
		}
		moved.Store(int64(measureEvery))
		if _, err := a.repo("1").Count(t.Context(), git.LogOptions{From: []string{"main"}}); err != nil {
			t.Fatal(err)
		}
		waittest.For(t, "the size of the new objects", func() bool { return a.Stats().Bytes >= 4*large })
		moved.Store(int64(leftoverAge + time.Hour))
		refused("small")
		if err := a.repo("1").Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		waittest.For(t, "another look", func() bool { return !a.measureDue(a.entry(a.dir("1"))) })
		moved.Store(int64(2*leftoverAge + 2*time.Hour))
		commit(t, a.repo("1"), "main", "b", "x")
		if err := a.repo("1").Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now, counted := used(), a.Stats().Bytes; now >= large || counted >= large {
			t.Errorf("%d bytes in use, %d counted", now, counted)
		}
		if problems, err := a.repo("1").Fsck(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
		moved.Store(0)
		if err := os.MkdirAll(killed, 0o750); err != nil {
			t.Fatal(err)
		}
		if err := a.findEntries(); err != nil { // as New does
			t.Fatal(err)
		}
		if _, err := os.Stat(killed); err == nil {
			t.Error("the directory of a killed process was not removed")
		}
	})
}

// TestRemoveDuringUpdate removes a repository while a transaction is adding a pack to it.
func TestRemoveDuringUpdate(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if !d.Postgres() {
			return // transactions of SQLite wait for each other from the beginning
		}
		a := newCluster(t, d).node()
		if _, err := a.Git.Init(t.Context(), a.dir("1"), "main"); err != nil {
			t.Fatal(err)
		}
		commit(t, a.repo("1"), "main", "a", "x")
		row, err := a.find(t.Context(), a.dir("1"))
		if err != nil {
			t.Fatal(err)
		}
		removed := make(chan error, 1)
		err = d.Tx(t.Context(), func(tx *db.Tx) error {
			if _, err := lockRepository(t.Context(), tx, row.id); err != nil {
				return err
			}
			go func() {
				_, err := a.repo("1").Remove(t.Context())
				removed <- err
			}()
			waittest.For(t, "the removal waits for the lock", func() bool {
				waits, err := db.Exists(t.Context(), d, `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
				if err != nil {
					t.Fatal(err)
				}
				return waits
			})
			return insertPack(t.Context(), tx, a.Name, row.id, packRow{hash: strings.Repeat("a", 40), object: a.prefix() + "x", created: a.Now()})
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := waittest.Receive(t, "the removal", removed); err != nil {
			t.Fatal(err)
		}
		if left, err := findPacks(t.Context(), d, row.id); err != nil || len(left) > 0 {
			t.Errorf("packs without a repository: %+v, %v", left, err)
		}
	})
}

// TestUpdateIsOvertaken repeats only the transaction of an update, not the storing of its objects.
func TestUpdateIsOvertaken(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := newCluster(t, d)
		stored := 0
		c.store = &hookedStore{c.store, func() { stored++ }}
		a := c.node()
		if _, err := a.Git.Init(t.Context(), a.dir("1"), "main"); err != nil {
			t.Fatal(err)
		}
		who := git.Signature{Name: "T", Email: "t@example.com", When: time.Unix(1e9, 0)}
		made, err := a.repo("1").CommitChanges(t.Context(), git.ChangeOptions{
			Author: who, Committer: who, Message: "m", Actions: []git.Action{{Kind: git.Create, Path: "large", Content: []byte(incompressible(150 << 10))}},
		})
		if err != nil {
			t.Fatal(err)
		}
		// The object of a pack that was stored long ago may have been deleted.
		slow := func(_ context.Context, last error) (inTx, error) {
			a.Now = func() time.Time { return time.Now().Add(orphanGrace - time.Minute) }
			return nil, last
		}
		main := []git.Update{{Ref: git.Heads + "main", Old: git.ZeroOID, New: made.ID}}
		if err := (&refs{a.Storage, a.dir("1")}).UpdateIn(t.Context(), "mark", main, slow); !errs.Is(err, errs.KindUnavailable) {
			t.Errorf("a pack that was stored a day ago: %v", err)
		}
		a.Now = time.Now
		overtaken, broken := errors.New("overtaken"), errors.New("broken")
		for _, ends := range []error{broken, nil} {
			stored = 0
			tries := 0
			prepare := func(_ context.Context, last error) (inTx, error) {
				if last != nil && !errors.Is(last, overtaken) {
					return nil, last
				}
				tries++
				return func(context.Context, *db.Tx, string, bool) error {
					if tries < 4 {
						return overtaken
					}
					return ends
				}, nil
			}
			refs := &refs{a.Storage, a.dir("1")}
			err := refs.UpdateIn(t.Context(), "mark", main, prepare)
			if !errors.Is(err, ends) || tries != 4 || stored != 1 {
				t.Errorf("%d attempts, stored %d times, %v", tries, stored, err)
			}
		}
		if got, err := c.node().repo("1").Commit(t.Context(), "main"); err != nil || got.ID != made.ID {
			t.Error(got, err)
		}
	})
}
