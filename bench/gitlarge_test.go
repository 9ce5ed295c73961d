package bench

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/git"
	"svc/internal/git/gittest"
)

// BenchmarkGitLarge measures the memory for serving a repository of 1 GiB. It has a
// separate target, make bench-large, because it writes several GiB to the directory
// for temporary files.
func BenchmarkGitLarge(b *testing.B) {
	t := &table{}
	began := time.Now()
	g := generateLarge(b, 1024)
	b.Logf("made 1 GiB in %v", time.Since(began).Round(time.Second))
	tip := g.Tip("main")
	b.Run("memory", func(b *testing.B) {
		var growth []float64
		for b.Loop() {
			dir, addr := b.TempDir(), freeAddr(b)
			p := start(b, dir, addr)
			s := newSite(b, addr)
			g.Git("push", "-q", s.remote(), "main")
			_ = p.end(b) // memory that is used for the push is not measured
			p = start(b, dir, addr)
			_, err := s.size("repository/tree") // opens connections and pools
			check(b, err)
			before := p.resident(b)
			peak := p.watch(b)
			var wg sync.WaitGroup
			for i := range clients {
				wg.Go(func() { largeClient(b, s, tip, i == 0) })
			}
			wg.Wait()
			growth = append(growth, (peak()-before)/mebi)
			_ = p.end(b)
		}
		t.add(b, figure{
			name: "memory for 8 clients of 1 GiB", measured: median(growth), limit: 64, unit: "MiB",
			note: "clone, archive and compare",
		})
	})
	t.finish(b)
}

// largeClient clones, downloads an archive and compares commits.
func largeClient(b testing.TB, s site, tip string, real bool) {
	if real {
		dir := filepath.Join(b.TempDir(), "clone")
		cmd := gittest.Command("", "clone", "-q", "--bare", s.remote(), dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Errorf("clone: %v: %s", err, out)
		}
		if err := os.RemoveAll(dir); err != nil {
			b.Error(err)
		}
	} else if size, err := s.fetch(cloneRequest([]git.Ref{{ID: git.OID(tip)}})); err != nil || size < 1<<30 {
		b.Errorf("a clone of %d bytes: %v", size, err)
	}
	for _, want := range []struct {
		path  string
		least int
	}{{"repository/archive.tar.gz?sha=main", 1 << 30}, {"repository/compare?from=main~1&to=main", 1000}} {
		if n, err := s.size(want.path); err != nil || n < want.least {
			b.Errorf("%s: %d bytes: %v", want.path, n, err)
		}
	}
}

// generateLarge creates a repository with incompressible files of 1 MiB, and a
// second commit that changes a few of them and some text.
func generateLarge(b testing.TB, files int) *gittest.Repo {
	b.Helper()
	g := gittest.New(b)
	out, in := io.Pipe()
	go func() {
		w := bufio.NewWriterSize(in, 1<<20)
		rnd := rand.NewChaCha8([32]byte{1})
		content := make([]byte, mebi)
		for n, changed := range []int{files, 8} {
			message := fmt.Sprintf("Change number %d\n", n)
			fmt.Fprintf(w, "commit refs/heads/main\ncommitter Author <author@example.com> %d +0100\ndata %d\n%s", 1_500_000_000+n, len(message), message)
			for f := range changed {
				_, _ = rnd.Read(content) // never fails
				fmt.Fprintf(w, "M 100644 inline large%04d.bin\ndata %d\n", f, len(content))
				_, _ = w.Write(content) // Flush returns the error
			}
			text := strings.Repeat(fmt.Sprintf("a line of commit %d\n", n), 5000)
			fmt.Fprintf(w, "M 100644 inline text.txt\ndata %d\n%s\n", len(text), text)
		}
		in.CloseWithError(w.Flush())
	}()
	gittest.RunInput(b, g.Path, out, "-c", "core.compression=0", "-c", "pack.compression=0", "fast-import", "--quiet", "--depth=0")
	return g
}

func TestGenerateLarge(t *testing.T) {
	t.Parallel()
	g := generateLarge(t, 9)
	if got := g.Git("rev-list", "--count", "main"); got != "2" {
		t.Errorf("%s commits", got)
	}
	if got := g.Git("diff", "--shortstat", "main~1", "main"); !strings.HasPrefix(got, "9 files changed, 5000 insertions") {
		t.Error(got)
	}
}
