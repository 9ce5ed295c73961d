package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svc/internal/app"
	"svc/internal/git"
	"svc/internal/git/gittest"
)

// BenchmarkGit compares repository operations of the server with the same operations
// of git, on a repository of 20,000 commits and 5,000 files that was pushed to a
// project.
func BenchmarkGit(b *testing.B) {
	t := &table{}
	p := newPushed(b, gittest.Generate(b, gittest.Large))
	b.Run("read", func(b *testing.B) { gitReads(b, t, p) })
	b.Run("warm", func(b *testing.B) { gitWarm(b, t, p) })
	b.Run("archive", func(b *testing.B) { gitArchives(b, t, p) })
	b.Run("transfer", func(b *testing.B) { gitTransfers(b, t, p) })
	t.finish(b)
}

// finish prints the table and fails if a figure exceeds its limit.
func (t *table) finish(b *testing.B) {
	b.Helper()
	if err := t.write(os.Stdout); err != nil {
		b.Error(err)
	}
	for _, f := range t.figures {
		if !f.ok() {
			b.Errorf("%s is %.3g %s, the limit is %g", f.name, f.measured, f.unit, f.limit)
		}
	}
}

// pushed is a project with a pushed repository, on a separate server.
type pushed struct {
	server *app.Server
	site
	// repo is its repository, in which git is measured, and whose caches in the
	// server can be cleared.
	repo git.Repo
}

// newPushed pushes a repository and runs the housekeeping that the server would do
// later in the background.
func newPushed(b testing.TB, g *gittest.Repo) *pushed {
	b.Helper()
	s := serve(b, "")
	p := &pushed{server: s, site: newSite(b, s.Addr())}
	g.Git("push", "-q", p.remote(), "main")
	found, err := filepath.Glob(filepath.Join(s.Config.Storages["default"], "projects", "*", "*.git"))
	if err != nil || len(found) != 1 {
		b.Fatalf("repositories %v: %v", found, err)
	}
	p.repo = s.Git.Repo(found[0])
	_, err = p.repo.Housekeep(b.Context(), git.HousekeepOptions{Now: time.Now(), Full: true})
	for errors.Is(err, git.ErrBusy) { // the server is running it
		_, err = p.repo.Housekeep(b.Context(), git.HousekeepOptions{Now: time.Now(), Full: true})
	}
	check(b, err)
	return p
}

// site is a server with a project of root.
type site struct {
	addr    string
	name    string
	project int64
	client  *http.Client
}

func newSite(b testing.TB, addr string) site {
	b.Helper()
	return newNamedSite(b, addr, "bench")
}

func newNamedSite(b testing.TB, addr, name string) site {
	b.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}
	b.Cleanup(transport.CloseIdleConnections)
	s := site{addr: addr, name: name, client: &http.Client{Transport: transport}}
	var made struct{ ID int64 }
	check(b, s.post("projects", `{"name":"`+name+`"}`, &made))
	s.project = made.ID
	return s
}

// remote returns the URL of the project for git.
func (s site) remote() string {
	return "http://root:" + rootToken + "@" + s.addr + "/root/" + s.name + ".git"
}

// address returns the API URL of a resource of the project.
func (s site) address(path string) string {
	return fmt.Sprintf("http://%s/api/v4/projects/%d/%s", s.addr, s.project, path)
}

// size reads a resource of the project completely and returns its length.
func (s site) size(path string) (int, error) {
	var n counter
	_, err := get(s.client, s.address(path), rootToken, &n)
	return int(n), err
}

// post creates a resource with the API and decodes the response.
func (s site) post(path, body string, into any) error {
	q, err := http.NewRequest(http.MethodPost, "http://"+s.addr+"/api/v4/"+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("PRIVATE-TOKEN", rootToken)
	q.Header.Set("Content-Type", "application/json")
	res, err := s.client.Do(q)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusCreated {
		return fmt.Errorf("POST %s: %s %s: %w", path, res.Status, text, err)
	}
	return json.Unmarshal(text, into)
}

// counter is a writer that counts bytes.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func check(b testing.TB, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// read returns a function that reads a resource of the project, which must have a
// minimum length.
func (p *pushed) read(b testing.TB, path string, least int) func() {
	return func() {
		if n, err := p.size(path); err != nil || n < least {
			b.Fatalf("%s: %d bytes: %v", path, n, err)
		}
	}
}

// git returns a function that runs git in the repository.
func (p *pushed) git(b testing.TB, args ...string) func() {
	return func() {
		cmd := gittest.Command(p.repo.Path(), args...)
		cmd.Stdout = io.Discard
		if err := cmd.Run(); err != nil {
			b.Fatalf("git %v: %v", args, err)
		}
	}
}

// filePath returns the endpoint of a file of the generated repository.
func filePath(n int) string {
	return "repository/files/" + url.PathEscape(gittest.Path(n)) + "/raw?ref=main"
}

// gitReads compares single requests, the first time and repeated.
func gitReads(b *testing.B, t *table, p *pushed) {
	g := gittest.At(b, p.repo.Path())
	blobs := strings.Fields(g.Git("ls-tree", "-r", "--format=%(objectname)", "main"))
	catFile := p.git(b, "cat-file", "blob", blobs[7])
	next := 0
	other := func() { next = (next + 17) % len(blobs) }
	blob := func() { p.read(b, "repository/blobs/"+blobs[next]+"/raw", 1000)() }
	duel{60, p.repo.Forget, catFile, blob, 0}.figure(b, t, "first read of a blob, nobody has read the repository", "git cat-file", 1.2)
	duel{60, other, catFile, blob, 0}.figure(b, t, "first read of a blob", "git cat-file", 1.2)
	// The response for a file contains its last commit, for which git searches the
	// history.
	file := func() { p.read(b, filePath(next), 1000)() }
	duel{60, other, func() {
		catFile()
		p.git(b, "log", "-1", "--format=%H", "main", "--", gittest.Path(next))()
	}, file, 0}.figure(b, t, "first read of a file", "git cat-file and git log -1", 1.2)

	g.Git("update-ref", "refs/heads/close", "main~100")
	g.Git("update-ref", "refs/heads/far", "main~5000")
	// No results are cached, but the repository is open, as on a server that gets a
	// request for a comparison.
	cold := func() {
		p.repo.Forget()
		p.read(b, "repository/tree", 100)()
	}
	var made struct{ IID int64 }
	check(b, p.post(fmt.Sprintf("projects/%d/merge_requests", p.project), `{"source_branch":"main","target_branch":"close","title":"all of it"}`, &made))
	for _, c := range []struct {
		name   string
		rounds int
		args   []string
		path   string
		least  int
		first  float64
		again  float64
	}{
		{"compare of 100 commits", 50, []string{"diff", "close...main"}, "repository/compare?from=close&to=main", 50_000, 1.2, 0.05},
		{"changes of a merge request of 100 commits", 50, []string{"diff", "close...main"}, "merge_requests/1/diffs?per_page=100", 50_000, 1.2, 0.2},
		{"contributors", 3, []string{"log", "--numstat", "--no-merges", "--find-renames", "main"}, "repository/contributors", 1000, 1.2, 0.05},
		{"merge base", 30, []string{"merge-base", "far", "main"}, "repository/merge_base?refs[]=far&refs[]=main", 100, 1.2, 0.05},
		{"list of 20 commits", 30, []string{"log", "-20", "main"}, "repository/commits?ref_name=main&per_page=20", 5000, 2, 0},
	} {
		duel{c.rounds, cold, p.git(b, c.args...), p.read(b, c.path, c.least), c.again}.figure(b, t, c.name, "git "+c.args[0], c.first)
	}
}

// gitArchives compares archives.
func gitArchives(b *testing.B, t *table, p *pushed) {
	duel{7, p.repo.Forget, p.git(b, "archive", "--format=tar.gz", "main"), p.read(b, "repository/archive.tar.gz?sha=main", mebi), 0.1}.
		figure(b, t, "archive tar.gz", "git archive", 0.7)
}

// gitWarm compares requests whose results are cached with the cheapest request of
// the server.
func gitWarm(b *testing.B, t *table, p *pushed) {
	version := newLeanLoad(b, "http://"+p.addr+"/api/v4/version", rootToken)
	blob := gittest.Run(b, p.repo.Path(), "rev-parse", "main:"+gittest.Path(7))
	for _, c := range []struct{ name, path string }{
		{"page of a tree", "repository/tree?ref=main&path=dir03%2Fsub04&per_page=20"},
		{"small file", filePath(7)},
		{"small blob", "repository/blobs/" + blob},
		{"small blob, raw", "repository/blobs/" + blob + "/raw"},
	} {
		b.Run(c.name, func(b *testing.B) {
			ours := newLeanLoad(b, p.address(c.path), rootToken)
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
				name: "warm " + c.name, measured: median(ratios), limit: 0.5, atLeast: true, unit: "of GET /version",
				note: fmt.Sprintf("%.0f of %.0f requests/s", median(rates), median(versions)),
			})
		})
	}
}

// TestPushed checks that the benchmark reads the pushed repository.
func TestPushed(t *testing.T) {
	t.Parallel()
	g := gittest.Generate(t, gittest.Size{Commits: 120, Files: 50})
	p := newPushed(t, g)
	var file bytes.Buffer
	_, err := get(p.client, p.address(filePath(7)), rootToken, &file)
	if err != nil || strings.TrimSpace(file.String()) != g.Git("cat-file", "blob", "main:"+gittest.Path(7)) {
		t.Errorf("%v: %.100q", err, file.String())
	}
	if seconds, _ := fetchAll(t, p, 3); seconds <= 0 {
		t.Errorf("%v s", seconds)
	}
	dir := filepath.Join(t.TempDir(), "clone")
	gittest.Run(t, "", "clone", "-q", p.remote(), dir)
	if got := gittest.Run(t, dir, "rev-parse", "HEAD"); got != g.Tip("main") {
		t.Errorf("cloned %s", got)
	}
	if n, err := p.size("repository/nothing"); err == nil {
		t.Errorf("%d bytes of nothing", n)
	}
}
