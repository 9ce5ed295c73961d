package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"svc/internal/git/gittest"
	"svc/internal/waittest"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	first := g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "x", Content: "1"}}})
	second := g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "x", Content: "2"}}})
	g.Git("tag", "light", first)
	g.Git("tag", "-a", "-m", "heavy", "heavy", second)
	g.Git("branch", "both", second)
	g.Git("tag", "both", first)
	g.Git("branch", "feature/x", first)
	tag, tree := g.Git("rev-parse", "heavy"), g.Git("rev-parse", "main^{tree}")
	check := func(when string) {
		for _, c := range []struct {
			rev  string
			id   string
			kind Type
		}{
			{"main", second, TypeCommit}, {"HEAD", second, TypeCommit}, {"@", second, TypeCommit}, {"@~1", first, TypeCommit},
			{"refs/heads/main", second, TypeCommit}, {"heads/main", second, TypeCommit}, {"tags/light", first, TypeCommit},
			{"main^", first, TypeCommit}, {"main~0", second, TypeCommit}, {"main^{tree}", tree, TypeTree}, {"main^{}", second, TypeCommit},
			{"heavy", tag, TypeTag}, {"heavy^{}", second, TypeCommit}, {"heavy^0", second, TypeCommit}, {"both", second, TypeCommit}, {"tags/both", first, TypeCommit}, {"refs/tags/both", first, TypeCommit},
			{second, second, TypeCommit}, {strings.ToUpper(second), second, TypeCommit}, {second[:10], second, TypeCommit},
			{second[:10] + "^{tree}", tree, TypeTree}, {"feature/x", first, TypeCommit},
		} {
			id, kind, err := r.Resolve(t.Context(), c.rev)
			if err != nil || string(id) != c.id || kind != c.kind {
				t.Errorf("%s: %s: %s %s %v", when, c.rev, id, kind, err)
			}
		}
	}
	check("loose")
	g.Git("pack-refs", "--all", "--prune")
	check("packed")
	if id, err := r.ResolveCommit(t.Context(), "heavy"); err != nil || string(id) != second {
		t.Error(id, err)
	}
	if id, err := r.ResolveTree(t.Context(), "heavy"); err != nil || string(id) != tree {
		t.Error(id, err)
	}
	if _, err := r.ResolveCommit(t.Context(), tree); !errors.Is(err, ErrNotFound) {
		t.Errorf("a tree as a commit: %v", err)
	}
	for rev, want := range map[string]error{
		"": ErrBadRevision, "--all": ErrBadRevision, "-x": ErrBadRevision, "a..b": ErrBadRevision, "main:x": ErrBadRevision,
		":/Change": ErrBadRevision, "main^{/Change}": ErrBadRevision, "main\nHEAD": ErrBadRevision, "main\x00": ErrBadRevision,
		"main@{1}": ErrBadRevision, "../config": ErrBadRevision, "main^!": ErrBadRevision, strings.Repeat("a", 4096): ErrBadRevision,
		"nowhere": ErrNotFound, "config": ErrNotFound, "main~9": ErrNotFound, "abcd": ErrNotFound, "refs": ErrNotFound, "feature": ErrNotFound,
		"0123456789012345678901234567890123456789": ErrNotFound, "feature/x/y": ErrNotFound, "refs/heads": ErrNotFound,
	} {
		if _, _, err := r.Resolve(t.Context(), rev); !errors.Is(err, want) {
			t.Errorf("%.50q: %v, want %v", rev, err, want)
		}
	}
	none := r.engine.Repo(t.TempDir() + "/none")
	if _, _, err := none.Resolve(t.Context(), "main"); !errors.Is(err, ErrNoRepository) {
		t.Errorf("no repository: %v", err)
	}
}

// TestReadersSeeNewThings checks that a ref that another process moves is seen at once, packed
// or loose, and so are objects created after the readers have started.
func TestReadersSeeNewThings(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	for i := range 6 {
		id := g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "x", Content: fmt.Sprint(i)}}})
		if i%2 == 0 {
			g.Git("pack-refs", "--all", "--prune")
			g.Git("repack", "-adq")
		}
		c, err := r.Commit(t.Context(), "main")
		if err != nil || string(c.ID) != id {
			t.Fatalf("%d: %v", i, err)
		}
		e, err := r.Entry(t.Context(), "main", "x")
		if err != nil {
			t.Fatal(err)
		}
		if o, err := r.Object(t.Context(), e.OID); err != nil || string(o.Content) != fmt.Sprint(i) {
			t.Fatalf("%d: %v", i, err)
		}
	}
}

func TestObjectAndOpen(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	text := strings.Repeat("0123456789abcdef", 200_000) // 3.2 MB
	for _, content := range []string{"", "small", "with\nlines\n", text[:MaxObject], text} {
		id := OID(g.Object("blob", content))
		o, err := r.Object(t.Context(), id)
		if len(content) > MaxObject {
			if !errors.Is(err, ErrTooLarge) {
				t.Errorf("%d bytes: %v", len(content), err)
			}
		} else if err != nil || string(o.Content) != content || o.Type != TypeBlob {
			t.Errorf("%d bytes: %v", len(content), err)
		}
		c, err := r.Open(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(c)
		if err != nil || string(got) != content || c.Size != int64(len(content)) || c.Close() != nil {
			t.Errorf("%d bytes as a stream: %d, %v", len(content), len(got), err)
		}
	}
	if _, err := r.Open(t.Context(), ZeroOID); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func TestOpenClosedEarly(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	id := OID(g.Object("blob", strings.Repeat("x", 8<<20)))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range 6 {
		c, err := r.Open(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		if i < 5 {
			c.Close()
			continue
		}
		cancel()
		if _, err := io.Copy(io.Discard, c); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of the context: %v", err)
		}
	}
	waittest.For(t, "the processes are gone", func() bool { return r.engine.transfers.Held() == 0 })
}

// TestScopes checks that a repository does not see objects of another one through the shared
// cache.
func TestScopes(t *testing.T) {
	t.Parallel()
	a, ga := open(t)
	gb := gittest.New(t)
	b := a.engine.Repo(gb.Path)
	id := OID(ga.Object("blob", "secret"))
	for range 2 {
		if _, err := a.Object(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Object(t.Context(), id); !errors.Is(err, ErrNotFound) {
			t.Fatalf("found in another repository: %v", err)
		}
		if o, err := b.With(a).Object(t.Context(), id); err != nil || string(o.Content) != "secret" {
			t.Fatalf("through a view: %v", err)
		}
	}
	a.Forget()
	if a.engine.cache.used() == 0 {
		t.Error("forgot what others have")
	}
	b.Forget()
	if n := a.engine.cache.used(); n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}

func TestReaderIsReplaced(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	ids := []OID{OID(g.Object("blob", "1")), OID(g.Object("blob", "2"))}
	if _, err := r.Object(t.Context(), ids[0]); err != nil {
		t.Fatal(err)
	}
	pool := r.engine.readers
	if len(pool.resting) != 1 {
		t.Fatalf("%d readers rest", len(pool.resting))
	}
	old := pool.resting[0].cmd.Process.Pid
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if o, err := r.Object(t.Context(), ids[1]); err != nil || string(o.Content) != "2" {
		t.Fatal(err)
	}
	if len(pool.resting) != 1 || pool.resting[0].cmd.Process.Pid == old || pool.share.Held() != 0 {
		t.Error("it was not replaced")
	}
}

// TestCanceledReadIsNotReused checks that the process of a caller that leaves in the middle of
// a response is not reused.
func TestCanceledReadIsNotReused(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	big, small := OID(g.Object("blob", strings.Repeat("b", MaxObject))), OID(g.Object("blob", "s"))
	ctx, cancel := context.WithCancel(t.Context())
	err := r.withReader(ctx, func(p *reader) error {
		if _, err := io.WriteString(p.in, "contents "+string(big)+"\n"); err != nil {
			return err
		}
		if _, err := p.out.ReadByte(); err != nil {
			return err
		}
		cancel()
		for {
			if _, err := p.out.Discard(1 << 15); err != nil {
				return err
			}
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if o, err := r.Object(t.Context(), small); err != nil || string(o.Content) != "s" {
		t.Errorf("the next caller: %v", err)
	}
}

func TestReadersAreBounded(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Limits{Readers: 3, Idle: 200 * time.Millisecond})
	type target struct {
		repo Repo
		id   OID
	}
	var targets []target
	for i := range 6 {
		g := gittest.New(t)
		targets = append(targets, target{e.Repo(g.Path), OID(g.Object("blob", fmt.Sprint(i)))})
	}
	var all sync.WaitGroup
	for n := range 60 {
		all.Go(func() {
			x := targets[n%len(targets)]
			x.repo.Forget() // so that it must be read
			if o, err := x.repo.Object(t.Context(), x.id); err != nil || string(o.Content) != fmt.Sprint(n%len(targets)) {
				t.Errorf("%d: %v", n, err)
			}
			e.readers.mu.Lock()
			defer e.readers.mu.Unlock()
			if k := e.readers.inUse + len(e.readers.resting); k > 3 {
				t.Errorf("%d readers", k)
			}
		})
	}
	all.Wait()
	waittest.For(t, "idle readers are ended", func() bool {
		e.readers.mu.Lock()
		defer e.readers.mu.Unlock()
		return len(e.readers.resting) == 0
	})
}

func TestTree(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	sub := "1234567890123456789012345678901234567890"
	g.Commit(gittest.Commit{Changes: []gittest.Change{
		{Path: "a", Content: "1"}, {Path: "b/c", Content: "1"}, {Path: "b/d/e", Content: "1", Mode: "100755"}, {Path: "b.x", Content: "1"},
		{Path: "b-x", Content: "1"}, {Path: "link", Content: "a", Mode: "120000"}, {Path: "mod", Content: sub, Mode: "160000"}, {Path: "ü/z", Content: "1"},
	}})
	// git's own list defines the order.
	want := strings.Split(g.Git("-c", "core.quotePath=false", "ls-tree", "-r", "-t", "-z", "--format=%(objectmode) %(objecttype) %(objectname) %(path)", "main"), "\x00")
	want = want[:len(want)-1]
	show := func(list []Entry) []string {
		var s []string
		for _, e := range list {
			s = append(s, fmt.Sprintf("%s %s %s %s", e.Mode, e.Type, e.OID, e.Path))
		}
		return s
	}
	all, err := r.Tree(t.Context(), TreeOptions{Rev: "main", Recursive: true})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, show(all)); d != "" {
		t.Error(d)
	}
	for limit := 1; limit <= len(want); limit++ {
		var got []string
		after := ""
		for {
			page, err := r.Tree(t.Context(), TreeOptions{Rev: "main", Recursive: true, After: after, Limit: limit})
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			got = append(got, show(page)...)
			after = page[len(page)-1].Key()
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("pages of %d: %s", limit, d)
		}
	}
	for _, c := range []struct {
		o    TreeOptions
		want string
	}{
		{TreeOptions{Rev: "main"}, "a b-x b.x b link mod ü"},
		{TreeOptions{Rev: "main", Path: "b"}, "b/c b/d"},
		{TreeOptions{Rev: "main", Path: "/b/"}, "b/c b/d"},
		{TreeOptions{Rev: "main", Path: "b", Recursive: true}, "b/c b/d b/d/e"},
		{TreeOptions{Rev: "main", Path: "b", Recursive: true, After: "b/d/"}, "b/d/e"},
		{TreeOptions{Rev: "main", After: "b.x"}, "b link mod ü"},
		{TreeOptions{Rev: "main", After: "b/nothing", Limit: 2}, "link mod"},
	} {
		list, err := r.Tree(t.Context(), c.o)
		var paths []string
		for _, e := range list {
			paths = append(paths, e.Path)
		}
		if got := strings.Join(paths, " "); err != nil || got != c.want {
			t.Errorf("%+v: %s %v", c.o, got, err)
		}
	}
	for path, want := range map[string]error{
		"none": ErrNotFound, "a": ErrNotFound, "a/b": ErrNotFound, "b/c/d": ErrNotFound, "mod": ErrNotFound, "../x": ErrBadPath,
		"b/../a": ErrBadPath, "b//c": ErrBadPath, "\x00": ErrBadPath, strings.Repeat("a/", 3000): ErrBadPath,
	} {
		if _, err := r.Tree(t.Context(), TreeOptions{Rev: "main", Path: path}); !errors.Is(err, want) {
			t.Errorf("%.30q: %v", path, err)
		}
	}
	if e, err := r.Entry(t.Context(), "main", "b/d/e"); err != nil || e.Mode != "100755" || e.Path != "b/d/e" {
		t.Errorf("%+v %v", e, err)
	}
	if list, err := r.Tree(t.Context(), TreeOptions{Rev: string(EmptyTree)}); err != nil || len(list) != 0 {
		t.Errorf("the empty tree: %v %v", list, err)
	}
}

func TestCacheKeepsItsBudget(t *testing.T) {
	t.Parallel()
	c := newCache(64 << 10)
	for i := range 10_000 {
		c.put(cacheKey{"r", kindContent, fmt.Sprint(i)}, i, i%300)
	}
	if n := c.used(); n > 64<<10 || n < 32<<10 {
		t.Errorf("%d bytes", n)
	}
	if v, ok := c.get(cacheKey{"r", kindContent, "9999"}); !ok || v != 9999 {
		t.Error("the last one is gone")
	}
	if _, ok := c.get(cacheKey{"r", kindContent, "0"}); ok {
		t.Error("the first one is still there")
	}
	c.put(cacheKey{"r", kindContent, "large"}, 0, 1<<20)
	if _, ok := c.get(cacheKey{"r", kindContent, "large"}); ok {
		t.Error("kept what is too large")
	}
	c.forget("r")
	if n := c.used(); n != 0 {
		t.Errorf("%d bytes after forget", n)
	}
}

// TestReadOfAnotherType checks that reading an object as another type does not affect later
// reads, whether its content was consumed or not.
func TestReadOfAnotherType(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	tip := g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "1"}}})
	// Their content looks like a response.
	forged := strings.Replace(g.Git("cat-file", "commit", tip)+"\n", "Change things", "Forged things", 1)
	answer := fmt.Sprintf("%s commit %d\n%s\n", tip, len(forged), forged)
	small, large := OID(g.Object("blob", answer)), OID(g.Object("blob", answer+strings.Repeat("large", MaxObject)))
	for range 2 {
		for _, id := range []OID{small, large} {
			if _, err := r.commit(t.Context(), id); !errors.Is(err, ErrNotFound) {
				t.Errorf("a blob as a commit: %v", err)
			}
			if _, err := r.entries(t.Context(), id); !errors.Is(err, ErrNotFound) {
				t.Errorf("a blob as a tree: %v", err)
			}
			g.Git("update-ref", "refs/tags/blob", string(id))
			if _, err := r.ResolveCommit(t.Context(), "blob"); !errors.Is(err, ErrNotFound) {
				t.Errorf("a tag of a blob as a commit: %v", err)
			}
			r.engine.cache.forget(r.scope())
			if c, err := r.Commit(t.Context(), "main"); err != nil || string(c.ID) != tip || c.Message != "Change things\n" {
				t.Errorf("the commit after that: %+v, %v", c, err)
			}
		}
	}
	if n := r.engine.readers.share.Held(); n != 0 {
		t.Errorf("%d readers are in use", n)
	}
}
