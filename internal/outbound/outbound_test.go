package outbound

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestPublic(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"1.1.1.1": true, "2606:4700::1111": true, "::ffff:1.1.1.1": true,
		"127.0.0.1": false, "127.9.9.9": false, "::1": false, "::ffff:127.0.0.1": false, "0.0.0.0": false, "::": false, "0.1.2.3": false,
		"10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "::ffff:10.0.0.1": false, "fd00::1": false, "fe80::1%eth0": false,
		"169.254.169.254": false, "100.64.0.1": false, "224.0.0.1": false, "ff02::1": false, "255.255.255.255": false,
		"64:ff9b::7f00:1": false, "64:ff9b:1::1": false, "::127.0.0.1": false, "::8.8.8.8": false, "fec0::1": false, "4000::1": false, "2001::1": false, "2a00:1450::1": true, "2002:7f00:1::": false, "198.18.0.1": false,
	} {
		if got := Public(netip.MustParseAddr(address)); got != want {
			t.Errorf("Public(%s) = %v", address, got)
		}
	}
}

// site starts a server of files; the path determines its behavior.
func site(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/file", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case "/away":
			http.Redirect(w, r, "ftp://127.0.0.1/file", http.StatusFound)
		case "/file":
			_, _ = w.Write([]byte("0123456789"))
		case "/slow":
			<-r.Context().Done()
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func TestGet(t *testing.T) {
	t.Parallel()
	s := site(t)
	for _, tt := range []struct{ address, want, fault string }{
		{s.URL + "/file", "0123456789", ""},
		{s.URL + "/moved", "0123456789", ""},
		{s.URL + "/round", "", "too many redirects"},
		{s.URL + "/away", "", "must start with http:// or https://"},
		{s.URL + "/none", "", "HTTP 404"},
		{"file:///etc/passwd", "", "must start with http:// or https://"},
		{"http:///x", "", "must start with http:// or https://"},
		{"http://127.0.0.1:1/x", "", "cannot be reached"},
		{"http://%zz", "", "not a valid URL"},
	} {
		got, err := New(true).Get(t.Context(), tt.address, 100)
		switch {
		case tt.fault == "" && (err != nil || string(got) != tt.want):
			t.Errorf("%s: %q, %v", tt.address, got, err)
		case tt.fault != "" && (err == nil || !strings.Contains(err.Error(), tt.fault)):
			t.Errorf("%s: %v, want %s", tt.address, err, tt.fault)
		}
	}
	if got, err := New(true).Get(t.Context(), s.URL+"/file", 3); err != nil || string(got) != "0123" {
		t.Errorf("with a limit: %q, %v", got, err)
	}
}

func TestGetKeepsOut(t *testing.T) {
	t.Parallel()
	s := site(t)
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	for _, host := range []string{"http://127.0.0.1", "http://localhost", "http://[::1]", "http://[::ffff:127.0.0.1]", "http://0.0.0.0"} {
		if got, err := New(false).Get(t.Context(), host+port+"/file", 100); !errors.Is(err, ErrLocal) {
			t.Errorf("%s: %q, %v", host, got, err)
		}
	}
}

func TestGetTakesNotLong(t *testing.T) {
	t.Parallel()
	s := site(t)
	f := New(true)
	f.left = 50 * time.Millisecond
	if _, err := f.Get(t.Context(), s.URL+"/slow", 100); err == nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("a slow site: %v", err)
	}
	if _, err := f.Get(t.Context(), s.URL+"/file", 100); err == nil || !strings.Contains(err.Error(), "time limit") {
		t.Errorf("after the time limit: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(true).Get(ctx, s.URL+"/slow", 100); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled request: %v", err)
	}
}
