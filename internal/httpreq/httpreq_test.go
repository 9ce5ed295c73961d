package httpreq_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"svc/internal/httpreq"
)

func TestIP(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"192.0.2.1:80":          "192.0.2.1",
		"[2001:db8::1]:80":      "2001:db8::1",
		"[::ffff:192.0.2.1]:80": "192.0.2.1",
		"@":                     "@", // a Unix socket
	} {
		if got := httpreq.IP(&http.Request{RemoteAddr: addr}); got != want {
			t.Errorf("%s: got %s, want %s", addr, got, want)
		}
	}
}

func TestProxies(t *testing.T) {
	t.Parallel()
	proxies := httpreq.Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}
	tests := []struct {
		name      string
		proxies   httpreq.Proxies
		from      string
		forwarded []string
		want      string
		trusted   bool
	}{
		{"no proxies", nil, "10.0.0.1:5", []string{"192.0.2.1"}, "10.0.0.1:5", false},
		{"from a client", proxies, "198.51.100.1:5", []string{"192.0.2.1"}, "198.51.100.1:5", false},
		{"from a proxy", proxies, "10.0.0.1:5", []string{"192.0.2.1"}, "192.0.2.1:0", true},
		{"a proxy in IPv6", proxies, "[2001:db8::1]:5", []string{"2001:db9::1"}, "[2001:db9::1]:0", true},
		{"a mapped proxy", proxies, "[::ffff:10.0.0.1]:5", []string{"192.0.2.1"}, "192.0.2.1:0", true},
		{"two proxies", proxies, "10.0.0.1:5", []string{"192.0.2.1, 10.0.0.2"}, "192.0.2.1:0", true},
		{"two headers", proxies, "10.0.0.1:5", []string{"192.0.2.1", "10.0.0.2"}, "192.0.2.1:0", true},
		{"a forged first address", proxies, "10.0.0.1:5", []string{"203.0.113.9, 192.0.2.1"}, "192.0.2.1:0", true},
		{"proxies alone", proxies, "10.0.0.1:5", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3:0", true},
		{"no address", proxies, "10.0.0.1:5", []string{"192.0.2.1, unknown"}, "10.0.0.1:5", true},
		{"no header", proxies, "10.0.0.1:5", nil, "10.0.0.1:5", true},
	}
	for _, test := range tests {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = test.from
		r.Header["X-Forwarded-For"] = test.forwarded
		if got := test.proxies.ClientAddr(r); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
		if test.proxies.ForwardedTLS(r) {
			t.Errorf("%s: TLS without the header", test.name)
		}
		r.Header.Set("X-Forwarded-Proto", "HTTPS")
		if got := test.proxies.ForwardedTLS(r); got != test.trusted {
			t.Errorf("%s: TLS is %t", test.name, got)
		}
	}
}

func TestEncodings(t *testing.T) {
	t.Parallel()
	for header, want := range map[string][2]float64{ // Brotli, gzip
		"":                     {0, 0},
		"br":                   {1, 0},
		"gzip":                 {0, 1},
		"GZIP":                 {0, 1},
		"x-gzip":               {0, 1},
		"xgzip":                {0, 0},
		"br, gzip":             {1, 1},
		"gzip; q=0.5":          {0, 0.5},
		"gzip;q=0":             {0, 0},
		"gzip;q=0.000":         {0, 0},
		"gzip;q=1.0, br;Q=0.2": {0.2, 1},
		"*":                    {1, 1},
		"*;q=0.3, br":          {1, 0.3},
		"gzip;q=0, *":          {1, 0},
		"identity":             {0, 0},
		"gzip;q=x":             {0, 0},
		"gzip;q=2":             {0, 0},
	} {
		brotli, gzip := httpreq.Encodings(header)
		if brotli != want[0] || gzip != want[1] {
			t.Errorf("%q: Brotli %v, gzip %v", header, brotli, gzip)
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept-Encoding", header)
		if got := httpreq.AcceptsGzip(r); got != (want[1] > 0) {
			t.Errorf("%q: accepts gzip: %t", header, got)
		}
	}
}
