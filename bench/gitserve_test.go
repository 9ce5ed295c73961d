package bench

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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

// serveGit serves one repository by the engine: git's own protocol, and the
// reads that are measured.
func serveGit(b testing.TB, r git.Repo) (url string) {
	b.Helper()
	failed := func(err error) {
		if err != nil {
			b.Errorf("serve: %v", err)
		}
	}
	answer := func(w http.ResponseWriter, v any, err error) {
		failed(err)
		w.Header().Set("Content-Type", "application/json")
		failed(json.NewEncoder(w).Encode(v))
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		o := git.ServeOptions{Stateless: true, Protocol: q.Header.Get("Git-Protocol")}
		ctx := q.Context()
		switch q.URL.Path + "?" + q.URL.RawQuery {
		case "/repo.git/info/refs?service=git-upload-pack":
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			failed(r.AdvertiseUpload(ctx, w, o))
		case "/repo.git/info/refs?service=git-receive-pack":
			w.Header().Set("Content-Type", "application/x-git-receive-pack-advertisement")
			failed(r.AdvertiseReceive(ctx, w, git.PushOptions{ServeOptions: o}))
		case "/repo.git/git-upload-pack?":
			w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
			failed(r.UploadPack(ctx, plainBody(q), w, o))
		case "/repo.git/git-receive-pack?":
			w.Header().Set("Content-Type", "application/x-git-receive-pack-result")
			_, err := r.ReceivePack(ctx, plainBody(q), w, git.PushOptions{ServeOptions: o})
			failed(err)
		case "/tree?":
			list, err := r.Tree(ctx, git.TreeOptions{Rev: "main", Path: "dir03/sub04", Limit: 20})
			answer(w, list, err)
		case "/blob?":
			e, err := r.Entry(ctx, "main", gittest.Path(7))
			failed(err)
			o, err := r.Object(ctx, e.OID)
			failed(err)
			_, err = w.Write(o.Content)
			failed(err)
		case "/archive?":
			failed(r.Archive(ctx, w, git.ArchiveOptions{Rev: "main", Format: git.TarGz}))
		case "/compare?":
			d, err := r.Diff(ctx, git.DiffOptions{From: "main~1", To: "main"})
			answer(w, d, err)
		default:
			http.NotFound(w, q)
		}
	}))
	b.Cleanup(s.Close)
	return s.URL
}

// plainBody is what a client sent, which git compresses when it is long.
func plainBody(q *http.Request) io.Reader {
	if q.Header.Get("Content-Encoding") != "gzip" {
		return q.Body
	}
	z, err := gzip.NewReader(q.Body)
	if err != nil {
		return strings.NewReader("")
	}
	return z
}

// gitWarm compares reads of what is known with the least that the server
// answers.
func gitWarm(b *testing.B, t *table, r git.Repo) {
	version := newLoad(b, "http://"+serve(b, "").Addr()+"/api/v4/version", rootToken)
	url := serveGit(b, r)
	for _, path := range []string{"/tree", "/blob"} {
		b.Run(path[1:], func(b *testing.B) {
			ours := newLoad(b, url+path, "")
			ours.run(b, requestRound)
			version.run(b, requestRound)
			var ratios, rates, versions []float64
			for b.Loop() {
				for range requestRounds {
					base, rate := version.run(b, requestRound), ours.run(b, requestRound)
					ratios, rates, versions = append(ratios, rate/base), append(rates, rate), append(versions, base)
				}
			}
			t.add(b, figure{
				name: "warm " + path[1:], measured: median(ratios), limit: 0.5, atLeast: true, unit: "of GET /version",
				note: fmt.Sprintf("%.0f of %.0f requests/s", median(rates), median(versions)),
			})
		})
	}
}

// gitTransfers compares clones and pushes over HTTP with those from a
// directory, and many clones with one.
func gitTransfers(b *testing.B, t *table, e *git.Engine, from git.Repo) {
	// A fork has our own settings, which sync what is pushed, for both ways.
	r, err := e.Fork(context.Background(), from, filepath.Join(b.TempDir(), "served.git"))
	check(b, err)
	_, err = r.Housekeep(context.Background(), git.HousekeepOptions{Now: time.Now(), Full: true})
	check(b, err)
	url, file := serveGit(b, r), "file://"+r.Path()

	clone := func(from string) func() {
		return func() {
			dir := filepath.Join(b.TempDir(), "clone")
			gittest.Run(b, "", "clone", "-q", "--bare", from, dir)
			check(b, os.RemoveAll(dir))
		}
	}
	duel{5, r.Forget, clone(file), clone(url + "/repo.git"), 0}.figure(b, t, "clone over HTTP", "one over file://", 1.15)

	b.Run("20 clones", func(b *testing.B) {
		var one, many, cpuOne, cpuMany []float64
		for b.Loop() {
			for range 5 {
				r.Forget()
				seconds, cpu := fetchAll(b, r, url, 1)
				one, cpuOne = append(one, seconds), append(cpuOne, cpu)
				r.Forget()
				seconds, cpu = fetchAll(b, r, url, 20)
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
	commit := func() { // a new file, without a work tree
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
	duel{15, commit, push(file, "file"), push(url+"/repo.git", "http"), 0}.figure(b, t, "push of one commit over HTTP", "one over file://", 2)
}

// fetchAll sends what a clone sends, from many clients at once that throw away
// what they get: those of git would take the processor for themselves. It
// gives the time until all have their answer, and that of git's processes.
func fetchAll(b testing.TB, r git.Repo, url string, n int) (seconds, cpu float64) {
	b.Helper()
	refs, err := r.Refs(context.Background(), git.RefOptions{})
	check(b, err)
	body := cloneRequest(refs)
	var wg sync.WaitGroup
	var mu sync.Mutex
	sizes := map[int]int{}
	before, began := childTime(b), time.Now()
	for range n {
		wg.Go(func() {
			size, err := fetch(url, body)
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
		b.Errorf("answers of %v bytes", sizes)
	}
	return seconds, cpu
}

// cloneRequest is what git sends to clone all refs.
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

func fetch(url string, body []byte) (size int, err error) {
	q, err := http.NewRequest(http.MethodPost, url+"/repo.git/git-upload-pack", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	q.Header.Set("Git-Protocol", "version=2")
	q.Header.Set("Content-Type", "application/x-git-upload-pack-request")
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	head := make([]byte, 13)
	if _, err := io.ReadFull(res.Body, head); err != nil || string(head) != "000dpackfile\n" {
		return 0, fmt.Errorf("the answer begins with %q: %w", head, err)
	}
	n, err := io.Copy(io.Discard, res.Body)
	return int(n), err
}

// childTime is the processor time of the processes that have ended.
func childTime(b testing.TB) float64 {
	var u syscall.Rusage
	check(b, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// What is measured is a clone.
func TestFetchAll(t *testing.T) {
	t.Parallel()
	g := gittest.Generate(t, gittest.Size{Commits: 5, Files: 50})
	r := newEngine(t).Repo(g.Path)
	url := serveGit(t, r)
	if seconds, _ := fetchAll(t, r, url, 3); seconds <= 0 {
		t.Errorf("%v s", seconds)
	}
	dir := filepath.Join(t.TempDir(), "clone")
	gittest.Run(t, "", "clone", "-q", url+"/repo.git", dir)
	if got := gittest.Run(t, dir, "rev-parse", "HEAD"); got != g.Tip("main") {
		t.Errorf("cloned %s", got)
	}
}
