package bucket

import (
	"fmt"
	"testing"

	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/git"
)

// TestDatabaseLosesCommits writes to a repository after the database has lost its last push, as
// after a failover to an asynchronous standby, on the node that has this push in its cache.
func TestDatabaseLosesCommits(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, noticed := range []bool{false, true} {
			for later := range 3 { // pushes to the new primary through another node
				if later > 0 && (!noticed || !d.Postgres()) {
					continue // SQLite has no standby, and only a notice tells
				}
				t.Run(fmt.Sprintf("noticed %t, %d pushes", noticed, later), func(t *testing.T) { testLostCommits(t, d, noticed, later) })
			}
		}
	})
}

func testLostCommits(t *testing.T, d *db.DB, noticed bool, later int) {
	c := newCluster(t, d)
	a, b := c.node(), c.node()
	name := fmt.Sprint(noticed, later)
	if _, err := a.Git.Init(t.Context(), a.dir(name), "main"); err != nil {
		t.Fatal(err)
	}
	base := commit(t, a.repo(name), "main", "a", "x")
	was, err := a.find(t.Context(), a.dir(name))
	if err != nil {
		t.Fatal(err)
	}
	packs, err := findPacks(t.Context(), d, was.id)
	if err != nil || len(packs) != 1 {
		t.Fatal(packs, err)
	}
	lost := commit(t, a.repo(name), "main", "b", "lost")
	if got, err := a.repo(name).Commit(t.Context(), "main"); err != nil || got.ID != lost {
		t.Fatal(got, err)
	}
	for statement, args := range map[string][]any{
		`UPDATE bucket_repositories SET generation = ? WHERE id = ?`:                {was.generation, was.id},
		`UPDATE bucket_refs SET target = ?, generation = ? WHERE repository_id = ?`: {string(base), was.generation, was.id},
		`DELETE FROM bucket_packs WHERE id <> ? AND repository_id = ?`:              {packs[0].id, was.id},
	} {
		if _, err := d.ExecContext(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	want := base
	for i := range later {
		want = commit(t, b.repo(name), "main", fmt.Sprint("later", i), "x")
	}
	if noticed {
		a.prefetch("")
	}
	// The lost commit is still in the cache, so a user may have seen it.
	if err := a.repo(name).UpdateRefs(t.Context(), []git.Update{{Ref: git.Heads + "topic", Old: git.ZeroOID, New: lost}}); err != nil {
		t.Log("create a branch:", err)
	}
	if _, err := tryCommit(t.Context(), a.repo(name), "topic", "c", "x"); err != nil {
		t.Log("commit to it:", err)
	}
	for _, n := range []node{a, b, c.node()} {
		if got, err := n.repo(name).Commit(t.Context(), "main"); err != nil || got.ID != want {
			t.Errorf("main is at %s, want %s: %v", got.ID, want, err)
		}
		if problems, err := n.repo(name).Fsck(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	}
}
