package blobtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"svc/internal/waittest"
)

// S3 starts an S3 server for the test, on a loopback port with a new directory, and
// returns the address of an empty bucket for blob.Open. The server is an open-source
// program, pinned in the module tools. The first call on a machine compiles it,
// which takes a minute or two.
func S3(t testing.TB) string {
	t.Helper()
	address, _ := S3Line(t)
	return address
}

// S3Line is like S3, and also returns the connection to the server, which can be
// interrupted.
func S3Line(t testing.TB) (string, *Line) {
	t.Helper()
	program := build(t)
	// t.TempDir is not used because the path of a socket must be short.
	dir, err := os.MkdirTemp("", "s3-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, name := range []string{"data", "meta"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	accessKey, secretKey := "test", rand.Text()
	socket := filepath.Join(dir, "socket")
	start(t, program, dir, socket, accessKey, secretKey)
	line := &Line{socket: socket, open: map[net.Conn]bool{}}
	endpoint := "http://" + line.listen(t)
	await(t, endpoint+"/health", filepath.Join(dir, "log"))

	client := s3.New(s3.Options{
		BaseEndpoint: &endpoint,
		Region:       "us-east-1",
		UsePathStyle: true,
		Credentials:  credentials.NewStaticCredentialsProvider(accessKey, secretKey, ""),
	})
	if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("objects")}); err != nil {
		t.Fatalf("create bucket: %v", err)
	}
	return "s3://objects?" + url.Values{
		"endpoint":   {endpoint},
		"region":     {"us-east-1"},
		"path_style": {"true"},
		"access_key": {accessKey},
		"secret_key": {secretKey},
	}.Encode(), line
}

// build returns the path of the server program, which the go command compiles and
// caches.
func build(t testing.TB) string {
	t.Helper()
	root, err := filepath.Abs(".")
	for err == nil {
		if _, serr := os.Stat(filepath.Join(root, "tools", "go.mod")); serr == nil {
			break
		}
		if root == filepath.Dir(root) {
			t.Fatal("the tools module is in no directory above this test")
		}
		root = filepath.Dir(root)
	}
	if err != nil {
		t.Fatal(err)
	}
	var errors strings.Builder
	command := exec.Command("go", "-C", filepath.Join(root, "tools"), "tool", "-n", "versitygw")
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off")
	command.Stderr = &errors
	out, err := command.Output()
	if err != nil {
		t.Fatalf("build the S3 server: %v\n%s", err, errors.String())
	}
	return strings.TrimSpace(string(out))
}

// start runs the server on a socket, because it does not report which free port it
// uses. A shell kills the server when its standard input ends, so that the server
// exits also if the test is killed.
func start(t testing.TB, program, dir, socket, accessKey, secretKey string) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	const script = `"$@" </dev/null & server=$!; read -r end; kill $server; wait $server`
	command := exec.Command("sh", "-c", script, "sh", program,
		"--port", socket, "--health", "/health", "--keep-alive", "--quiet",
		"posix", "--sidecar", filepath.Join(dir, "meta"), filepath.Join(dir, "data"))
	command.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+accessKey, "ROOT_SECRET_KEY="+secretKey)
	command.Stdout, command.Stderr = log, log
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("start the S3 server: %v", err)
	}
	t.Cleanup(func() {
		input.Close()
		command.Wait() // it was killed, so its status is ignored
	})
}

// Line forwards connections to the socket of a server. While it is cut, all
// connections are closed.
type Line struct {
	socket string

	mu   sync.Mutex
	cut  bool
	open map[net.Conn]bool
}

// Cut closes all connections, and all new connections until Restore is called.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for c := range l.open {
		c.Close()
	}
}

// Restore forwards connections again after Cut.
func (l *Line) Restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
}

// admit records a connection. It returns false if the line is cut.
func (l *Line) admit(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.cut {
		l.open[c] = true
	}
	return !l.cut
}

func (l *Line) listen(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go l.forward(client)
		}
	}()
	return listener.Addr().String()
}

func (l *Line) forward(client net.Conn) {
	defer client.Close()
	if !l.admit(client) {
		return
	}
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, client)
	}()
	server, err := net.Dial("unix", l.socket)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		defer server.Close()
		io.Copy(server, client)
	}()
	io.Copy(client, server)
}

func await(t testing.TB, address, log string) {
	t.Helper()
	answered := false
	defer func() {
		if !answered {
			text, _ := os.ReadFile(log)
			t.Logf("the S3 server does not answer:\n%s", text)
		}
	}()
	waittest.For(t, "the S3 server answers", func() bool {
		answered = ask(t.Context(), address) == nil
		return answered
	})
}

func ask(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", response.Status)
	}
	return nil
}
