package bench

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// binary is the program that "make build" builds.
const binary = "../bin/svc"

const (
	starts = 9
	// idle is how long a server runs without requests before its memory is measured.
	idle = 5 * time.Second
	mebi = 1 << 20
)

// process measures the built program as a process.
func process(b *testing.B, t *table) {
	info, err := os.Stat(binary)
	if err != nil {
		b.Fatalf("%v: run make build first", err)
	}
	b.Run("binary", func(b *testing.B) {
		for b.Loop() { // one iteration
		}
		// Of 70 MiB, 22 are function tables that Go needs for stack traces and the
		// garbage collector, 3 the S3 client and its types, 2 SQLite.
		t.add(b, figure{name: "size of the binary", measured: float64(info.Size()) / mebi, limit: 72, unit: "MiB"})
	})
	b.Run("start", func(b *testing.B) {
		dir, addr := b.TempDir(), freeAddr(b)
		start(b, dir, addr).stop(b) // creates the data directory
		var seconds []float64
		for b.Loop() {
			for range starts {
				p := start(b, dir, addr)
				seconds = append(seconds, p.took.Seconds())
				p.stop(b)
			}
		}
		t.add(b, figure{
			name: "start to readiness", measured: median(seconds), limit: 0.3, unit: "s",
			note: fmt.Sprintf("median of %d starts", len(seconds)),
		})
	})
	b.Run("memory of the first start", func(b *testing.B) {
		var sizes []float64
		for b.Loop() {
			p := start(b, b.TempDir(), freeAddr(b)) // runs all migrations
			sizes = append(sizes, p.idleMemory(b))
			p.stop(b)
		}
		t.add(b, figure{
			name: "idle resident memory, first start", measured: median(sizes), limit: 64, unit: "MiB",
			note: fmt.Sprintf("%v after the start", idle),
		})
	})
	b.Run("memory", func(b *testing.B) {
		dir, addr := b.TempDir(), freeAddr(b)
		start(b, dir, addr).stop(b)
		var sizes []float64
		for b.Loop() {
			p := start(b, dir, addr)
			sizes = append(sizes, p.idleMemory(b))
			p.stop(b)
		}
		t.add(b, figure{
			name: "idle resident memory", measured: median(sizes), limit: 64, unit: "MiB",
			note: fmt.Sprintf("%v after the start", idle),
		})
	})
}

// server is a running process.
type server struct {
	cmd  *exec.Cmd
	took time.Duration // time from the start until the server was ready
}

// start starts svc and waits until it is ready.
func start(b testing.TB, dir, addr string) *server {
	b.Helper()
	return launch(b, command(dir, addr), dir, "http://"+addr+"/-/readiness")
}

// command returns a command of svc with its data in a directory. All clients of the
// benchmarks have one address.
func command(dir, addr string) *exec.Cmd {
	cmd := exec.Command(binary, "serve")
	cmd.Env = []string{
		"SVC_ADDR=" + addr, "SVC_DATA_DIR=" + dir + "/data", "SVC_ROOT_TOKEN=" + rootToken, "SVC_SSH_ADDR=off", "SVC_RUNNER=off",
		"SVC_MAX_CONNECTIONS_PER_ADDRESS=0", "PATH=" + os.Getenv("PATH"),
	}
	return cmd
}

// launch starts a program, which logs to a file in a directory, and waits until a
// URL returns 200.
func launch(b testing.TB, cmd *exec.Cmd, dir, address string) *server {
	b.Helper()
	log, err := os.Create(dir + "/log")
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	p := &server{cmd: cmd}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	begin := time.Now()
	if err := p.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = p.cmd.Process.Kill() }) // has no effect after stop
	for time.Since(begin) < time.Minute {
		if answers(address) {
			p.took = time.Since(begin)
			return p
		}
		time.Sleep(time.Millisecond)
	}
	text, _ := os.ReadFile(log.Name())
	b.Fatalf("the server is not ready:\n%s", text)
	return nil
}

// answers reports whether a request returns 200.
func answers(address string) bool {
	res, err := http.Get(address)
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == http.StatusOK
}

func (p *server) stop(b testing.TB) {
	b.Helper()
	if err := p.end(b); err != nil {
		b.Fatalf("stop: %v", err)
	}
}

// end stops a server that may have unfinished requests; its exit status then shows
// that.
func (p *server) end(b testing.TB) error {
	b.Helper()
	http.DefaultClient.CloseIdleConnections()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	return p.cmd.Wait()
}

// idleMemory returns the memory, in MiB, of a server that had no requests for some
// time.
func (p *server) idleMemory(b testing.TB) float64 {
	b.Helper()
	time.Sleep(idle)
	return p.resident(b) / mebi
}

// resident returns the resident memory of the process, in bytes.
func (p *server) resident(b testing.TB) float64 {
	b.Helper()
	n, err := resident(p.cmd.Process.Pid)
	check(b, err)
	return n
}

// watch records the maximum memory of the process until the returned function is
// called.
func (p *server) watch(b testing.TB) (peak func() float64) {
	b.Helper()
	return watchMemory(b, p.cmd.Process.Pid)
}

func watchMemory(b testing.TB, pid int) (peak func() float64) {
	b.Helper()
	most, err := resident(pid)
	check(b, err)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for err == nil {
			select {
			case <-end:
				return
			case <-tick.C:
				var now float64
				now, err = resident(pid)
				most = max(most, now)
			}
		}
	}()
	return func() float64 {
		b.Helper()
		close(end)
		<-ended
		check(b, err)
		now, err := resident(pid)
		check(b, err)
		return max(most, now)
	}
}

func resident(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	field := strings.Fields(string(text))
	if len(field) < 2 {
		return 0, fmt.Errorf("unexpected memory statistics of the process: %q", text)
	}
	pages, err := strconv.Atoi(field[1])
	return float64(pages * os.Getpagesize()), err
}

// spent returns the CPU time of the process, in seconds.
func (p *server) spent(b testing.TB) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	check(b, err)
	_, rest, _ := strings.Cut(string(text), ") ")
	field := strings.Fields(rest)
	if len(field) < 13 {
		b.Fatalf("unexpected CPU statistics of the process: %q", text)
	}
	ticks := 0
	for _, f := range field[11:13] { // user and system time
		n, err := strconv.Atoi(f)
		check(b, err)
		ticks += n
	}
	return float64(ticks) / 100 // USER_HZ is 100
}

// freeAddr returns an address on which no process listens.
func freeAddr(b testing.TB) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestWatchMemory(t *testing.T) {
	t.Parallel()
	before, err := resident(os.Getpid())
	check(t, err)
	peak := watchMemory(t, os.Getpid())
	// Mapped memory instead of the heap, which may already have resident free space.
	held, err := syscall.Mmap(-1, 0, 100*mebi, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	check(t, err)
	for i := 0; i < len(held); i += 4096 {
		held[i] = 1
	}
	grown := peak() - before
	check(t, syscall.Munmap(held))
	if grown < 50*mebi { // other goroutines may release memory concurrently
		t.Errorf("grown by %.0f bytes", grown)
	}
}
