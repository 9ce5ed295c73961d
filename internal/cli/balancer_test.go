package cli_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"svc/internal/blob/blobtest"
	"svc/internal/db/dbtest"
	"svc/internal/git/gittest"
	"svc/internal/waittest"
)

// TestHAProxy runs HAProxy with its file in deploy/ in front of three nodes. One node is frozen,
// one stopped and one killed, each while users work.
func TestHAProxy(t *testing.T) {
	t.Parallel()
	testBalancers(t, "haproxy")
}

// TestNginx is TestHAProxy with nginx.
func TestNginx(t *testing.T) {
	t.Parallel()
	testBalancers(t, "nginx")
}

func testBalancers(t *testing.T, name string) {
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		if src.URL != "" { // SQLite supports one node only
			bucket, _ := blobtest.S3Line(t)
			testBalancer(t, src, bucket, name)
		}
	})
}

func testBalancer(t *testing.T, src dbtest.Source, bucket, name string) {
	b := &chaosBalancer{}
	data := t.TempDir()
	for i := range 3 {
		n := &chaosNode{data: data}
		if i > 0 {
			n.data = t.TempDir()
			copyKeys(t, data, n.data)
		}
		n.env = []string{
			"SVC_DATABASE_URL=" + src.URL, "SVC_BLOB_URL=" + bucket, "SVC_STORAGES=default=s3", "SVC_DATA_DIR=" + n.data,
			"SVC_SSH_ADDR=127.0.0.1:0", "SVC_TRUSTED_PROXIES=127.0.0.1", "SVC_SHUTDOWN_DELAY=6s",
		}
		n.start(t)
		b.nodes = append(b.nodes, n)
	}
	web, ssh := b.serve(t, name)
	for _, check := range []struct {
		path   string
		status int
	}{{"/-/readiness", 200}, {"/-/metrics", 403}, {"/api/v4/version", 200}} {
		if status, text := ask(t.Context(), "GET", web+check.path, ""); status != check.status {
			t.Errorf("%s: %s: %d %s", name, check.path, status, text)
		}
	}

	project := makeProject(t, web, name)
	firstCommit(t, web, project)
	if status, text := ask(t.Context(), "GET", web+"/api/v4/projects/root%2F"+name, ""); status != 200 { // an encoded slash arrives as such
		t.Errorf("%s: by path: %d %s", name, status, text)
	}
	gittest.Run(t, "", "clone", "-q", remote(web, name), filepath.Join(t.TempDir(), "http"))
	overSSH := b.sshRemoteAt(t, func() string { return ssh })
	if out, err := overSSH(t.TempDir(), name, "clone", "-q", "URL", "ssh").CombinedOutput(); err != nil {
		t.Errorf("%s: clone over SSH: %v %s", name, err, out)
	}
	if name == "haproxy" {
		b.sameNode(t, remote(web, name))
	}

	users := newBalancedUsers(web, project)
	users.work(t)
	// A frozen node keeps the requests that it has. Others go elsewhere when the balancer
	// has noticed it.
	b.nodes[0].signal(t, syscall.SIGSTOP)
	users.goOn(t, "while a node is frozen")
	b.nodes[0].signal(t, syscall.SIGCONT)
	users.goOn(t, "after a node was frozen")
	failed := users.failed.Load()
	b.nodes[1].signal(t, syscall.SIGTERM)
	_ = b.nodes[1].process.Wait()
	users.goOn(t, "after a node was stopped")
	if now := users.failed.Load(); name == "haproxy" && now != failed {
		t.Errorf("%s: %d requests failed while a node was stopped: %s", name, now-failed, users.last())
	}
	b.nodes[2].signal(t, syscall.SIGKILL)
	_ = b.nodes[2].process.Wait()
	users.goOn(t, "after a node was killed")
	users.stop()
	if out, err := overSSH(t.TempDir(), name, "clone", "-q", "URL", "ssh").CombinedOutput(); err != nil {
		t.Errorf("%s: clone over SSH from the last node: %v %s", name, err, out)
	}
	b.nodes[0].signal(t, syscall.SIGKILL)
	_ = b.nodes[0].process.Wait()
}

// serve runs a load balancer with its file in deploy/ and the addresses of the nodes. It returns
// the addresses for HTTP and SSH.
func (b *chaosBalancer) serve(t *testing.T, name string) (web, ssh string) {
	t.Helper()
	file := map[string]string{"haproxy": "haproxy.cfg", "nginx": "nginx.conf"}[name]
	text, err := os.ReadFile(filepath.Join("../../deploy", file))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var temp strings.Builder // nginx creates them even if it does not use them
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&temp, "\n    %s_temp_path %s;", kind, filepath.Join(dir, kind))
	}
	for range 10 { // another process may take a port first
		ports := [2]string{freePort(t), freePort(t)}
		config := string(text)
		for i, n := range b.nodes {
			at := strings.TrimPrefix(n.at(), "http://")
			_, health, err := net.SplitHostPort(at)
			if err != nil {
				t.Fatal(err)
			}
			host := fmt.Sprintf("10.0.0.%d:", 11+i)
			config = strings.ReplaceAll(config, host+"8080", at)
			config = regexp.MustCompile(`(?m)`+regexp.QuoteMeta(host)+`2222$`).ReplaceAllString(config, n.ssh+" port "+health)
			config = strings.ReplaceAll(config, host+"2222", n.ssh)
		}
		var cmd *exec.Cmd
		path := filepath.Join(dir, file)
		switch name {
		case "haproxy":
			config = strings.NewReplacer("bind :80\n", "bind 127.0.0.1:"+ports[0]+"\n", "bind :22\n", "bind 127.0.0.1:"+ports[1]+"\n", " port 8080 ", " ").Replace(config)
			cmd = exec.Command("haproxy", "-db", "-f", path)
		case "nginx":
			config = strings.NewReplacer("listen 80;", "listen 127.0.0.1:"+ports[0]+";", "listen 22;", "listen 127.0.0.1:"+ports[1]+";",
				"    access_log off;", "    access_log off;"+temp.String()).Replace(config)
			cmd = exec.Command("nginx", "-c", path, "-g", "daemon off; pid "+dir+"/pid; error_log stderr;")
		}
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = &said, &said
		cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin")
		if cmd.Err != nil { // not in the PATH of users
			cmd.Path, cmd.Err = filepath.Join("/usr/sbin", cmd.Args[0]), nil
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			_ = cmd.Wait()
			close(ended)
		}()
		t.Cleanup(func() {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			<-ended
		})
		web := "http://127.0.0.1:" + ports[0]
		up := false
		waittest.For(t, name, func() bool {
			select {
			case <-ended:
				return true
			default:
			}
			status, _ := ask(t.Context(), "GET", web+"/-/readiness", "")
			up = status == http.StatusOK
			return up
		})
		if up {
			return web, "127.0.0.1:" + ports[1]
		}
		if !strings.Contains(said.String(), "ddress") { // already in use
			t.Fatalf("%s: %s", name, &said)
		}
	}
	t.Fatalf("%s found no free port", name)
	return "", ""
}

// freePort returns a port that was free a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// sameNode checks that one node answers all git requests for a repository.
func (b *chaosBalancer) sameNode(t *testing.T, repository string) {
	t.Helper()
	asked := func() (list []string) {
		for _, n := range b.nodes {
			_, text := ask(t.Context(), "GET", n.at()+"/-/metrics", "")
			list = append(list, regexp.MustCompile(`svc_http_requests_total\{method="GET",route="[^"]*info/refs[^"]*",status="200"\} \d+`).FindString(text))
		}
		return list
	}
	before := asked()
	for range 9 {
		if status, text := ask(t.Context(), "GET", repository+"/info/refs?service=git-upload-pack", ""); status != http.StatusOK {
			t.Fatalf("info/refs: %d %s", status, text)
		}
	}
	changed := 0
	for i, now := range asked() {
		if now != before[i] {
			changed++
		}
	}
	if changed != 1 {
		t.Errorf("%d nodes answered the requests for a repository: %q, before %q", changed, asked(), before)
	}
}

// balancedUsers send requests to a load balancer until they are stopped.
type balancedUsers struct {
	web              string
	project          int64
	answered, failed atomic.Int64
	running          sync.WaitGroup
	stop             func()

	mu      sync.Mutex
	failure string
}

func newBalancedUsers(web string, project int64) *balancedUsers {
	return &balancedUsers{web: web, project: project}
}

// work starts the users. The load balancer answers 502 for a request that a node was answering
// when it was killed; the users send the next one.
func (u *balancedUsers) work(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	u.stop = func() {
		cancel()
		u.running.Wait()
	}
	t.Cleanup(u.stop)
	for i := range 4 {
		u.running.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				method, path, body, want := "GET", "", "", http.StatusOK
				if i == 0 {
					method, path, body, want = "POST", "/issues", fmt.Sprintf(`{"title":"%d"}`, n), http.StatusCreated
				}
				status, text := ask(ctx, method, fmt.Sprintf("%s/api/v4/projects/%d%s", u.web, u.project, path), body)
				switch {
				case status == want:
					u.answered.Add(1)
				case ctx.Err() == nil:
					u.failed.Add(1)
					u.mu.Lock()
					u.failure = fmt.Sprintf("%s: %d %.200s", method, status, text)
					u.mu.Unlock()
				}
				waittest.Pause()
			}
		})
	}
}

func (u *balancedUsers) last() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.failure
}

// goOn waits until requests are answered.
func (u *balancedUsers) goOn(t *testing.T, when string) {
	t.Helper()
	from := u.answered.Load()
	waittest.For(t, "answers "+when, func() bool { return u.answered.Load() >= from+200 })
}
