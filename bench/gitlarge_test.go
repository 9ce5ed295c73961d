package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"svc/internal/git"
	"svc/internal/git/gittest"
)

// BenchmarkGitLarge measures what serving a repository of 1 GiB takes. It has
// a target of its own, make bench-large: it writes some GiB to the directory
// for temporary files.
func BenchmarkGitLarge(b *testing.B) {
	t := &table{}
	began := time.Now()
	g := generateLarge(b, 1024)
	b.Logf("made 1 GiB in %v", time.Since(began).Round(time.Second))
	r := newEngine(b).Repo(g.Path)
	url := serveGit(b, r)
	refs, err := r.Refs(context.Background(), git.RefOptions{})
	check(b, err)
	body := cloneRequest(refs)
	b.Run("memory", func(b *testing.B) {
		var growth []float64
		for b.Loop() {
			r.Forget()
			largeClient(b, url, body, false) // connections, pools
			r.Forget()
			debug.FreeOSMemory()
			before := ownMemory(b)
			peak := watchMemory(b)
			var wg sync.WaitGroup
			for i := range clients {
				wg.Go(func() { largeClient(b, url, body, i == 0) })
			}
			wg.Wait()
			growth = append(growth, (peak()-before)/mebi)
		}
		t.add(b, figure{
			name: "memory for 8 clients of 1 GiB", measured: median(growth), limit: 64, unit: "MiB",
			note: "clone, archive and compare; the clients are in the same process",
		})
	})
	t.finish(b)
}

// largeClient clones, gets an archive and compares.
func largeClient(b testing.TB, url string, body []byte, real bool) {
	if real {
		dir := filepath.Join(b.TempDir(), "clone")
		cmd := gittest.Command("", "clone", "-q", "--bare", url+"/repo.git", dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Errorf("clone: %v: %s", err, out)
		}
		if err := os.RemoveAll(dir); err != nil {
			b.Error(err)
		}
	} else if size, err := fetch(url, body); err != nil || size < 1<<30 {
		b.Errorf("a clone of %d bytes: %v", size, err)
	}
	for path, least := range map[string]int64{"/archive": 1 << 30, "/compare": 1000} {
		res, err := http.Get(url + path)
		if err != nil {
			b.Error(err)
			return
		}
		n, err := io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if err != nil || n < least {
			b.Errorf("%s: %d bytes: %v", path, n, err)
		}
	}
}

// generateLarge makes a repository of files of 1 MiB that can not be
// compressed, and a second commit that changes a few and some text.
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
				_, _ = rnd.Read(content) // it never fails
				fmt.Fprintf(w, "M 100644 inline large%04d.bin\ndata %d\n", f, len(content))
				_, _ = w.Write(content) // Flush tells
			}
			text := strings.Repeat(fmt.Sprintf("a line of commit %d\n", n), 5000)
			fmt.Fprintf(w, "M 100644 inline text.txt\ndata %d\n%s\n", len(text), text)
		}
		in.CloseWithError(w.Flush())
	}()
	gittest.RunInput(b, g.Path, out, "-c", "core.compression=0", "-c", "pack.compression=0", "fast-import", "--quiet", "--depth=0")
	return g
}

// ownMemory is the resident memory of this process, in bytes.
func ownMemory(b testing.TB) float64 {
	text, err := os.ReadFile("/proc/self/statm")
	check(b, err)
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	check(b, err)
	return float64(pages * os.Getpagesize())
}

// watchMemory notes the most memory that this process has until the function
// that it gives is called.
func watchMemory(b testing.TB) (peak func() float64) {
	end, ended := make(chan struct{}), make(chan struct{})
	most := ownMemory(b)
	go func() {
		defer close(ended)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				most = max(most, ownMemory(b))
			}
		}
	}()
	return func() float64 {
		close(end)
		<-ended
		return most
	}
}

func TestWatchMemory(t *testing.T) {
	t.Parallel()
	before := ownMemory(t)
	peak := watchMemory(t)
	// Not from the heap: that may have room which is resident already.
	held, err := syscall.Mmap(-1, 0, 100*mebi, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	check(t, err)
	for i := 0; i < len(held); i += 4096 {
		held[i] = 1
	}
	time.Sleep(50 * time.Millisecond)
	grown := peak() - before
	check(t, syscall.Munmap(held))
	if grown < 50*mebi { // others may give memory back meanwhile
		t.Errorf("grown by %.0f bytes", grown)
	}
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
