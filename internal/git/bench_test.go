package git

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	"svc/internal/git/gittest"
)

// against times what git does alone beside what the engine does, in turns, and
// reports the ratio.
func against(b *testing.B, git func(), ours func()) {
	b.Helper()
	var theirs, mine time.Duration
	for b.Loop() {
		began := time.Now()
		git()
		middle := time.Now()
		ours()
		theirs += middle.Sub(began)
		mine += time.Since(middle)
	}
	b.ReportMetric(float64(mine)/float64(theirs), "ratio")
	b.ReportMetric(float64(theirs.Milliseconds())/float64(b.N), "git-ms/op")
}

func BenchmarkLarge(b *testing.B) {
	g := gittest.Generate(b, gittest.Large)
	fresh := func(b *testing.B) Repo { return newEngine(b, Limits{}).Repo(g.Path) }
	warm := fresh(b)
	// cold has a process that reads, as a busy server does, but no answers.
	cold := func(b *testing.B) Repo {
		warm.engine.cache.forget(warm.scope())
		return warm
	}
	must := func(b *testing.B, err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	g.Git("commit-graph", "write", "--reachable")
	run := func(b *testing.B, args ...string) func() {
		return func() {
			cmd := gittest.Command(g.Path, args...)
			cmd.Stdout = io.Discard
			must(b, cmd.Run())
		}
	}
	for _, format := range []ArchiveFormat{TarGz, TarBz2, Zip} {
		b.Run("archive "+string(format), func(b *testing.B) {
			args := []string{"archive", "--format=" + string(format), "main"}
			if format == TarBz2 {
				args = []string{"-c", "tar.tar.bz2.command=bzip2 -c", "archive", "--format=tar.bz2", "main"}
			}
			against(b, run(b, args...), func() {
				must(b, warm.Archive(b.Context(), io.Discard, ArchiveOptions{Rev: "main", Format: format}))
			})
		})
	}
	b.Run("first blob", func(b *testing.B) {
		against(b, run(b, "cat-file", "blob", "main:"+gittest.Path(7)), func() {
			r := fresh(b)
			e, err := r.Entry(b.Context(), "main", gittest.Path(7))
			must(b, err)
			_, err = r.Object(b.Context(), e.OID)
			must(b, err)
		})
	})
	b.Run("warm blob", func(b *testing.B) {
		for b.Loop() {
			e, err := warm.Entry(b.Context(), "main", gittest.Path(7))
			must(b, err)
			_, err = warm.Object(b.Context(), e.OID)
			must(b, err)
		}
	})
	b.Run("warm tree page", func(b *testing.B) {
		for b.Loop() {
			_, err := warm.Tree(b.Context(), TreeOptions{Rev: "main", Recursive: true, After: "dir03/", Limit: 100})
			must(b, err)
		}
	})
	b.Run("diff of 100 commits", func(b *testing.B) {
		against(b, run(b, "diff", "main~100", "main"), func() {
			_, err := cold(b).Diff(b.Context(), DiffOptions{From: "main~100", To: "main"})
			must(b, err)
		})
	})
	b.Run("diff again", func(b *testing.B) {
		against(b, run(b, "diff", "main~100", "main"), func() {
			_, err := warm.Diff(b.Context(), DiffOptions{From: "main~100", To: "main"})
			must(b, err)
		})
	})
	b.Run("contributors", func(b *testing.B) {
		against(b, run(b, "log", "--numstat", "main"), func() {
			_, err := cold(b).Contributors(b.Context(), "main")
			must(b, err)
		})
	})
	b.Run("merge base", func(b *testing.B) {
		against(b, run(b, "merge-base", "main~5000", "main"), func() {
			_, err := cold(b).MergeBase(b.Context(), "main~5000", "main")
			must(b, err)
		})
	})
	b.Run("log page", func(b *testing.B) {
		against(b, run(b, "log", "-20", "main"), func() {
			_, err := cold(b).Log(b.Context(), LogOptions{From: []string{"main"}, Limit: 20})
			must(b, err)
		})
	})
	b.Run("last commits", func(b *testing.B) {
		against(b, run(b, "log", "-1", "main", "--", "dir09"), func() {
			_, err := cold(b).LastCommits(b.Context(), "main", "", []string{"dir00", "dir01", "dir02", "dir03", "dir04", "dir05"})
			must(b, err)
		})
	})
}

func BenchmarkPushAndClone(b *testing.B) {
	s := serve(b, PushOptions{})
	var stream bytes.Buffer
	if err := gittest.Stream(&stream, gittest.Size{Commits: 300, Files: 500}); err != nil {
		b.Fatal(err)
	}
	s.bare.Import(&stream)
	dir := s.work("work")
	file := "file://" + s.bare.Path
	b.Run("push", func(b *testing.B) {
		n := 0
		push := func(url string) func() {
			return func() {
				n++
				s.must(dir, "push", "-q", url, "HEAD:refs/heads/"+url[:4])
			}
		}
		s.must(dir, "push", "-q", file, "HEAD:refs/heads/file", "HEAD:refs/heads/http")
		against(b, func() {
			s.commit(dir, "x", fmt.Sprint(n))
			push(file)()
		}, func() {
			s.commit(dir, "x", fmt.Sprint(n))
			push(s.url)()
		})
	})
	b.Run("clone", func(b *testing.B) {
		clone := func(url string) func() {
			return func() { s.must("", "clone", "-q", "--bare", url, filepath.Join(b.TempDir(), "c")) }
		}
		against(b, clone(file), clone(s.url))
	})
}
