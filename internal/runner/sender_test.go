package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"svc/internal/waittest"
)

// fake is a test server that stores a log and can be made to fail.
type fake struct {
	*httptest.Server
	mu    sync.Mutex
	log   []byte
	mood  func(n int, r *http.Request, f *fake) int // status for the n-th request; 0 handles it
	calls int
	ends  []update
}

func newFake(t testing.TB, mood func(n int, r *http.Request, f *fake) int) *fake {
	t.Helper()
	f := &fake{mood: mood}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// ServeHTTP implements http.Handler.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if f.mood != nil {
		if status := f.mood(f.calls, r, f); status < 0 {
			panic(http.ErrAbortHandler)
		} else if status > 0 {
			w.WriteHeader(status)
			return
		}
	}
	w.Header().Set("Job-Status", "running")
	w.Header().Set("X-GitLab-Trace-Update-Interval", "1")
	if r.Method == http.MethodPatch {
		f.patch(w, r, body)
		return
	}
	var u update
	if err := json.Unmarshal(body, &u); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if u.State == "running" {
		return
	}
	if u.Output != nil && (u.Output.Bytesize != int64(len(f.log)) || u.Output.Checksum != fmt.Sprintf("crc32:%08x", crc32.ChecksumIEEE(f.log))) {
		w.WriteHeader(http.StatusPreconditionFailed)
		return
	}
	f.ends = append(f.ends, u)
}

func (f *fake) patch(w http.ResponseWriter, r *http.Request, body []byte) {
	var from, to int
	if _, err := fmt.Sscanf(r.Header.Get("Content-Range"), "%d-%d", &from, &to); err != nil || to-from+1 != len(body) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	status := http.StatusAccepted
	if from == len(f.log) {
		f.log = append(f.log, body...)
	} else {
		status = http.StatusRequestedRangeNotSatisfiable
	}
	w.Header().Set("Range", fmt.Sprintf("0-%d", len(f.log)))
	w.WriteHeader(status)
}

func testSender(t testing.TB, f *fake, text string) *sender {
	t.Helper()
	d := Deps{URL: f.URL, Token: "glrt-x", Now: time.Now, Pace: Pace{}.withDefaults()}
	c, err := newClient(d, "r_1", "bash")
	if err != nil {
		t.Fatal(err)
	}
	log, err := openTrace(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	if _, err := io.WriteString(log, text); err != nil {
		t.Fatal(err)
	}
	pace := Pace{Ask: 10 * time.Millisecond, Finish: time.Minute, Retry: time.Millisecond}.withDefaults()
	return &sender{server: c, id: 7, token: "job", log: log, pace: pace, onState: func(string) {}, note: slog.New(slog.DiscardHandler)}
}

func TestSender(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789abcdef", 3<<16) // longer than maxPiece
	tests := []struct {
		name string
		text string
		mood func(n int, r *http.Request, f *fake) int
	}{
		{"all is well", "hello\n", nil},
		{"nothing to send", "", nil},
		{"in pieces", long, nil},
		{"the server is away", long, func(n int, _ *http.Request, _ *fake) int {
			if n < 4 {
				return 503
			}
			return 0
		}},
		{"the connection breaks", long, func(n int, _ *http.Request, _ *fake) int {
			if n%2 == 1 {
				return -1
			}
			return 0
		}},
		{"it took a piece, but did not say so", long, func(n int, r *http.Request, f *fake) int {
			if n == 1 {
				f.log = append(f.log, long[:maxPiece]...)
				return 500
			}
			return 0
		}},
		{"it lost the end of the log", long, func(n int, r *http.Request, f *fake) int {
			if n == 3 {
				f.log = f.log[:100]
			}
			return 0
		}},
		{"it lost the end of the log at the end", long, func(n int, r *http.Request, f *fake) int {
			if n == 4 {
				f.log = f.log[:100]
			}
			return 0
		}},
		{"it has another log, and begins anew", long, func(n int, r *http.Request, f *fake) int {
			if n == 4 {
				f.log = nil
			}
			return 0
		}},
		{"it needs some time", "hello\n", func(n int, r *http.Request, f *fake) int {
			if n == 2 || n == 3 {
				return 202
			}
			return 0
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, tt.mood)
			s := testSender(t, f, tt.text)
			if err := s.finish(t.Context(), update{State: "success"}); err != nil {
				t.Fatal(err)
			}
			if string(f.log) != tt.text {
				t.Errorf("the server has %d bytes of %d", len(f.log), len(tt.text))
			}
			if len(f.ends) != 1 || f.ends[0].State != "success" {
				t.Errorf("it was told %+v", f.ends)
			}
		})
	}
}

// TestSenderGivesUp checks that sending ends if the server rejects the job or stays
// unavailable.
func TestSenderGivesUp(t *testing.T) {
	t.Parallel()
	s := testSender(t, newFake(t, func(int, *http.Request, *fake) int { return 403 }), "x")
	state := ""
	s.onState = func(s string) { state = s }
	if err := s.finish(t.Context(), update{State: "success"}); !errors.Is(err, errOver) || state != "gone" {
		t.Errorf("got %v, %q", err, state)
	}
	s = testSender(t, newFake(t, func(int, *http.Request, *fake) int { return 500 }), "x")
	s.pace.Finish = 50 * time.Millisecond
	if err := s.finish(t.Context(), update{State: "success"}); err == nil || errors.Is(err, errOver) {
		t.Errorf("got %v", err)
	}
	// Checksum mismatches are not retried forever.
	f := newFake(t, func(n int, r *http.Request, f *fake) int {
		f.log = []byte("y")
		return 0
	})
	s = testSender(t, f, "x")
	if err := s.finish(t.Context(), update{State: "success"}); err != nil || len(f.ends) != 1 || f.ends[0].Output != nil {
		t.Errorf("got %v, %+v", err, f.ends)
	}
}

// TestSenderFollows checks that log data is sent while the job is still writing.
func TestSenderFollows(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil)
	s := testSender(t, f, "")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { s.follow(ctx) })
	if _, err := io.WriteString(s.log, "first\n"); err != nil {
		t.Fatal(err)
	}
	waittest.For(t, "the server has the first line", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return string(f.log) == "first\n"
	})
	cancel()
	wg.Wait()
}

// TestRecover recovers a job whose runner was killed: its processes are killed, and
// the rest of the log is sent.
func TestRecover(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil)
	f.log = []byte("begun")
	dir := t.TempDir()
	r, err := New(Deps{URL: f.URL, Token: "glrt-x", Dir: dir, Log: slog.New(slog.DiscardHandler), Now: time.Now, Pace: Pace{Retry: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	mark := random(8)
	cmd := exec.Command("sleep", "300")
	cmd.Env = append(os.Environ(), markName+"="+mark)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	was, err := json.Marshal(record{ID: 7, Token: "job", Mark: mark})
	if err != nil {
		t.Fatal(err)
	}
	write(t, r.buildsDir(), map[string]string{
		"7-1/job.json": string(was), "7-1/log": "begun and\nmore\n", "7-1/project/x": "x",
		"8-1/log":      "x", // the job had not started
		"9-1/job.json": "broken",
	})
	r.recoverJobs(t.Context())
	r.jobs.Wait()
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), syscall.SIGKILL.String()) {
		t.Errorf("the process ended with %v", err)
	}
	if !strings.HasPrefix(string(f.log), "begun and\nmore\n\n") || !strings.Contains(string(f.log), "the runner ended while the job ran") {
		t.Errorf("the log is %q", f.log)
	}
	if len(f.ends) != 1 || f.ends[0].State != "failed" || f.ends[0].Reason != "runner_system_failure" {
		t.Errorf("the server was told %+v", f.ends)
	}
	if left, err := os.ReadDir(r.buildsDir()); err != nil || len(left) != 0 {
		t.Errorf("left is %v %v", left, err)
	}
}

// TestTraceEnds checks that data over the limit is dropped with one message.
func TestTraceEnds(t *testing.T) {
	t.Parallel()
	log, err := openTrace(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	log.most = 10
	for range 4 {
		if n, err := io.WriteString(log, "1234"); n != 4 || err != nil {
			t.Fatalf("%d %v", n, err)
		}
	}
	got, err := log.read(0, 1000)
	if err != nil || !strings.HasPrefix(string(got), "1234123412\n") || strings.Count(string(got), "the log is too long") != 1 {
		t.Errorf("got %q %v", got, err)
	}
	if total := log.total(); total.Checksum != fmt.Sprintf("crc32:%08x", crc32.ChecksumIEEE(got)) || total.Bytesize != int64(len(got)) {
		t.Errorf("got %+v", total)
	}
}
