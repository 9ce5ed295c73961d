package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"svc/internal/git"
	"svc/internal/git/gittest"
)

// BenchmarkGit measures what the git engine promises, beside git doing the
// same, on a repository of 20,000 commits and 5,000 files. Where the engine is
// asked over HTTP it is by a handler that does nothing else.
func BenchmarkGit(b *testing.B) {
	t := &table{}
	g := gittest.Generate(b, gittest.Large)
	e := newEngine(b)
	r := e.Repo(g.Path)
	// As it is on a server that takes care of it.
	if _, err := r.Housekeep(b.Context(), git.HousekeepOptions{Now: time.Now(), Full: true}); err != nil {
		b.Fatal(err)
	}
	b.Run("read", func(b *testing.B) { gitReads(b, t, r, g) })
	b.Run("warm", func(b *testing.B) { gitWarm(b, t, r) })
	b.Run("archive", func(b *testing.B) { gitArchives(b, t, r, g) })
	b.Run("transfer", func(b *testing.B) { gitTransfers(b, t, e, r) })
	t.finish(b)
}

// finish prints the table and fails when a figure is beyond its limit.
func (t *table) finish(b *testing.B) {
	b.Helper()
	if err := t.write(os.Stdout); err != nil {
		b.Error(err)
	}
	for _, f := range t.figures {
		if !f.ok() {
			b.Errorf("%s is %.3g %s, beyond the limit of %g", f.name, f.measured, f.unit, f.limit)
		}
	}
}

func newEngine(b testing.TB) *git.Engine {
	b.Helper()
	e, err := git.New(git.Deps{Spool: filepath.Join(b.TempDir(), "spool")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(e.Close)
	return e
}

// duel runs what git does and what we do in turns.
type duel struct {
	rounds int
	before func() // is not timed
	git    func()
	ours   func()
	again  float64 // how much what we do may take when it is repeated; 0 is not promised
}

// run gives the shortest times, in seconds: what else the machine does adds to
// the others.
func (d duel) run() (theirs, ours float64) {
	timed := func(f func()) float64 {
		if d.before != nil {
			d.before()
		}
		began := time.Now()
		f()
		return time.Since(began).Seconds()
	}
	var a, z []float64
	for range d.rounds {
		a = append(a, timed(d.git))
		z = append(z, timed(d.ours))
	}
	return slices.Min(a), slices.Min(z)
}

// figure runs a duel and keeps its result.
func (d duel) figure(b *testing.B, t *table, name, against string, limit float64) {
	b.Helper()
	var theirs, ours float64
	add := func(b *testing.B, name string, limit float64) {
		t.add(b, figure{
			name: name, measured: ours / theirs, limit: limit, unit: "of " + against,
			note: fmt.Sprintf("%.2f of %.2f ms, the best of %d", ours*1e3, theirs*1e3, d.rounds),
		})
	}
	b.Run(name, func(b *testing.B) {
		for b.Loop() {
			theirs, ours = d.run()
		}
		add(b, name, limit)
	})
	if d.again == 0 {
		return
	}
	b.Run(name+", again", func(b *testing.B) {
		d.ours()
		for b.Loop() {
			_, ours = duel{rounds: d.rounds, git: func() {}, ours: d.ours}.run()
		}
		add(b, name+", again", d.again)
	})
}

// runGit gives a function that runs git in a repository.
func runGit(b testing.TB, g *gittest.Repo, args ...string) func() {
	return func() {
		cmd := gittest.Command(g.Path, args...)
		cmd.Stdout = io.Discard
		if err := cmd.Run(); err != nil {
			b.Fatalf("git %v: %v", args, err)
		}
	}
}

func check(b testing.TB, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// gitReads compares single answers, the first time and again.
func gitReads(b *testing.B, t *table, r git.Repo, g *gittest.Repo) {
	ctx := context.Background()
	blob := func() {
		e, err := r.Entry(ctx, "main", gittest.Path(7))
		check(b, err)
		_, err = r.Object(ctx, e.OID)
		check(b, err)
	}
	duel{60, r.Forget, runGit(b, g, "cat-file", "blob", "main:"+gittest.Path(7)), blob, 0}.
		figure(b, t, "first read of a blob, nobody has read the repository", "git cat-file", 1.2)
	next := 0
	duel{60, func() { next = (next + 17) % gittest.Large.Files }, runGit(b, g, "cat-file", "blob", "main:"+gittest.Path(7)), func() {
		e, err := r.Entry(ctx, "main", gittest.Path(next))
		check(b, err)
		_, err = r.Object(ctx, e.OID)
		check(b, err)
	}, 0}.figure(b, t, "first read of a blob", "git cat-file", 1.2)

	g.Git("update-ref", "refs/heads/close", "main~100")
	g.Git("update-ref", "refs/heads/far", "main~5000")
	// No answers are known, but the repository is being read, as it is on a
	// server that is asked for a comparison.
	cold := func() {
		r.Forget()
		_, err := r.Entry(ctx, "main", "")
		check(b, err)
	}
	for _, c := range []struct {
		name   string
		rounds int
		args   []string
		ours   func() error
		first  float64
		again  float64
	}{
		{"compare of 100 commits", 15, []string{"diff", "close...main"}, func() error {
			_, err := r.Diff(ctx, git.DiffOptions{From: "close", To: "main"})
			return err
		}, 1.2, 0.05},
		{"contributors", 3, []string{"log", "--numstat", "--no-merges", "--find-renames", "main"}, func() error {
			_, err := r.Contributors(ctx, "main")
			return err
		}, 1.2, 0.05},
		{"merge base", 30, []string{"merge-base", "far", "main"}, func() error {
			_, err := r.MergeBase(ctx, "far", "main")
			return err
		}, 1.2, 0.05},
		{"list of 20 commits", 30, []string{"log", "-20", "main"}, func() error {
			_, err := r.Log(ctx, git.LogOptions{From: []string{"main"}, Limit: 20})
			return err
		}, 2, 0},
	} {
		duel{c.rounds, cold, runGit(b, g, c.args...), func() { check(b, c.ours()) }, c.again}.figure(b, t, c.name, "git "+c.args[0], c.first)
	}
}

// gitArchives compares archives.
func gitArchives(b *testing.B, t *table, r git.Repo, g *gittest.Repo) {
	archive := func() {
		var n counter
		check(b, r.Archive(context.Background(), &n, git.ArchiveOptions{Rev: "main", Format: git.TarGz}))
		if n < mebi {
			b.Fatalf("an archive of %d bytes", n)
		}
	}
	duel{7, r.Forget, runGit(b, g, "archive", "--format=tar.gz", "main"), archive, 0.1}.figure(b, t, "archive tar.gz", "git archive", 0.7)
}

// counter counts what is written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func TestDuel(t *testing.T) {
	t.Parallel()
	var order bytes.Buffer
	note := func(s string) func() { return func() { order.WriteString(s) } }
	theirs, ours := duel{2, note("-"), note("g"), note("o"), 0}.run()
	if order.String() != "-g-o-g-o" || theirs < 0 || ours < 0 {
		t.Errorf("%q, %v, %v", order.String(), theirs, ours)
	}
}
