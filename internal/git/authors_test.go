package git

import (
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"svc/internal/git/gittest"
	"svc/internal/waittest"
)

func TestCountAuthors(t *testing.T) {
	t.Parallel()
	r, g := history(t)
	count := func(r Repo, rev string) *AuthorCount {
		t.Helper()
		c, err := r.CountAuthors(t.Context(), rev, time.Minute)
		if err != nil || !c.Done {
			t.Fatal(c, err)
		}
		return c
	}
	for _, rev := range []string{"main~2", "main", "main", "lone"} {
		list, err := newEngine(t, Limits{}).Repo(g.Path).Contributors(t.Context(), rev)
		if err != nil {
			t.Fatal(err)
		}
		for name, repo := range map[string]Repo{"known": r, "fresh": newEngine(t, Limits{}).Repo(g.Path)} {
			c, err := repo.CountLines(t.Context(), rev, time.Minute)
			if d := cmp.Diff(list, c.Authors); err != nil || !c.Done || c.Partial || d != "" {
				t.Error(name, rev, c, err, d)
			}
		}
		for i := range list {
			list[i].Stat = Stat{}
		}
		for name, repo := range map[string]Repo{"known": r, "fresh": newEngine(t, Limits{}).Repo(g.Path)} {
			if d := cmp.Diff(list, count(repo, rev).Authors); d != "" {
				t.Error(name, rev, d)
			}
		}
	}
	// A caller that does not wait gets the intermediate result, and later the final one.
	eachNew := newEngine(t, Limits{}).Repo(g.Path)
	waittest.For(t, "the count", func() bool {
		c, err := eachNew.CountAuthors(t.Context(), "main", 0)
		if err != nil || c.Commits > 4 {
			t.Fatal(c, err)
		}
		return c.Done && c.Commits == 4
	})
	// When the tip moves, only new commits are read: without the old objects the result is
	// the same.
	g.Commit(gittest.Commit{Branch: "main", Author: "Cid <cid@x>", Changes: []gittest.Change{{Path: "new", Content: "x"}}})
	if c := count(eachNew, "main"); c.Commits != 5 || c.Authors[0].Name != "Cid" {
		t.Error(c)
	}
	if _, err := eachNew.CountAuthors(t.Context(), "none", 0); err == nil {
		t.Error("a revision that does not exist was counted")
	}
}

// TestCountLinesLimit reaches the time limit of a count of lines. The result is partial, and
// different from that of Contributors.
func TestCountLinesLimit(t *testing.T) {
	t.Parallel()
	_, g := history(t)
	r := newEngine(t, Limits{Lines: time.Nanosecond}).Repo(g.Path)
	for range 2 {
		if c, err := r.CountLines(t.Context(), "main", time.Minute); err != nil || !c.Done || !c.Partial || c.Commits > 4 {
			t.Error(c, err)
		}
	}
	list, err := r.Contributors(t.Context(), "main")
	if err != nil || len(list) != 2 || list[0].Commits != 2 {
		t.Error(list, err)
	}
	if c, err := r.CountLines(t.Context(), "main", time.Minute); err != nil || c.Partial || c.Commits != 4 {
		t.Error(c, err)
	}
}

// BenchmarkCountAuthors counts the authors of 20,000 commits, and compares that
// with git log of the same repository.
func BenchmarkCountAuthors(b *testing.B) {
	dir := b.TempDir()
	var in strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&in, "commit refs/heads/main\nauthor A%d <a%d@x> %d +0000\ncommitter C <c@x> %d +0000\ndata 20\nThis is a message %02d\nM 100644 inline f%d\ndata 5\n%05d\n",
			i%300, i%300, 1_500_000_000+i*3600, 1_500_000_000+i*3600, i%100, i%500, i)
	}
	for _, args := range [][]string{{"init", "-q", "--bare", dir}, {"-C", dir, "fast-import", "--quiet"}} {
		cmd := exec.Command("git", args...)
		cmd.Stdin = strings.NewReader(in.String())
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
	log := func() time.Duration {
		began := time.Now()
		cmd := exec.Command("git", "-C", dir, "log", "main")
		cmd.Stdout = io.Discard
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	log() // fills the page cache
	var ours, theirs, lines time.Duration
	for b.Loop() {
		theirs += log()
		e, err := New(Deps{Spool: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		c, err := e.Repo(dir).CountAuthors(b.Context(), "main", time.Minute)
		ours += time.Since(began)
		if err != nil || c.Commits != 20_000 || len(c.Authors) != 300 {
			b.Fatal(c, err)
		}
		began = time.Now()
		if c, err := e.Repo(dir).CountLines(b.Context(), "main", time.Minute); err != nil || c.Commits != 20_000 {
			b.Fatal(c, err)
		}
		lines += time.Since(began)
		e.Close()
	}
	b.ReportMetric(float64(ours)/float64(theirs), "x-git-log")
	b.ReportMetric(float64(lines)/float64(theirs), "lines-x-git-log")
}
