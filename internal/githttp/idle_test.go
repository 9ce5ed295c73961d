package githttp_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/git"
	"svc/internal/git/gittest"
	"svc/internal/waittest"
)

// dialFrom opens a connection to the server from a loopback address. Its receive
// buffer is small, so that unread data stays on the server.
func dialFrom(t *testing.T, s *apptest.Server, ip string) *net.TCPConn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	c, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	tcp := c.(*net.TCPConn)
	if err := tcp.SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	return tcp
}

// send writes a request with headers and a body.
func send(t *testing.T, c net.Conn, line string, headers []string, body string) {
	t.Helper()
	head := line + " HTTP/1.1\r\nHost: test\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n"
	if _, err := c.Write([]byte(head + body)); err != nil {
		t.Fatal(err)
	}
}

// statusLine reads the status line of a response.
func statusLine(t *testing.T, c net.Conn) string {
	t.Helper()
	line, err := bufio.NewReaderSize(c, 16).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// clone clones a repository with a token, or anonymously.
func clone(t *testing.T, s *apptest.Server, path, token string, protocol int) error {
	t.Helper()
	u, err := url.Parse(s.URL + "/" + path + ".git")
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		u.User = url.UserPassword("oauth2", token)
	}
	dir := filepath.Join(t.TempDir(), "clone")
	cmd := gittest.Command(t.TempDir(), "-c", fmt.Sprintf("protocol.version=%d", protocol), "clone", "-q", u.String(), dir)
	cmd.Env = append(cmd.Env, "GIT_TERMINAL_PROMPT=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("clone: %w: %s", err, out)
	}
	return nil
}

// TestIdleConnectionsStopGit checks that clients that send the headers of a fetch
// and no body do not block others, even if they are more than the limit of git
// processes.
func TestIdleConnectionsStopGit(t *testing.T) {
	t.Parallel()
	apptest.EachWith(t, apptest.Options{Git: git.Limits{Wait: time.Minute}}, func(t *testing.T, s *apptest.Server) {
		_, token := s.User(t, "olga")
		newProject(t, s, token, "public", "public")
		for range 70 {
			c := dialFrom(t, s, "127.0.0.2")
			send(t, c, "POST /olga/public.git/git-upload-pack", []string{
				"Content-Type: application/x-git-upload-pack-request", "Content-Length: 500", "Expect: 100-continue",
			}, "")
			if line := statusLine(t, c); line != "HTTP/1.1 100 Continue" { // the server waits for the body
				t.Fatal(line)
			}
		}
		for _, protocol := range []int{0, 2} {
			for _, as := range []string{token, ""} {
				if err := clone(t, s, "olga/public", as, protocol); err != nil {
					t.Errorf("protocol %d: %v", protocol, err)
				}
			}
		}
	})
}

// largeFile returns incompressible content that exceeds the buffers of a connection.
func largeFile() string {
	rnd := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 8<<20)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return string(b)
}

// TestStalledDownloadsStopGit checks that clients that request large responses and
// do not read them do not block others, even if they are more than the limit of git
// processes.
func TestStalledDownloadsStopGit(t *testing.T) {
	t.Parallel()
	const transfers = 4
	apptest.EachWith(t, apptest.Options{Git: git.Limits{Transfers: transfers, Wait: time.Minute}}, func(t *testing.T, s *apptest.Server) {
		_, token := s.User(t, "olga")
		newProject(t, s, token, "public", "public")
		var p struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET /projects/olga%2Fpublic", As: token, Status: 200}).JSON(t, &p)
		r := s.Repository(t, p.ID, gittest.Commit{Changes: []gittest.Change{{Path: "large", Content: largeFile()}}})
		tip := r.Tip("refs/heads/main")
		want := "0032want " + tip + "\n00000009done\n"
		fetch := func(c net.Conn) {
			send(t, c, "POST /olga/public.git/git-upload-pack",
				[]string{"Content-Type: application/x-git-upload-pack-request", fmt.Sprintf("Content-Length: %d", len(want))}, want)
		}
		for name, ask := range map[string]func(net.Conn){
			"fetch": fetch,
			"raw": func(c net.Conn) {
				send(t, c, "GET /api/v4/projects/olga%2Fpublic/repository/files/large/raw?ref=main", nil, "")
			},
			"page":    func(c net.Conn) { send(t, c, "GET /olga/public/-/raw/main/large", nil, "") },
			"archive": func(c net.Conn) { send(t, c, "GET /api/v4/projects/olga%2Fpublic/repository/archive.tar", nil, "") },
		} {
			t.Run(name, func(t *testing.T) {
				for range 2 * transfers {
					c := dialFrom(t, s, "127.0.0.2")
					ask(c)
					if line := statusLine(t, c); line != "HTTP/1.1 200 OK" {
						t.Fatal(line)
					}
				}
				for _, as := range []string{token, ""} {
					if err := clone(t, s, "olga/public", as, 0); err != nil {
						t.Error(err)
					}
				}
			})
		}
	})
}

// TestBusyIsUnavailable lets a stalled push occupy the only git slot. Other requests
// get status 503, not an internal error.
func TestBusyIsUnavailable(t *testing.T) {
	t.Parallel()
	apptest.EachWith(t, apptest.Options{Git: git.Limits{Transfers: 1, Wait: 50 * time.Millisecond}}, func(t *testing.T, s *apptest.Server) {
		_, token := s.User(t, "olga")
		newProject(t, s, token, "public", "public")
		var p struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET /projects/olga%2Fpublic", As: token, Status: 200}).JSON(t, &p)
		tip := s.Repository(t, p.ID, gittest.Commit{Changes: []gittest.Change{{Path: "large", Content: largeFile()}}}).Tip("refs/heads/main")

		line := strings.Repeat("0", 40) + " " + strings.Repeat("1", 40) + " refs/heads/slow\x00report-status"
		push := func() (answered chan struct{}) {
			c := dialFrom(t, s, "127.0.0.2")
			send(t, c, "POST /olga/public.git/git-receive-pack",
				[]string{"Content-Type: application/x-git-receive-pack-request", "Content-Length: 10000", "Authorization: Bearer " + token},
				fmt.Sprintf("%04x%s0000PACK\x00\x00\x00\x02\x00\x00\x00\x05", len(line)+4, line))
			answered = make(chan struct{})
			go func() {
				_, _ = c.Read(make([]byte, 1))
				close(answered)
			}()
			return answered
		}
		answered, busy := push(), 0
		waittest.For(t, "the push has the slot", func() bool {
			select {
			case <-answered: // refused, because another request had the slot for too long
				answered, busy = push(), 0
			default:
			}
			if (ask{path: refs("olga/public", "git-upload-pack")}).send(t, s).Status != 503 {
				busy = 0
				return false
			}
			busy++
			return busy == 3
		})
		fetch := "0032want " + tip + "\n00000009done\n"
		for _, a := range []ask{
			{path: refs("olga/public", "git-upload-pack"), text: "busy"},
			{path: "/olga/public.git/git-upload-pack", body: []byte(fetch), header: map[string]string{"Content-Type": "application/x-git-upload-pack-request"}, text: "busy"},
			{path: "/olga/public.git/git-receive-pack", login: "oauth2", password: token, header: map[string]string{"Content-Type": "application/x-git-receive-pack-request"},
				body: fmt.Appendf(nil, "%04x%s0000PACK\x00\x00\x00\x02\x00\x00\x00\x00%s", len(line)+4, line, strings.Repeat("x", 20)), text: "busy"},
			{path: "/api/v4/projects/olga%2Fpublic/repository/files/large/raw?ref=main", text: "busy"},
			{path: "/api/v4/projects/olga%2Fpublic/repository/archive.tar", text: "busy"},
			{path: "/olga/public/-/archive/main/public-main.tar", text: "busy"},
		} {
			a.status, a.want = 503, map[string]string{"Retry-After": "1"}
			a.check(t, s)
		}
	})
}
