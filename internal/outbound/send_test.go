package outbound

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestPolicy(t *testing.T) {
	t.Parallel()
	some := Policy{Allowed: []string{"intern.example", "named.example:8080", "10.1.0.0/16", "192.168.1.1", "127.0.0.1:9000"}}
	for address, want := range map[string]bool{
		"https://example.org/x": true, "http://intern.example": true, "http://named.example:8080": true, "http://10.1.2.3": true, "http://10.2.2.3": false,
		"http://192.168.1.1:99": true, "http://127.0.0.1:9000": true, "http://127.0.0.1:9001": false, "http://localhost": false, "http://localhost:9000": true,
		"http://[::1]": false, "http://[::ffff:10.1.0.1]": true, "http://169.254.169.254": false, "http://a.localhost.": false,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := some.MayReach(u); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}

func TestSend(t *testing.T) {
	t.Parallel()
	away := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:1/", http.StatusFound))
	t.Cleanup(away.Close)
	send := func(p Policy, address string) (*Response, error) {
		s := NewSender(p, false, time.Minute)
		defer s.Close()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		return s.Send(r, 5)
	}
	if got, err := send(Policy{Local: true}, away.URL); err != nil || got.Status != http.StatusFound || len(got.Body) > 5 {
		t.Errorf("a redirect was followed: %+v %v", got, err)
	}
	if _, err := send(Policy{}, away.URL); err == nil || err.Error() != ErrLocal.Error() {
		t.Errorf("the local network: %v", err)
	}
	if _, err := send(Policy{Allowed: []string{"127.0.0.0/8"}}, away.URL); err != nil {
		t.Errorf("an allowed network: %v", err)
	}
}
