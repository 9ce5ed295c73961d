package app_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svc/internal/app"
	"svc/internal/app/apptest"
	"svc/internal/config"
	"svc/internal/pages/cert/certtest"
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

// TestRequestsOfOneAddress opens requests over HTTP/2 that read nothing of a large file
// of a site, all on one connection. An address can have as many as connections, others
// are served, and a request that ends makes room.
func TestRequestsOfOneAddress(t *testing.T) {
	t.Parallel()
	certificate, key := certtest.New(t).Issue(time.Now().AddDate(1, 0, 0), "*."+apptest.PagesHost)
	dir := t.TempDir()
	for name, text := range map[string]string{"cert.pem": certificate, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		var p struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: apptest.RootToken, JSON: `{"path":"site","visibility":"public","pages_access_level":"public"}`, Status: 201}).JSON(t, &p)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PATCH /projects/%d/pages", p.ID), As: apptest.RootToken, JSON: `{"pages_unique_domain_enabled":false}`, Status: 200})
		s.Publish(t, p.ID, map[string]string{"public/index.html": "x", "public/large.bin": strings.Repeat("0123456789abcdef", 1<<16)})
		visitor := func(ip string) *http.Transport {
			only := new(http.Protocols)
			only.SetHTTP2(true)
			from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
			c := &http.Transport{
				Protocols: only, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true,
				HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10},
				DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
					return from.DialContext(ctx, network, s.PagesTLSAddr())
				},
			}
			t.Cleanup(c.CloseIdleConnections)
			return c
		}
		visit := func(c *http.Transport) *http.Response {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), "GET", "https://root."+apptest.PagesHost+"/site/large.bin", nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := c.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		stalled := visitor("127.0.0.2")
		var held []*http.Response
		for range 8 {
			res := visit(stalled)
			if held = append(held, res); res.StatusCode != 200 || res.ProtoMajor != 2 {
				t.Fatal(res.Status, res.Proto)
			}
		}
		for range 3 {
			res := visit(stalled)
			if res.Body.Close(); res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
				t.Error(res.Status, res.Header)
			}
		}
		for _, ip := range []string{"127.0.0.3", "127.0.0.4"} {
			res := visit(visitor(ip))
			if res.Body.Close(); res.StatusCode != 200 {
				t.Error(ip, res.Status)
			}
		}
		held[0].Body.Close()
		waittest.For(t, "a request has ended", func() bool {
			res := visit(stalled)
			res.Body.Close()
			return res.StatusCode == 200
		})
		for _, res := range held {
			res.Body.Close()
		}
	}, apptest.Pages, func(c *config.Config) {
		c.MaxConnectionsPerAddress = 8
		c.PagesCert, c.PagesKey = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	})
}
