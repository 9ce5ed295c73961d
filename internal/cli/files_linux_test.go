package cli_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"svc/internal/db/dbtest"
)

// TestDownloadsLeaveFiles fills the server with clients that read nothing of a file. A
// connection and the file take two file descriptors, and enough are left to start git.
func TestDownloadsLeaveFiles(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		own := server([]string{"SVC_DATA_DIR=" + t.TempDir(), "SVC_DATABASE_URL=" + src.URL, "SVC_MAX_CONNECTIONS_PER_ADDRESS=0"})
		cmd := exec.Command("/bin/sh", "-c", `ulimit -n 360; exec "$0"`, own.Path)
		cmd.Env = own.Env
		address, process := serveWith(t, cmd)
		api := address + "/api/v4"
		const file = "/projects/1/packages/generic/large/1.0/file"
		if status, text := ask(t.Context(), "POST", api+"/projects", `{"path":"code","visibility":"public","initialize_with_readme":true}`); status != 201 {
			t.Fatal(status, text)
		}
		if status, text := ask(t.Context(), "PUT", api+file, string(bytes.Repeat([]byte("0123456789abcdef"), 1<<19))); status != 201 {
			t.Fatal(status, text)
		}
		dial := func() (net.Conn, *bufio.Reader) {
			t.Helper()
			c, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(address, "http://"))
			if err == nil {
				err = c.(*net.TCPConn).SetReadBuffer(4 << 10)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			return c, bufio.NewReader(c)
		}
		begin := func(c net.Conn, in *bufio.Reader, path string) *http.Response {
			t.Helper()
			if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: test\r\n\r\n", path); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		visitor, in := dial()
		for n := 0; ; n++ {
			c, in := dial()
			res := begin(c, in, "/api/v4"+file)
			if res.StatusCode == 503 && n > 20 {
				break // there are as many connections as there may be
			}
			if res.StatusCode != 200 || n > 360 {
				t.Fatalf("download %d: %s", n, res.Status)
			}
		}
		res := begin(visitor, in, "/root/code.git/info/refs?service=git-upload-pack")
		if res.StatusCode != 200 {
			t.Errorf("git: %s", res.Status)
		}
		if err := process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = process.Wait()
	})
}
