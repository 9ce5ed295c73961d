package bench

import (
	"bufio"
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

// binary is what "make build" makes.
const binary = "../bin/svc"

const (
	starts = 9
	// idle is how long a server is left alone before its memory is read.
	idle = 5 * time.Second
	mebi = 1 << 20
)

// process measures the program as an operator sees it.
func process(b *testing.B, t *table) {
	info, err := os.Stat(binary)
	if err != nil {
		b.Fatalf("%v: run make build first", err)
	}
	b.Run("binary", func(b *testing.B) {
		for b.Loop() { // once is enough
		}
		t.add(b, figure{name: "size of the binary", measured: float64(info.Size()) / mebi, limit: 60, unit: "MiB"})
	})
	b.Run("start", func(b *testing.B) {
		dir, addr := b.TempDir(), freeAddr(b)
		start(b, dir, addr).stop(b) // makes the data directory
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
	b.Run("memory", func(b *testing.B) {
		dir, addr := b.TempDir(), freeAddr(b)
		start(b, dir, addr).stop(b)
		var sizes []float64
		for b.Loop() {
			p := start(b, dir, addr)
			time.Sleep(idle)
			sizes = append(sizes, p.resident(b)/mebi)
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
	took time.Duration // from its start until it was ready
}

func start(b *testing.B, dir, addr string) *server {
	b.Helper()
	log, err := os.Create(dir + "/log")
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	p := &server{cmd: exec.Command(binary, "serve")}
	p.cmd.Env = []string{"SVC_ADDR=" + addr, "SVC_DATA_DIR=" + dir + "/data", "SVC_SSH_ADDR=off", "SVC_RUNNER=off", "PATH=" + os.Getenv("PATH")}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	begin := time.Now()
	if err := p.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = p.cmd.Process.Kill() }) // of no effect after stop
	for time.Since(begin) < time.Minute {
		if ready(addr) {
			p.took = time.Since(begin)
			return p
		}
		time.Sleep(time.Millisecond)
	}
	text, _ := os.ReadFile(log.Name())
	b.Fatalf("the server is not ready:\n%s", text)
	return nil
}

func ready(addr string) bool {
	res, err := http.Get("http://" + addr + "/-/readiness")
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == http.StatusOK
}

func (p *server) stop(b *testing.B) {
	b.Helper()
	http.DefaultClient.CloseIdleConnections()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		b.Fatalf("stop: %v", err)
	}
}

// resident is the memory of the process, in bytes, as the kernel counts it.
func (p *server) resident(b *testing.B) float64 {
	b.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(text, "kB")))
			if err != nil {
				b.Fatal(err)
			}
			return float64(n) * 1024
		}
	}
	b.Fatal("the kernel does not tell the memory of the process")
	return 0
}

// freeAddr is an address that nobody listens on just now.
func freeAddr(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
