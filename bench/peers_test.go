package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const (
	peerRounds  = 5
	peerRound   = 2 * time.Second
	peerIssues  = 40
	peerCommits = 60
)

// forge is a compared server: how it is started, and the paths of the compared
// requests.
type forge struct {
	name    string
	program string
	ready   string // path that returns 200 when the server is ready
	api     string // root of its REST API
	start   func(b testing.TB, dir, addr string) *exec.Cmd
	token   func(b testing.TB, dir string) string
	create  string // path for creating a project

	issue    string            // path for creating an issue
	requests map[string]string // paths below the root of the API, by name
}

// readOf lists the compared requests, in the order of the table.
var readOf = []string{"version", "current user", "one project", "20 projects", "20 issues", "20 commits", "a file of 4 KiB"}

// svcForge is svc, built with "make build".
var svcForge = forge{
	name: "svc", program: binary, ready: "/-/readiness", api: "/api/v4",
	start:  func(_ testing.TB, dir, addr string) *exec.Cmd { return command(dir, addr) },
	token:  func(testing.TB, string) string { return rootToken },
	create: "/projects", issue: "/projects/root%2Fp/issues",
	requests: map[string]string{
		"version": "/version", "current user": "/user", "one project": "/projects/root%2Fp", "20 projects": "/projects?per_page=20",
		"20 issues": "/projects/root%2Fp/issues?per_page=20", "20 commits": "/projects/root%2Fp/repository/commits?per_page=20",
		"a file of 4 KiB": "/projects/root%2Fp/repository/files/file.txt/raw?ref=main",
	},
}

// giteaForge is Gitea with its defaults for SQLite. Commits are listed without
// statistics, like those of svc.
func giteaForge(program string) forge {
	return forge{
		name: "Gitea", program: program, ready: "/api/healthz", api: "/api/v1",
		start: func(b testing.TB, dir, addr string) *exec.Cmd {
			host, port, _ := strings.Cut(addr, ":")
			me, err := user.Current()
			check(b, err)
			check(b, os.WriteFile(dir+"/app.ini", fmt.Appendf(nil,
				"RUN_USER = %s\nRUN_MODE = prod\n[server]\nHTTP_ADDR = %s\nHTTP_PORT = %s\nROOT_URL = http://%s/\nDISABLE_SSH = true\nOFFLINE_MODE = true\n"+
					"[database]\nDB_TYPE = sqlite3\nPATH = %s/data/gitea.db\n[repository]\nDEFAULT_BRANCH = main\n"+
					"[security]\nINSTALL_LOCK = true\n[log]\nLEVEL = Warn\n", me.Username, host, port, addr, dir), 0o600))
			return gitea(program, dir, "web")
		},
		token: func(b testing.TB, dir string) string {
			out, err := gitea(program, dir, "admin", "user", "create", "--admin", "--username", "bench", "--password", "correct horse battery",
				"--email", "bench@example.org", "--must-change-password=false", "--access-token").CombinedOutput()
			if err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
			return string(regexp.MustCompile(`[0-9a-f]{40}`).Find(out))
		},
		create: "/user/repos", issue: "/repos/bench/p/issues",
		requests: map[string]string{
			"version": "/version", "current user": "/user", "one project": "/repos/bench/p", "20 projects": "/repos/search?limit=20",
			"20 issues": "/repos/bench/p/issues?limit=20", "20 commits": "/repos/bench/p/commits?limit=20&stat=false&verification=false&files=false",
			"a file of 4 KiB": "/repos/bench/p/raw/file.txt?ref=main",
		},
	}
}

func gitea(program, dir string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, append([]string{"--work-path", dir, "--config", dir + "/app.ini"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT=true"}
	return cmd
}

// BenchmarkPeers compares the built program with Gitea, whose binary is in GITEA, on
// the same machine in the same run: both on SQLite with their defaults, with the
// same projects, issues and commits, and with alternating load from the same client.
// It prints a table in Markdown.
func BenchmarkPeers(b *testing.B) {
	program := os.Getenv("GITEA")
	if program == "" {
		b.Skip("GITEA does not name a binary of Gitea")
	}
	for b.Loop() {
		comparePeers(b, svcForge, giteaForge(program))
	}
}

func comparePeers(b *testing.B, ours, theirs forge) {
	a, z := startPeer(b, ours), startPeer(b, theirs)
	rows := [][4]string{}
	add := func(name, unit string, a, z float64, better float64) {
		rows = append(rows, [4]string{name, digits(a) + " " + unit, digits(z) + " " + unit, digits(better)})
	}
	add("Size of the binary", "MiB", a.size(b), z.size(b), z.size(b)/a.size(b))
	add("Start until ready", "s", a.took.Seconds(), z.took.Seconds(), z.took.Seconds()/a.took.Seconds())
	add("Resident memory, idle", "MiB", a.idle, z.idle, z.idle/a.idle)
	for _, what := range readOf {
		one, two := a.load(b, what), z.load(b, what)
		one.run(b, peerRound)
		two.run(b, peerRound)
		var first, second, ratios []float64
		for range peerRounds {
			x, y := one.run(b, peerRound), two.run(b, peerRound)
			first, second, ratios = append(first, x), append(second, y), append(ratios, x/y)
		}
		add("GET "+what, "requests/s", median(first), median(second), median(ratios))
	}
	x, y := a.clone(b), z.clone(b)
	add(fmt.Sprintf("Clone %d commits over HTTP", peerCommits), "ms", x*1e3, y*1e3, y/x)
	add("Resident memory, after the load", "MiB", a.resident(b)/mebi, z.resident(b)/mebi, z.resident(b)/a.resident(b))
	a.stop(b)
	z.stop(b)
	var text strings.Builder
	fmt.Fprintf(&text, "\n| | %s | %s | times better |\n| --- | --- | --- | --- |\n", ours.name, theirs.name)
	for _, r := range rows {
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", r[0], r[1], r[2], r[3])
	}
	fmt.Println(text.String())
}

// digits formats a number with two or three significant digits.
func digits(x float64) string {
	switch {
	case x >= 1000:
		return fmt.Sprintf("%d,%03d", int(x)/1000, int(x)%1000/10*10)
	case x >= 10:
		return fmt.Sprintf("%.0f", x)
	default:
		return fmt.Sprintf("%.2g", x)
	}
}

// peer is a running server with its content.
type peer struct {
	forge
	*server
	dir, addr, secret string
	idle              float64 // memory in MiB, some time after the start
}

func startPeer(b *testing.B, f forge) *peer {
	b.Helper()
	p := &peer{forge: f, dir: b.TempDir(), addr: freeAddr(b)}
	run := func() { p.server = launch(b, f.start(b, p.dir, p.addr), p.dir, "http://"+p.addr+f.ready) }
	run() // creates the data directory
	p.secret = p.forge.token(b, p.dir)
	p.fill(b)
	p.stop(b)
	run()
	p.idle = p.idleMemory(b)
	return p
}

// fill creates 25 projects, one of which gets commits and issues.
func (p *peer) fill(b *testing.B) {
	b.Helper()
	for i := range 25 {
		name := "p"
		if i > 0 {
			name = fmt.Sprintf("other-%d", i)
		}
		p.post(b, p.create, map[string]any{"name": name})
	}
	for i := range peerIssues {
		p.post(b, p.issue, map[string]any{"title": fmt.Sprintf("Issue %d", i), "description": "Some text.", "body": "Some text."})
	}
	work := b.TempDir()
	run := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-C", work, "-c", "user.name=Bench", "-c", "user.email=bench@example.org"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("git %s: %v\n%s", args[0], err, out)
		}
	}
	run("init", "-q", "-b", "main")
	for i := range peerCommits {
		check(b, os.WriteFile(filepath.Join(work, "file.txt"), bytes.Repeat(fmt.Appendf(nil, "line %02d\n", i), 512), 0o600))
		run("add", "file.txt")
		run("commit", "-q", "-m", fmt.Sprintf("Change %d", i))
	}
	run("push", "-q", p.remote(), "main")
}

func (p *peer) post(b *testing.B, path string, body any) {
	b.Helper()
	text, err := json.Marshal(body)
	check(b, err)
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://"+p.addr+p.api+path, bytes.NewReader(text))
	check(b, err)
	r.Header.Set("Authorization", "Bearer "+p.secret)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	check(b, err)
	defer res.Body.Close()
	if res.StatusCode != http.StatusCreated {
		answer, _ := io.ReadAll(res.Body)
		b.Fatalf("%s: POST %s: %s\n%s", p.name, path, res.Status, answer)
	}
}

// remote returns the URL of the project for git.
func (p *peer) remote() string {
	namespace := "root"
	if p.name != svcForge.name {
		namespace = "bench"
	}
	return fmt.Sprintf("http://%s:%s@%s/%s/p.git", namespace, p.secret, p.addr, namespace)
}

// load is an API request, sent by clients with persistent connections.
func (p *peer) load(b testing.TB, what string) *load {
	b.Helper()
	t := &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}
	b.Cleanup(t.CloseIdleConnections)
	client := &http.Client{Transport: t}
	address := "http://" + p.addr + p.api + p.requests[what]
	l := &load{}
	for i := range l.send {
		l.send[i] = func() error {
			r, err := http.NewRequest(http.MethodGet, address, nil)
			if err != nil {
				return err
			}
			r.Header.Set("Authorization", "Bearer "+p.secret)
			res, err := client.Do(r)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			if res.StatusCode != http.StatusOK {
				return fmt.Errorf("%s: GET %s: %s", p.name, address, res.Status)
			}
			_, err = io.Copy(io.Discard, res.Body)
			return err
		}
	}
	return l
}

// clone returns the median time of a clone, in seconds.
func (p *peer) clone(b testing.TB) float64 {
	b.Helper()
	var times []float64
	for range 9 {
		to := filepath.Join(b.TempDir(), "clone")
		begin := time.Now()
		if out, err := exec.Command("git", "clone", "-q", p.remote(), to).CombinedOutput(); err != nil {
			b.Fatalf("%s: clone: %v\n%s", p.name, err, out)
		}
		times = append(times, time.Since(begin).Seconds())
	}
	return median(times)
}

func (p *peer) size(b testing.TB) float64 {
	b.Helper()
	info, err := os.Stat(p.program)
	check(b, err)
	return float64(info.Size()) / mebi
}
