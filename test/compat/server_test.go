// Package compat tests the built binary with unmodified public clients of the v4
// API, on SQLite, and on PostgreSQL if TEST_POSTGRES is set. It is a separate
// module, so that the clients are not dependencies of svc.
package compat

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	rootToken    = "svcpat-compat-root-token-0123456789"
	rootPassword = "compat root password"

	// All tests use these passwords and variable values, so that the logs can be
	// searched for them.
	password = "compat user password"
	hidden   = "compat-hidden-value"
)

// server is a running binary with a separate database.
type server struct {
	url string // without a trailing slash
	log *output
}

// each runs f with a new server on each kind of database, in parallel. env has
// additional settings of the server, NAME=value.
func each(t *testing.T, f func(t *testing.T, s *server), env ...string) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		f(t, start(t, env...))
	})
	if os.Getenv("TEST_POSTGRES") == "" {
		return
	}
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		f(t, start(t, append(env, "SVC_DATABASE_URL="+newDatabase(t))...))
	})
}

// start starts the binary and waits until it is ready. When the test ends, the
// server is stopped; it must exit without an error, and its log must contain no
// secrets and no errors.
func start(t *testing.T, env ...string) *server {
	t.Helper()
	s := &server{log: &output{}}
	cmd := exec.Command(binary(t), "serve")
	cmd.Env = append(environment(),
		"SVC_ADDR=127.0.0.1:0", "SVC_DATA_DIR="+t.TempDir(), "SVC_SSH_ADDR=off",
		"SVC_ROOT_TOKEN="+rootToken, "SVC_ROOT_PASSWORD="+rootPassword,
		"SVC_LOG_LEVEL=debug", "SVC_LOG_FORMAT=json", "SVC_SHUTDOWN_TIMEOUT=10s")
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdout, cmd.Stderr = s.log, s.log
	p := run(t, cmd)
	t.Cleanup(func() { s.stop(t, p) })
	s.await(t, p)
	return s
}

// binary returns the path of the server binary.
func binary(t *testing.T) string {
	t.Helper()
	path := os.Getenv("SVC_TEST_BINARY")
	if path == "" {
		path = filepath.Join("..", "..", "bin", "svc")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("the server is not built, run make build: %v", err)
	}
	return path
}

// environment returns the environment of the test without settings of the server.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "SVC_") })
}

// process is a running program.
type process struct {
	*exec.Cmd
	ended chan error
}

// run starts a program that is killed when the test process ends, even if that is
// killed. The kernel sends the death signal when the thread that started the program
// exits, so that thread is locked.
func run(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p := &process{cmd, make(chan error, 1)}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.ended <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	return p
}

var listens = regexp.MustCompile(`listens on (http://\S+)`)

// await reads the address that the server prints and waits until it is ready.
func (s *server) await(t *testing.T, p *process) {
	t.Helper()
	waitFor(t, "the server is ready", func() bool {
		select {
		case err := <-p.ended:
			p.ended <- err // for stop
			t.Fatalf("the server ended: %v", err)
		default:
		}
		return s.ready(t.Context())
	})
}

func (s *server) ready(ctx context.Context) bool {
	match := listens.FindStringSubmatch(s.log.String())
	if match == nil {
		return false
	}
	s.url = match[1]
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/-/readiness", nil)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusOK
}

func (s *server) stop(t *testing.T, p *process) {
	if err := p.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("stop the server: %v", err)
	}
	late := time.AfterFunc(waitLimit, func() { _ = p.Process.Kill() })
	if err := <-p.ended; err != nil {
		t.Errorf("the server ended with %v, want exit code 0", err)
	}
	late.Stop()
	s.checkLog(t)
	if t.Failed() {
		t.Logf("the last that the server logged:\n%s", s.log.last(40))
	}
}

// token matches access tokens with any prefix.
// the service.
var token = regexp.MustCompile(`[a-z]+pat-[A-Za-z0-9_-]{16,}`)

func (s *server) checkLog(t *testing.T) {
	log := s.log.String()
	for _, secret := range []string{rootToken, rootPassword, password, hidden} {
		if strings.Contains(log, secret) {
			t.Errorf("the log of the server holds the secret %q", secret)
		}
	}
	if found := token.FindString(log); found != "" {
		t.Errorf("the log of the server holds the token %q", found)
	}
	for line := range strings.Lines(log) {
		if strings.Contains(line, `"level":"ERROR"`) {
			t.Errorf("the server logged a fault: %s", line)
		}
	}
}

// output is a buffer for the output of a program.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

// String implements fmt.Stringer.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// last returns the last printed lines, without those of level DEBUG.
func (o *output) last(n int) string {
	lines := slices.DeleteFunc(strings.SplitAfter(o.String(), "\n"), func(line string) bool {
		return strings.Contains(line, `"level":"DEBUG"`)
	})
	return strings.Join(lines[max(0, len(lines)-n):], "")
}
