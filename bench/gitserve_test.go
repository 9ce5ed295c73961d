package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"svc/internal/git"
	"svc/internal/git/gittest"
)

// gitTransfers compares clones and pushes over HTTP with those from a directory, and
// many concurrent clones with one.
func gitTransfers(b *testing.B, t *table, p *pushed) {
	// The repository has the settings of the server, which sync pushed objects to
	// disk, in both cases.
	file := "file://" + p.repo.Path()
	clone := func(from string) func() {
		return func() {
			dir := filepath.Join(b.TempDir(), "clone")
			gittest.Run(b, "", "clone", "-q", "--bare", from, dir)
			check(b, os.RemoveAll(dir))
		}
	}
	duel{5, p.repo.Forget, clone(file), clone(p.remote()), 0}.figure(b, t, "clone over HTTP", "one over file://", 1.15)

	b.Run("20 clones", func(b *testing.B) {
		var one, many, cpuOne, cpuMany []float64
		for b.Loop() {
			for range 5 {
				p.repo.Forget()
				seconds, cpu := fetchAll(b, p, 1)
				one, cpuOne = append(one, seconds), append(cpuOne, cpu)
				p.repo.Forget()
				seconds, cpu = fetchAll(b, p, 20)
				many, cpuMany = append(many, seconds), append(cpuMany, cpu)
			}
		}
		t.add(b, figure{
			name: "20 clones at once", measured: median(many) / median(one), limit: 3, unit: "of one",
			note: fmt.Sprintf("%.2f of %.2f s, %.2f of %.2f s of git's processes", median(many), median(one), median(cpuMany), median(cpuOne)),
		})
	})

	work := filepath.Join(b.TempDir(), "work")
	gittest.Run(b, "", "clone", "-q", "--no-checkout", "--depth=1", file, work)
	n := 0
	commit := func() { // adds a file, without a work tree
		n++
		blob := gittest.RunInput(b, work, strings.NewReader(fmt.Sprint("content ", n)), "hash-object", "-w", "--stdin")
		gittest.Run(b, work, "read-tree", "HEAD")
		gittest.Run(b, work, "update-index", "--add", "--cacheinfo", "100644,"+blob+",new")
		gittest.Run(b, work, "commit", "-q", "-m", fmt.Sprint("change ", n))
	}
	push := func(to, branch string) func() {
		return func() { gittest.Run(b, work, "push", "-q", to, "HEAD:refs/heads/"+branch) }
	}
	push(file, "file")()
	push(file, "http")()
	duel{15, commit, push(file, "file"), push(p.remote(), "http"), 0}.figure(b, t, "push of one commit over HTTP", "one over file://", 2)
}

// fetchAll clones with many concurrent clients, which discard the pack, because git
// clients would use most of the CPU. It returns the time until all have received
// their response, and the CPU time of the git processes.
func fetchAll(b testing.TB, p *pushed, n int) (seconds, cpu float64) {
	b.Helper()
	refs, err := p.repo.Refs(context.Background(), git.RefOptions{})
	check(b, err)
	body := cloneRequest(refs)
	var wg sync.WaitGroup
	var mu sync.Mutex
	sizes := map[int]int{}
	before, began := childTime(b), time.Now()
	for range n {
		wg.Go(func() {
			size, err := p.fetch(body)
			if err != nil {
				b.Error(err)
			}
			mu.Lock()
			sizes[size]++
			mu.Unlock()
		})
	}
	wg.Wait()
	seconds, cpu = time.Since(began).Seconds(), childTime(b)-before
	if len(sizes) != 1 || sizes[0] > 0 {
		b.Errorf("responses of %v bytes", sizes)
	}
	return seconds, cpu
}

// cloneRequest returns the request of git for a clone of all refs.
func cloneRequest(refs []git.Ref) []byte {
	var q bytes.Buffer
	packet := func(line string) { fmt.Fprintf(&q, "%04x%s\n", len(line)+5, line) }
	packet("command=fetch")
	packet("object-format=sha1")
	q.WriteString("0001")
	for _, arg := range []string{"thin-pack", "no-progress", "ofs-delta"} {
		packet(arg)
	}
	for _, ref := range refs {
		packet("want " + string(ref.ID))
	}
	packet("done")
	q.WriteString("0000")
	return q.Bytes()
}

// fetch sends the request of a clone and returns the length of the pack.
func (s site) fetch(body []byte) (size int, err error) {
	q, err := http.NewRequest(http.MethodPost, s.remote()+"/git-upload-pack", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	q.Header.Set("Git-Protocol", "version=2")
	q.Header.Set("Content-Type", "application/x-git-upload-pack-request")
	res, err := s.client.Do(q)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	head := make([]byte, 13)
	if _, err := io.ReadFull(res.Body, head); err != nil || string(head) != "000dpackfile\n" {
		return 0, fmt.Errorf("the response starts with %q: %w", head, err)
	}
	n, err := io.Copy(io.Discard, res.Body)
	return int(n), err
}

// childTime returns the CPU time of child processes that have ended.
func childTime(b testing.TB) float64 {
	var u syscall.Rusage
	check(b, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
