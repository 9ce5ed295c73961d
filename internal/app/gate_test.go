package app_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"svc/internal/app"
	"svc/internal/app/apptest"
	"svc/internal/config"
	"svc/internal/waittest"
)

// dialFrom opens a connection from one of the loopback addresses.
func dialFrom(t *testing.T, s *apptest.Server, ip string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	c, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// get sends a GET request on a connection.
func get(t *testing.T, c net.Conn, path string, headers ...string) *http.Response {
	t.Helper()
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: test\r\n%s\r\n", path, strings.Join(append(headers, ""), "\r\n")); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return res
}

// occupy opens connections from an address and waits until the server has accepted
// them.
func occupy(t *testing.T, s *apptest.Server, ip string, n int, headers ...string) {
	t.Helper()
	for range n {
		if res := get(t, dialFrom(t, s, ip), "/-/liveness", headers...); res.StatusCode != 200 || res.Close {
			t.Fatalf("%d, closed %v", res.StatusCode, res.Close)
		}
	}
}

// TestConnectionsOfOneAddress opens more connections than one address may have.
// Other addresses and health probes are still served.
func TestConnectionsOfOneAddress(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		occupy(t, s, "127.0.0.2", 8)
		for range 50 { // more than the spare connections
			res := get(t, dialFrom(t, s, "127.0.0.2"), "/api/v4/version")
			if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" || !res.Close {
				t.Fatal(res.StatusCode, res.Header)
			}
		}
		if res := get(t, dialFrom(t, s, "127.0.0.2"), "/-/readiness"); res.StatusCode != 200 || !res.Close {
			t.Error(res.StatusCode, res.Header)
		}
		if res := get(t, dialFrom(t, s, "127.0.0.3"), "/api/v4/projects"); res.StatusCode != 200 {
			t.Error(res.StatusCode)
		}
		occupy(t, s, "127.0.0.4", 20) // a trusted proxy
	}, func(c *config.Config) {
		c.MaxConnectionsPerAddress = 8
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.4/32")}
	})
}

// TestIdleConnectionsStopProbes opens as many connections as allowed, and further
// ones that send nothing. Health probes are still served.
func TestIdleConnectionsStopProbes(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		var held []net.Conn
		for {
			c := dialFrom(t, s, "127.0.0.2")
			held = append(held, c)
			if res := get(t, c, "/-/liveness"); res.Close {
				break // the limit is reached
			}
			if len(held) > 20 {
				t.Fatal("there is no limit")
			}
		}
		for range 100 {
			dialFrom(t, s, "127.0.0.2") // sends nothing
		}
		for _, path := range []string{"/-/liveness", "/-/readiness", "/-/health"} {
			if res := get(t, dialFrom(t, s, "127.0.0.3"), path); res.StatusCode != 200 {
				t.Error(path, res.StatusCode)
			}
		}
		if res := get(t, dialFrom(t, s, "127.0.0.3"), "/api/v4/projects"); res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
			t.Error(res.StatusCode, res.Header)
		}
		for _, c := range held {
			c.Close()
		}
		waittest.For(t, "connections are free", func() bool {
			c := dialFrom(t, s, "127.0.0.3")
			defer c.Close()
			return get(t, c, "/api/v4/projects").StatusCode == 200
		})
	}, func(c *config.Config) { c.MaxConnections = 12 })
}

// TestSilentBodies checks that the server closes the connections of clients that
// send the head of a request but no body, and of clients that do not read a
// response.
func TestSilentBodies(t *testing.T) {
	t.Parallel()
	apptest.EachWith(t, app.Options{Pace: app.Pace{Idle: 500 * time.Millisecond}}, func(t *testing.T, s *apptest.Server) {
		_, token := s.User(t, "olga")
		for _, head := range []string{
			"POST /api/v4/projects HTTP/1.1\r\nContent-Type: application/json\r\nPRIVATE-TOKEN: " + token,
			"POST /users/sign_in HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded",
			"POST /olga/x.git/git-upload-pack HTTP/1.1\r\nContent-Type: application/x-git-upload-pack-request",
		} {
			c := dialFrom(t, s, "127.0.0.2")
			if _, err := fmt.Fprintf(c, "%s\r\nHost: test\r\nContent-Length: 100\r\n\r\n{", head); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Errorf("%.40s: %v", head, err)
				continue
			}
			if res.StatusCode >= 500 {
				t.Errorf("%.40s: %d", head, res.StatusCode)
			}
			if _, err := io.Copy(io.Discard, c); err != nil && !strings.Contains(err.Error(), "reset") {
				t.Errorf("%.40s: the connection stays open: %v", head, err)
			}
		}
	})
}
