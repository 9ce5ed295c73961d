package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"svc/internal/blob/blobtest"
	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/git/gittest"
	"svc/internal/waittest"
)

// TestChaos runs three nodes behind a load balancer. They are killed, frozen,
// stopped and disconnected from the database under a load of pipelines, pushes by
// HTTP, SSH and API, merges, clones and issues. A ledger records all acknowledged
// changes: none may be lost or duplicated, and each must be visible on all nodes
// immediately. SVC_TEST_FAULTS is the number of faults, SVC_TEST_SEED repeats their
// order.
func TestChaos(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		if src.URL != "" { // SQLite supports one node only
			chaos(t, src, "", nil)
		}
	})
}

// TestChaosBucket is TestChaos with repositories in an object store: the nodes share
// no directory, and further faults are the loss of a cache and of the connection to
// the store.
func TestChaosBucket(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		if src.URL != "" {
			bucket, line := blobtest.S3Line(t)
			chaos(t, src, bucket, line)
		}
	})
}

// chaos runs the test. Repositories are in the bucket, or in a shared directory if
// bucket is empty.
func chaos(t *testing.T, src dbtest.Source, bucket string, line *blobtest.Line) {
	seed, faults := number("SVC_TEST_SEED", time.Now().UnixNano()), int(number("SVC_TEST_FAULTS", 12))
	t.Logf("SVC_TEST_SEED=%d SVC_TEST_FAULTS=%d", seed, faults)
	b := &chaosBalancer{line: line, random: rand.New(rand.NewPCG(uint64(seed), 3))}
	data := t.TempDir()
	for i := range 3 {
		n := &chaosNode{data: data, env: []string{"SVC_DATABASE_URL=" + named(t, src.URL)}}
		if bucket != "" {
			n.env = append(n.env, "SVC_BLOB_URL="+bucket, "SVC_STORAGES=default=s3")
			if i > 0 {
				n.data = t.TempDir()
				copyKeys(t, data, n.data)
			}
		}
		n.env = append(n.env, "SVC_DATA_DIR="+n.data, "SVC_SSH_ADDR=127.0.0.1:0")
		n.start(t)
		b.nodes = append(b.nodes, n)
	}
	front := httptest.NewServer(b.proxy())
	t.Cleanup(front.Close)

	l := &ledger{crash: newCrash(src.Open(t)), balancer: b, pushed: map[string]string{}, merged: map[int]string{}}
	l.more, l.live = true, true
	l.lives(front.URL)
	// The load balancer times out after a few seconds, so prepare uses a node
	// directly.
	l.prepare(t, b.nodes[0].at())
	l.pushes = makeProject(t, b.nodes[0].at(), "pushes")
	l.issues = makeProject(t, b.nodes[0].at(), "issues")
	l.merges = makeProject(t, b.nodes[0].at(), "merges")
	firstCommit(t, b.nodes[0].at(), l.merges)
	overHTTP, overSSH := httpRemote(front.URL), b.sshRemote(t)

	ctx, stop := context.WithCancel(t.Context())
	var busy, makers sync.WaitGroup
	for n := range crashRunners {
		busy.Go(func() { l.work(ctx, n) })
	}
	for n := range 2 {
		work := gittest.New(t)
		blob := work.Object("blob", chaosCI)
		noise := make([]byte, 100<<10) // larger than packs that are stored in the database
		for i := range noise {
			noise[i] = byte(b.random.Uint32())
		}
		large := work.Object("blob", string(noise))
		tree := gittest.RunInput(t, work.Path, strings.NewReader("100644 blob "+blob+"\t.gitlab-ci.yml\n100644 blob "+large+"\tlarge\n"), "mktree")
		makers.Go(func() { l.make(ctx, n) })
		to := []gitRemote{overHTTP, overSSH}[n]
		makers.Go(func() { l.push(ctx, work.Path, tree, to, n) })
		makers.Go(func() { l.write(ctx, n) })
	}
	makers.Go(func() { l.merge(ctx) })
	clones := t.TempDir()
	makers.Go(func() { l.clone(ctx, clones, overHTTP, overSSH) })
	for range faults {
		l.progress(t, 60)
		b.fault(t, l)
	}
	l.progress(t, 60)
	l.over()
	makers.Wait()
	l.drop(t) // jobs that killed nodes had assigned
	l.drain(t, data)
	stop()
	busy.Wait()

	l.check(t, b.nodes[0].at())
	dir := filepath.Join(data, "repositories", "projects", fmt.Sprintf("%02x", l.pushes%256), fmt.Sprintf("%d.git", l.pushes))
	if bucket == "" {
		l.checkPushes(t, dir)
	} else {
		for _, n := range b.nodes {
			dir := filepath.Join(t.TempDir(), "clone")
			gittest.Run(t, "", "clone", "-q", "--mirror", remote(n.at(), "pushes"), dir)
			l.checkPushes(t, dir)
		}
		checkBucket(t, b.nodes[0].env)
	}
	l.checkIssues(t)
	l.checkMerges(t, b.nodes[0].at())
	for _, n := range b.nodes {
		end(t, n.process)
	}
	t.Logf("faults: %s", strings.Join(b.done, ", "))
	t.Logf("acknowledged: %d pipelines with %d jobs, %d pushes, %d merges, %d issues; %d clones; %d requests were sent again",
		l.asked, len(l.runs), len(l.pushed), len(l.merged), len(l.written), l.cloned, l.again.Load())
}

// chaosCI is the CI/CD configuration of the pushed commits.
const chaosCI = "check: {script: [x]}\n"

// named adds an application name to a database URL, by which the connections of the
// nodes are found.
func named(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("application_name", "chaos")
	u.RawQuery = q.Encode()
	return u.String()
}

// chaosNode is a node that faults are injected into.
type chaosNode struct {
	mu      sync.Mutex
	address string
	ssh     string
	process *exec.Cmd
	data    string   // data directory
	env     []string // settings
}

func (n *chaosNode) start(t *testing.T) {
	t.Helper()
	process := server(n.env)
	addresses := startWith(t, process, "svc listens on ", "Git over SSH listens on ")
	n.mu.Lock()
	defer n.mu.Unlock()
	n.address, n.ssh, n.process = addresses[0], addresses[1], process
}

func (n *chaosNode) at() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.address
}

func (n *chaosNode) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := n.process.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// chaosBalancer forwards requests to the nodes in turn. It does not check their
// health, so that clients see each fault and have to retry.
type chaosBalancer struct {
	line   *blobtest.Line // connection to the object store of the repositories; nil if they are in a directory
	nodes  []*chaosNode
	random *rand.Rand
	turn   atomic.Int64
	done   []string // the faults so far
}

func (b *chaosBalancer) proxy() http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			to, _ := url.Parse(b.nodes[int(b.turn.Add(1))%len(b.nodes)].at())
			r.SetURL(to)
			r.SetXForwarded()
		},
		// A frozen node accepts requests but does not respond.
		Transport: &http.Transport{ResponseHeaderTimeout: 5 * time.Second, DisableKeepAlives: true},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
}

// fault injects a random fault into a node and waits until the node works again.
func (b *chaosBalancer) fault(t *testing.T, l *ledger) {
	t.Helper()
	which := b.random.IntN(len(b.nodes))
	n, what := b.nodes[which], ""
	kinds := 5
	if b.line != nil {
		kinds = 8
	}
	switch b.random.IntN(kinds) {
	case 0:
		what = "killed"
		n.signal(t, syscall.SIGKILL)
		_ = n.process.Wait()
		l.progress(t, 20)
		n.start(t)
	case 1:
		what = "killed with its processes"
		children := childrenOf(n.process.Process.Pid)
		n.signal(t, syscall.SIGKILL)
		for _, pid := range children {
			_ = syscall.Kill(pid, syscall.SIGKILL) // the process may have ended
		}
		_ = n.process.Wait()
		n.start(t)
	case 2:
		what = "frozen"
		n.signal(t, syscall.SIGSTOP)
		l.progress(t, 20)
		n.signal(t, syscall.SIGCONT)
	case 3:
		what = "stopped"
		end(t, n.process)
		n.start(t)
	case 4:
		what = "cut off from the database with all others"
		if _, err := l.db.SQL().ExecContext(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'chaos'`); err != nil {
			t.Fatal(err)
		}
	case 5:
		what = "without its cache"
		if err := os.RemoveAll(filepath.Join(n.data, "git-cache")); err != nil && !errors.Is(err, syscall.ENOTEMPTY) { // the node may write to it concurrently
			t.Fatal(err)
		}
	case 6:
		what = "without its packs"
		packs, _ := filepath.Glob(filepath.Join(n.data, "git-cache", "*", "*", "*", "*", "*", "objects", "pack"))
		for _, dir := range packs {
			_ = os.RemoveAll(dir) // the node may write to it concurrently
		}
	case 7:
		what = "and all others without the object store"
		b.line.Cut()
		l.progress(t, 20)
		b.line.Restore()
	}
	b.done = append(b.done, fmt.Sprintf("node %d %s", which+1, what))
}

// copyKeys copies the keys that nodes must share.
func copyKeys(t *testing.T, from, to string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(from, "ssh", "*"))
	if err := os.Mkdir(filepath.Join(to, "ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, filepath.Join(from, "secret.key")) {
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, strings.TrimPrefix(file, from)), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// checkBucket runs the doctor command, which compares the bucket with the packs of
// all repositories and checks the repositories.
func checkBucket(t *testing.T, env []string) {
	t.Helper()
	out := ok(t, env, "", "doctor", "--repositories")
	for line := range strings.Lines(out) {
		if strings.Contains(line, "bucket") || strings.Contains(line, "repositories") {
			t.Logf("%s", line)
		}
	}
	if !strings.Contains(out, " are whole, ") {
		t.Errorf("the bucket was not checked:\n%s", out)
	}
}

// childrenOf returns the child processes of a process.
func childrenOf(parent int) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range all {
		text, _ := os.ReadFile(name)
		_, rest, _ := strings.Cut(string(text), ") ") // after the name of the program
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// ledger records the changes that the server has acknowledged.
type ledger struct {
	*crash
	balancer               *chaosBalancer
	pushes, issues, merges int64 // project IDs
	again                  atomic.Int64

	mu      sync.Mutex
	pushed  map[string]string // commits by branch
	written []string          // titles of issues that were created
	merged  map[int]string    // commits by number of the merge request
	cloned  int
	closed  bool
}

// progress waits for a number of responses to runners, while it keeps some pipelines
// running.
func (l *ledger) progress(t *testing.T, answers int64) {
	t.Helper()
	until := l.answers.Load() + answers
	defer func() {
		if l.answers.Load() < until {
			t.Logf("%d faults, the last: %v", len(l.balancer.done), l.balancer.done[max(0, len(l.balancer.done)-3):])
			l.state(t)
		}
	}()
	waittest.For(t, "progress of the load", func() bool {
		ended := l.count(t, `SELECT count(*) FROM pipelines WHERE finished_at IS NOT NULL AND project_id = ?`, l.projectID)
		l.makes.Lock()
		l.want = max(l.want, ended+6)
		l.makes.Unlock()
		l.fleet.mu.Lock()
		failed := len(l.faults) > 0 // a runner may have given up a job
		l.fleet.mu.Unlock()
		return failed || l.answers.Load() >= until
	})
	if l.answers.Load() < until {
		t.Fatal("the clients have recorded errors")
	}
}

// over ends the load.
func (l *ledger) over() {
	l.makes.Lock()
	l.want, l.more = l.asked, false
	l.makes.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

func (l *ledger) goesOn(ctx context.Context) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return ctx.Err() == nil && !l.closed
}

// push pushes commits to separate branches and retries each push until it is
// acknowledged, while pipelines of earlier pushes run.
func (l *ledger) push(ctx context.Context, work, tree string, remote gitRemote, number int) {
	for i := 0; l.goesOn(ctx); i++ {
		branch := fmt.Sprintf("b%d-%d", number, i)
		made, err := gittest.Command(work, "commit-tree", "-m", branch, tree).Output()
		if err != nil {
			l.fault("commit %s: %v", branch, err)
			return
		}
		commit := strings.TrimSpace(string(made))
		for ctx.Err() == nil {
			out, err := remote(work, "pushes", "push", "-q", "URL", commit+":refs/heads/"+branch).CombinedOutput()
			if err == nil {
				l.mu.Lock()
				l.pushed[branch] = commit
				l.mu.Unlock()
				l.visible(ctx, fmt.Sprintf("/projects/%d/repository/branches/%s", l.pushes, branch), commit)
				break
			}
			// A node that loses its cache during a push may reject it for various
			// reasons.
			if l.balancer.line == nil && strings.Contains(string(out), "rejected") && !strings.Contains(string(out), "the server cannot take it now") {
				l.fault("push %s: %s", branch, out)
			}
			l.again.Add(1)
			waittest.Pause()
		}
	}
}

// write creates issues.
func (l *ledger) write(ctx context.Context, number int) {
	for i := 0; l.goesOn(ctx); i++ {
		title := fmt.Sprintf("issue %d-%d", number, i)
		path := fmt.Sprintf("/projects/%d/issues", l.issues)
		status, text := ask(ctx, "POST", *l.address.Load()+"/api/v4"+path, `{"title":"`+title+`"}`)
		var made struct{ IID int64 }
		switch {
		case status == http.StatusCreated && json.Unmarshal([]byte(text), &made) == nil:
			l.mu.Lock()
			l.written = append(l.written, title)
			l.mu.Unlock()
			l.visible(ctx, fmt.Sprintf("%s/%d", path, made.IID), title)
		case status != 0 && status < 500 && ctx.Err() == nil:
			l.fault("create an issue: %d %s", status, text)
		default:
			l.again.Add(1)
		}
		waittest.Pause()
	}
}

// visible checks that each node has a change that was just acknowledged. A node that
// is down does not respond and is skipped.
func (l *ledger) visible(ctx context.Context, path, want string) {
	for i, n := range l.balancer.nodes {
		one, cancel := context.WithTimeout(ctx, 5*time.Second)
		status, text := ask(one, "GET", n.at()+"/api/v4"+path, "")
		cancel()
		if status == http.StatusOK && !strings.Contains(text, want) || status != 0 && status != http.StatusOK && status < 500 {
			l.fault("node %d, %s: %d %s", i+1, path, status, text)
		}
	}
}

// drop expires the jobs that nodes had assigned to runners but that the runners
// never received, because the node was killed.
func (l *ledger) drop(t *testing.T) {
	t.Helper()
	err := l.db.Tx(t.Context(), func(tx *db.Tx) error {
		_, err := tx.ExecContext(t.Context(), `UPDATE jobs SET claimed_at = claimed_at - ? WHERE claimed_at IS NOT NULL`, (5 * time.Minute).Microseconds())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkPushes checks that the repository has each push, with one event and one
// pipeline.
func (l *ledger) checkPushes(t *testing.T, dir string) {
	t.Helper()
	if out, err := gittest.Command(dir, "fsck", "--full", "--strict").CombinedOutput(); err != nil {
		t.Errorf("the repository is damaged: %v: %s", err, out)
	}
	for branch, commit := range l.pushed {
		if got, err := gittest.Command(dir, "rev-parse", "refs/heads/"+branch).Output(); strings.TrimSpace(string(got)) != commit {
			t.Errorf("%s is at %q, %v, want %s", branch, got, err, commit)
		}
		if n := l.count(t, `SELECT count(*) FROM pipelines WHERE project_id = ? AND ref = ? AND sha = ? AND status = 'success'`, l.pushes, branch, commit); n != 1 {
			t.Errorf("%s has %d pipelines that succeeded", branch, n)
		}
		if n := l.count(t, `SELECT count(*) FROM pipelines WHERE project_id = ? AND ref = ?`, l.pushes, branch); n != 1 {
			t.Errorf("%s has %d pipelines", branch, n)
		}
		if n := l.count(t, `SELECT count(*) FROM activity_events WHERE project_id = ? AND push LIKE ?`, l.pushes, `%"`+branch+`"%`); n != 1 {
			t.Errorf("%s has %d events", branch, n)
		}
	}
}

func (l *ledger) checkIssues(t *testing.T) {
	t.Helper()
	for _, title := range l.written {
		if n := l.count(t, `SELECT count(*) FROM issues WHERE project_id = ? AND title = ?`, l.issues, title); n != 1 {
			t.Errorf("%d issues are named %q", n, title)
		}
	}
	if n := l.count(t, `SELECT count(*) FROM (SELECT iid FROM issues WHERE project_id = ? GROUP BY iid HAVING count(*) > 1) AS doubled`, l.issues); n != 0 {
		t.Errorf("%d issue IIDs are used twice", n)
	}
}
