package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/git/gittest"
)

// age makes a file, or all files in a directory, appear older.
func age(t *testing.T, path string, by time.Duration) {
	t.Helper()
	then := time.Now().Add(-by)
	err := filepath.WalkDir(path, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, then, then))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestHousekeepByNeed(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Limits{})
	r, err := e.Init(t.Context(), filepath.Join(t.TempDir(), "r.git"), "main")
	if err != nil {
		t.Fatal(err)
	}
	g := gittest.At(t, r.Path())
	keep := func(want ...string) HousekeepReport {
		t.Helper()
		did, err := r.Housekeep(t.Context(), HousekeepOptions{Now: time.Now()})
		if err != nil || !slices.Equal(did.Did, want) {
			t.Errorf("did %q, want %q; %v", did.Did, want, err)
		}
		if size, err := r.Size(t.Context()); err != nil || size != did.After || size == 0 {
			t.Errorf("%d bytes, %+v, %v", size, did, err)
		}
		g.Git("fsck", "--strict")
		if n, err := r.Needs(t.Context()); err != nil || n.Any() {
			t.Errorf("afterwards: %+v, %v", n, err)
		}
		return did
	}
	keep()
	g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "1"}}})
	keep()
	// Many loose objects and refs.
	tip := g.Tip("main")
	for i := range manyRefs {
		write(t, filepath.Join(r.Path(), "refs/heads/many", fmt.Sprint(i)), tip+"\n")
	}
	var tree bytes.Buffer
	same := make([]byte, 1000)
	for i := range same {
		same[i] = byte(i * i * i >> 3)
	}
	for i := range manyLoose {
		tree.WriteString("100644 blob " + looseBlob(t, r, fmt.Sprint(string(same), i)) + fmt.Sprintf("\tf%03d\n", i))
	}
	id := gittest.RunInput(t, r.Path(), &tree, "mktree")
	commit := g.Git("commit-tree", "-m", "many", "-p", tip, id)
	g.Git("update-ref", "refs/heads/main", commit)
	if n, err := r.Needs(t.Context()); err != nil || n.Loose < manyLoose || n.LooseRefs != manyRefs+1 || !n.Any() {
		t.Errorf("%+v, %v", n, err)
	}
	did := keep("pack-refs", "repack", "commit-graph")
	if did.After >= did.Before {
		t.Errorf("it did not become smaller: %+v", did)
	}
	if refs, err := r.Refs(t.Context(), RefOptions{Place: Heads}); err != nil || len(refs) != manyRefs+1 {
		t.Errorf("%d refs, %v", len(refs), err)
	}
	// A large pack gets a bitmap and a graph.
	var stream bytes.Buffer
	if err := gittest.Stream(&stream, gittest.Size{Commits: 50, Files: 400}); err != nil {
		t.Fatal(err)
	}
	g.Import(&stream)
	if n, err := r.Needs(t.Context()); err != nil || !n.Bitmap {
		t.Errorf("%+v, %v", n, err)
	}
	keep("repack", "prune", "commit-graph")
	big := glob(t, r, "objects/pack/*.bitmap")
	// Several small packs are combined, and the large one is kept.
	for i := range manyPacks {
		blob := looseBlob(t, r, fmt.Sprint("small", i))
		gittest.RunInput(t, r.Path(), strings.NewReader(blob), "pack-objects", "-q", filepath.Join(r.Path(), "objects/pack/pack"))
		g.Git("prune-packed")
	}
	keep("repack", "commit-graph")
	if got := glob(t, r, "objects/pack/*.bitmap"); len(big) != 1 || !slices.Equal(got, big) {
		t.Errorf("%q became %q", big, got)
	}
	if _, err := e.Repo(r.Path()+"x").Housekeep(t.Context(), HousekeepOptions{Now: time.Now()}); !errors.Is(err, ErrNoRepository) {
		t.Error(err)
	}
}

// looseBlob writes a loose blob without a process.
func looseBlob(t *testing.T, r Repo, content string) string {
	t.Helper()
	q := &quarantine{repo: r, dir: filepath.Join(r.Path(), "objects"), end: func() {}}
	id, err := q.write(TypeBlob, []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return string(id)
}

func glob(t *testing.T, r Repo, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(r.Path(), pattern))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestHousekeepRemovesUnreachable(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	g.Git("config", "core.logAllRefUpdates", "always")
	g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "1"}}})
	young, old, packed := g.Object("blob", "young"), g.Object("blob", "old"), g.Object("blob", "packed")
	gittest.RunInput(t, r.Path(), strings.NewReader(packed), "pack-objects", "-q", filepath.Join(r.Path(), "objects/pack/pack"))
	g.Git("prune-packed")
	age(t, filepath.Join(r.Path(), "objects", old[:2], old[2:]), 15*24*time.Hour)
	// Objects in a reflog are kept.
	lost := g.Commit(gittest.Commit{Branch: "side", Changes: []gittest.Change{{Path: "b", Content: "2"}}})
	g.Git("update-ref", "refs/heads/side", lost)
	if err := r.UpdateRefs(t.Context(), []Update{{Ref: "refs/heads/side", Old: OID(lost), New: OID(g.Tip("main"))}}); err != nil {
		t.Fatal(err)
	}
	age(t, filepath.Join(r.Path(), "objects", lost[:2], lost[2:]), 15*24*time.Hour)
	full := func(now time.Time) HousekeepReport {
		t.Helper()
		did, err := r.Housekeep(t.Context(), HousekeepOptions{Now: now, Full: true})
		if err != nil {
			t.Fatal(err)
		}
		return did
	}
	there := func(id string, want bool) {
		t.Helper()
		r.Forget()
		if _, err := r.Info(t.Context(), OID(id)); want != (err == nil) {
			t.Errorf("%.8s: %v", id, err)
		}
	}
	if _, err := r.Info(t.Context(), OID(young)); err != nil {
		t.Fatal(err)
	}
	did := full(time.Now())
	r.engine.readers.mu.Lock()
	if n := len(r.engine.readers.resting); n != 0 {
		t.Errorf("%d readers keep old packs open", n)
	}
	r.engine.readers.mu.Unlock()
	if want := []string{"reflog", "pack-refs", "repack", "prune", "commit-graph"}; !slices.Equal(did.Did, want) {
		t.Errorf("did %q", did.Did)
	}
	there(young, true)
	there(packed, true)
	there(old, true) // its age counts from now
	there(lost, true)
	// The age of an object is kept when it is packed.
	full(time.Now().Add(13 * 24 * time.Hour))
	there(young, true)
	there(packed, true)
	there(old, true)
	full(time.Now().Add(15 * 24 * time.Hour))
	there(young, false)
	there(packed, false)
	there(old, false)
	there(lost, true) // only now it is not in a reflog any more
	full(time.Now().Add(30 * 24 * time.Hour))
	there(lost, false)
	if was, err := r.WasAt(t.Context(), "refs/heads/side", OID(lost)); err != nil || was {
		t.Errorf("the log still tells of it: %v %v", was, err)
	}
	g.Git("fsck", "--strict")
}

// TestHousekeepAfterDeletion deletes a branch whose commits were pushed long ago: they are kept
// for two weeks, for example for a backup that began before.
func TestHousekeepAfterDeletion(t *testing.T) {
	t.Parallel()
	for _, packed := range []bool{true, false} {
		r, g := open(t)
		g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "1"}}})
		gone := g.Commit(gittest.Commit{Branch: "side", Changes: []gittest.Change{{Path: "b", Content: "2"}}})
		if packed {
			g.Git("repack", "-adq")
		}
		age(t, filepath.Join(r.Path(), "objects"), 60*24*time.Hour)
		g.Git("update-ref", "-d", "refs/heads/side")
		for _, after := range []struct {
			days int
			want bool
		}{{0, true}, {13, true}, {15, false}} {
			if _, err := r.Housekeep(t.Context(), HousekeepOptions{Now: time.Now().Add(time.Duration(after.days) * 24 * time.Hour), Full: true}); err != nil {
				t.Fatal(err)
			}
			r.Forget()
			if _, err := r.Info(t.Context(), OID(gone)); after.want != (err == nil) {
				t.Errorf("packed: %t, after %d days: %v", packed, after.days, err)
			}
		}
	}
}

func TestHousekeepRemovesStaleFiles(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "1"}}})
	at := func(name string) string { return filepath.Join(r.Path(), name) }
	stale := []string{"objects/tmp_objdir-incoming-1", "objects/pack/tmp_pack_x", "objects/pack/.tmp-1-pack-x.idx", "objects/00/tmp_obj_x",
		"packed-refs.lock", "packed-refs.new", "HEAD.lock", "refs/heads/main.lock", "objects/info/commit-graphs/commit-graph-chain.lock", "objects/tmp_objdir-incoming-2"}
	for _, name := range stale {
		path := at(name)
		if strings.Contains(name, "objdir") {
			path = filepath.Join(path, "pack", "tmp_pack_y")
		}
		write(t, path, "x")
		age(t, at(name), 7*time.Hour)
	}
	// A pack that is being received in an old directory, and a fresh lock.
	now := time.Now()
	if err := os.Chtimes(at("objects/tmp_objdir-incoming-2/pack/tmp_pack_y"), now, now); err != nil {
		t.Fatal(err)
	}
	write(t, at("refs/heads/other.lock"), "")
	write(t, at("objects/00/"+strings.Repeat("1", 38)), "no object at all")
	if n, err := r.Needs(t.Context()); err != nil || n.Temporary < len(stale) || !n.Any() {
		t.Errorf("%+v, %v", n, err)
	}
	holdRefs(t, r.Path())
	did, err := r.Housekeep(t.Context(), HousekeepOptions{Now: now})
	if err != nil || did.Removed != len(stale)-2 { // the lock of the commit-graph is removed before
		t.Errorf("%+v, %v", did, err)
	}
	for i, name := range stale {
		if _, err := os.Stat(at(name)); (i == len(stale)-1) != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"refs/heads/other.lock", "refs/heads/main", "objects/00/" + strings.Repeat("1", 38)} {
		if _, err := os.Stat(at(name)); err != nil {
			t.Error(err)
		}
	}
}

// TestFoundObjectsAreTouched checks that the age of an existing object is reset when a push or
// a commit needs it.
func TestFoundObjectsAreTouched(t *testing.T) {
	t.Parallel()
	r, _ := open(t)
	id := looseBlob(t, r, "again")
	path := filepath.Join(r.Path(), "objects", id[:2], id[2:])
	age(t, path, 30*24*time.Hour)
	q, err := r.newQuarantine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer q.discard()
	if _, err := q.write(TypeBlob, []byte("again")); err != nil {
		t.Fatal(err)
	}
	if err := q.migrate(); err != nil {
		t.Fatal(err)
	}
	if used, err := lastUsed(path); err != nil || time.Since(used) > time.Hour {
		t.Errorf("%v, %v", used, err)
	}
}

// TestHousekeepBesideOthers runs pushes and reads while everything is repacked.
func TestHousekeepBesideOthers(t *testing.T) {
	t.Parallel()
	s := serve(t, PushOptions{})
	s.bare.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "1"}}})
	blob, err := s.repo.Entry(t.Context(), "main", "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			// Read the ref through a process that has the old packs open.
			err := s.repo.withReader(context.Background(), func(p *reader) error {
				_, err := p.info(string(blob.OID))
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
	rounds := 0
	wg.Go(func() {
		for ; ctx.Err() == nil; rounds++ {
			if _, err := s.repo.Housekeep(context.Background(), HousekeepOptions{Now: time.Now(), Full: true}); err != nil {
				t.Error(err)
			}
		}
	})
	dir := s.work("work")
	var pushed []string
	for i := range 15 {
		pushed = append(pushed, s.commit(dir, "f", fmt.Sprint(i)))
		s.must(dir, "push", "-q", s.url, fmt.Sprintf("HEAD:refs/heads/b%d", i))
	}
	cancel()
	wg.Wait()
	for i, id := range pushed {
		if got := s.bare.Tip(fmt.Sprintf("refs/heads/b%d", i)); got != id {
			t.Errorf("b%d is at %q, not %q", i, got, id)
		}
	}
	if err := s.faults(); err != nil || rounds == 0 {
		t.Errorf("%d rounds: %v", rounds, err)
	}
	s.clean()
}

func TestHousekeepOneAtATime(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "1"}}})
	r.engine.upkeep <- struct{}{}
	if _, err := r.Housekeep(t.Context(), HousekeepOptions{Now: time.Now()}); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
	<-r.engine.upkeep
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Housekeep(ctx, HousekeepOptions{Now: time.Now(), Full: true}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := r.Housekeep(t.Context(), HousekeepOptions{Now: time.Now(), Full: true}); err != nil {
		t.Error(err)
	}
}
