package bucket

import (
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/git"
)

// TestFork forks repositories that share a pack with their forks, and deletes them.
func TestFork(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := newCluster(t, d)
		a := c.node()
		if _, err := a.Git.Init(t.Context(), a.dir("1"), "main"); err != nil {
			t.Fatal(err)
		}
		one := commit(t, a.repo("1"), "main", "large", incompressible(400<<10))
		secret := commit(t, a.repo("1"), "secret", "hidden", "x"+incompressible(150<<10))
		move := func(name string, updates ...git.Update) {
			t.Helper()
			if err := a.repo(name).UpdateRefs(t.Context(), updates); err != nil {
				t.Fatal(err)
			}
		}
		move("1", git.Update{Ref: "refs/internal/keep", New: secret}, git.Update{Ref: git.Tags + "v1", New: one}, git.Update{Ref: git.Heads + "secret", New: git.ZeroOID})
		housekeep := func(name string) {
			t.Helper()
			if _, err := a.repo(name).Housekeep(t.Context(), git.HousekeepOptions{Full: true}); err != nil {
				t.Fatal(err)
			}
		}
		housekeep("1")
		if needs, err := a.repo("1").Needs(t.Context()); err != nil || needs.Any() {
			t.Errorf("needs after housekeeping: %+v, %v", needs, err)
		}
		objects := func() (list []string) {
			t.Helper()
			for o, err := range c.store.List(t.Context(), a.prefix()) {
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, strings.TrimSuffix(o.Key, ".idx"))
			}
			return slices.DeleteFunc(list, func(key string) bool { return strings.Contains(key, ".") || strings.HasSuffix(key, ownerObject) })
		}
		// fork forks a repository and checks the fork on another node.
		fork := func(from, to string, absent ...git.OID) {
			t.Helper()
			if _, err := a.Git.Fork(t.Context(), a.repo(from), a.dir(to), ""); err != nil {
				t.Fatal(err)
			}
			r := c.node().repo(to)
			if problems, err := r.Fsck(t.Context()); err != nil || len(problems) > 0 {
				t.Errorf("%s: %v, %v", to, problems, err)
			}
			names, err := r.RefNames(t.Context(), "refs/", nil)
			if want := []string{git.Heads + "main", git.Tags + "v1"}; err != nil || !slices.Equal(names, want) {
				t.Errorf("%s has %q, %v", to, names, err)
			}
			for _, id := range absent {
				if _, err := r.Commit(t.Context(), string(id)); err == nil {
					t.Errorf("%s has the hidden commit %s", to, id)
				}
			}
		}
		before := objects()
		commit(t, a.repo("1"), "main", "small", "new") // the fork needs more than the pack
		fork("1", "2", secret)
		if now := objects(); !slices.Equal(now, before) {
			t.Errorf("the fork stored an object: %q, before %q", now, before)
		}
		commit(t, a.repo("2"), "main", "own", "of the fork")
		fork("2", "3", secret)
		if _, err := a.Check(t.Context(), func(text string) { t.Error(text) }); err != nil {
			t.Error(err)
		}

		// A commit that the pack has is not reachable any more: it is not shared.
		base, err := a.repo("1").Ref(t.Context(), git.Heads+"main")
		if err != nil {
			t.Fatal(err)
		}
		housekeep("1")
		orphan := commit(t, a.repo("1"), "orphan", "o", "x")
		move("1", git.Update{Ref: git.Heads + "orphan", New: git.ZeroOID}, git.Update{Ref: git.Heads + "main", New: orphan}, git.Update{Ref: git.Tags + "v1", New: orphan})
		fork("1", "4", one, base.ID)

		// The objects exist as long as one repository needs them.
		later := time.Now()
		sweep := func() {
			t.Helper()
			later = later.Add(removedGrace + time.Hour)
			a.Now = func() time.Time { return later }
			if err := a.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"1", "2"} {
			if ok, err := a.repo(name).Remove(t.Context()); !ok || err != nil {
				t.Fatal(ok, err)
			}
			sweep()
			r := c.node().repo("3")
			if problems, err := r.Fsck(t.Context()); err != nil || len(problems) > 0 {
				t.Errorf("after %s was removed: %v, %v", name, problems, err)
			}
		}
		for _, name := range []string{"3", "4"} {
			if ok, err := a.repo(name).Remove(t.Context()); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		sweep()
		if left := objects(); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	})
}

// TestForkWhileCombined forks a repository whose packs are replaced all the time.
func TestForkWhileCombined(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := newCluster(t, d)
		a, b := c.node(), c.node()
		if _, err := a.Git.Init(t.Context(), a.dir("1"), "main"); err != nil {
			t.Fatal(err)
		}
		commit(t, a.repo("1"), "main", "large", incompressible(400<<10))
		ended := make(chan error, 1)
		go func() {
			var err error
			for i := 0; i < 5 && err == nil; i++ {
				if _, err = tryCommit(t.Context(), b.repo("1"), "main", "more"+string(rune('a'+i)), "x"); err == nil {
					_, err = b.repo("1").Housekeep(t.Context(), git.HousekeepOptions{Full: true})
				}
			}
			ended <- err
		}()
		for name := "fork"; ; {
			if _, err := a.Git.Fork(t.Context(), a.repo("1"), a.dir(name), ""); err != nil {
				t.Fatal(err)
			}
			if problems, err := c.node().repo(name).Fsck(t.Context()); err != nil || len(problems) > 0 {
				t.Errorf("%v, %v", problems, err)
			}
			if ok, err := a.repo(name).Remove(t.Context()); !ok || err != nil {
				t.Fatal(ok, err)
			}
			select {
			case err := <-ended:
				if err != nil {
					t.Error(err)
				}
				return
			default:
			}
		}
	})
}
