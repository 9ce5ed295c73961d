package app_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/pires/go-proxyproto"
	"golang.org/x/crypto/ssh"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/config"
	"svc/internal/db/dbtest"
	"svc/internal/user"
	"svc/internal/waittest"
)

// proxyHeader returns the PROXY protocol header for a client.
func proxyHeader(t *testing.T, version byte, client string) []byte {
	t.Helper()
	h := proxyproto.HeaderProxyFromAddrs(version, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(client)), net.TCPAddrFromAddrPort(netip.MustParseAddrPort("198.51.100.1:80")))
	var b bytes.Buffer
	if _, err := h.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// send sends a PROXY protocol header and a request on a new connection.
func send(t *testing.T, addr string, first []byte, request string) *http.Response {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(append(bytes.Clone(first), request...)); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res
}

func TestProxyProtocol(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		trusted string
		first   func(t *testing.T) []byte
		status  int
		want    string // the address in the audit event
	}{
		"version 1":           {"127.0.0.0/8", func(t *testing.T) []byte { return proxyHeader(t, 1, "203.0.113.9:1234") }, 200, "203.0.113.9"},
		"version 2":           {"127.0.0.0/8", func(t *testing.T) []byte { return proxyHeader(t, 2, "203.0.113.9:1234") }, 200, "203.0.113.9"},
		"no header":           {"127.0.0.0/8", func(*testing.T) []byte { return nil }, 200, "127.0.0.1"},
		"not trusted":         {"10.0.0.0/8", func(t *testing.T) []byte { return proxyHeader(t, 1, "203.0.113.9:1234") }, 400, ""},
		"nobody is trusted":   {"", func(t *testing.T) []byte { return proxyHeader(t, 2, "203.0.113.9:1234") }, 400, ""},
		"none, and no header": {"", func(*testing.T) []byte { return nil }, 200, "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apptest.Start(t, dbtest.SQLite(t), func(c *config.Config) {
				if test.trusted != "" {
					c.ProxyProtocol = []netip.Prefix{netip.MustParsePrefix(test.trusted)}
				}
			})
			request := "PUT /api/v4/application/settings?max_login_attempts=4 HTTP/1.1\r\nHost: x\r\nPRIVATE-TOKEN: " + apptest.RootToken + "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
			if res := send(t, s.Addr(), test.first(t), request); res.StatusCode != test.status {
				t.Errorf("status %d, want %d", res.StatusCode, test.status)
			}
			if test.want != "" {
				s.Check(t, apptest.Call{Do: "GET /audit_events?per_page=1", As: apptest.RootToken, Status: 200, Want: fmt.Sprintf(`[{"ip_address":%q}]`, test.want)})
			}
		})
	}
}

// TestProxyProtocolSSH signs in over SSH through a load balancer. A connection
// without data does not block others.
func TestProxyProtocolSSH(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "carol")
		signer := signerOf(t)
		line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
		if _, err := s.Users.AddKey(t.Context(), actor.System(), id, user.NewKey{Title: "k", Key: line}); err != nil {
			t.Fatal(err)
		}
		silent, err := net.Dial("tcp", s.SSHAddr())
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		for _, version := range []byte{1, 2} {
			nc, err := net.Dial("tcp", s.SSHAddr())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			client := fmt.Sprintf("203.0.113.%d", version)
			if _, err := nc.Write(proxyHeader(t, version, client+":1234")); err != nil {
				t.Fatal(err)
			}
			conn, channels, requests, err := ssh.NewClientConn(nc, "", &ssh.ClientConfig{
				User: "git", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
			})
			if err != nil {
				t.Fatal(err)
			}
			session, err := ssh.NewClient(conn, channels, requests).NewSession()
			if err != nil {
				t.Fatal(err)
			}
			_ = session.Run("git-upload-pack '/carol/none.git'") // the repository does not exist
			waittest.For(t, "the address of the client is in the log", func() bool { return strings.Contains(s.Log(), `"ip":"`+client+`"`) })
		}
	}, apptest.SSH, func(c *config.Config) { c.ProxyProtocol = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
}
