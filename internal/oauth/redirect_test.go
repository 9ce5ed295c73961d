package oauth

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"svc/internal/errs"
)

func TestParseRedirects(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want []string // nil if invalid
		why  string
	}{
		{text: "https://app.example.com/cb", want: []string{"https://app.example.com/cb"}},
		{text: " https://a.example/cb \r\nhttps://b.example/cb?x=1\n\nhttps://a.example/cb\n", want: []string{"https://a.example/cb", "https://b.example/cb?x=1"}},
		{text: "http://localhost:7171/auth/redirect", want: []string{"http://localhost:7171/auth/redirect"}},
		{text: "com.example.app:/cb", want: []string{"com.example.app:/cb"}},
		{text: "vscode://vendor.extension/cb", want: []string{"vscode://vendor.extension/cb"}},
		{text: "http://[::1]:1/cb", want: []string{"http://[::1]:1/cb"}},
		{text: "", why: "can't be blank"},
		{text: "\n \n", why: "can't be blank"},
		{text: "/cb", why: "must be an absolute URI."},
		{text: "//host/cb", why: "must be an absolute URI."},
		{text: "https://", why: "must be an absolute URI."},
		{text: "https:///cb", why: "must be an absolute URI."},
		{text: "https:cb", why: "must be an absolute URI."},
		{text: "urn:ietf:wg:oauth:2.0:oob", why: "must be an absolute URI."},
		{text: "https://a.example/cb#x", why: "cannot contain a fragment."},
		{text: "https://a.example/cb#", why: "cannot contain a fragment."},
		{text: "https://user@a.example/cb", why: "cannot contain a user."},
		{text: "https://a.example@evil.example/cb", why: "cannot contain a user."},
		{text: "javascript://a.example/%0Aalert(1)", why: "is forbidden by the server."},
		{text: "JavaScript://a.example/", why: "is forbidden by the server."},
		{text: "data:///x", why: "is forbidden by the server."},
		{text: "file:///etc/passwd", why: "is forbidden by the server."},
		{text: `https://a.example\@evil.example/`, why: "must be a valid URI."},
		{text: "https://a.example/\tcb", why: "must be a valid URI."},
		{text: "https://a.example/ü", why: "must be a valid URI."},
		{text: "https://a.example/%zz", why: "must be a valid URI."},
		{text: "https://a.example/" + strings.Repeat("x", 2100), why: "is too long (maximum is 2048 characters)"},
		{text: "https://a.example/1\njavascript://x/", why: "is forbidden by the server."},
	}
	for _, test := range tests {
		got, err := parseRedirects(test.text)
		if test.want != nil {
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("%q: %v, %v", test.text, got, err)
			}
			continue
		}
		if !errs.Is(err, errs.KindInvalid) || !strings.Contains(err.Error(), "redirect_uri "+test.why) {
			t.Errorf("%q: %v, want %q", test.text, err, test.why)
		}
	}
}

func TestAllowedRedirect(t *testing.T) {
	t.Parallel()
	registered := []string{
		"https://app.example.com/auth/cb", "https://app.example.com/q?a=1", "http://127.0.0.1/cb", "http://[::1]:9000/cb?x=1", "http://localhost:7171/cb",
		"com.example.app:/cb",
	}
	tests := map[string]bool{
		"https://app.example.com/auth/cb": true,
		"https://app.example.com/q?a=1":   true,
		"http://localhost:7171/cb":        true,
		"com.example.app:/cb":             true,
		// Only the port of a loopback address may differ.
		"http://127.0.0.1/cb":              true,
		"http://127.0.0.1:1/cb":            true,
		"http://127.0.0.1:65535/cb":        true,
		"http://[::1]:1234/cb?x=1":         true,
		"http://[::1]/cb?x=1":              true,
		"http://127.0.0.2:1/cb":            false,
		"http://127.0.0.1:1/cb/":           false,
		"http://127.0.0.1:1/cb?x=1":        false,
		"http://127.0.0.1:1/cb#x":          false,
		"http://127.0.0.1:/cb":             false,
		"http://127.0.0.1:1x/cb":           false,
		"http://127.0.0.1:999999/cb":       false,
		"http://127.0.0.1:1@evil/cb":       false,
		"http://u@127.0.0.1:1/cb":          false,
		"http://127.0.0.1.evil.example/cb": false,
		"http://127.1:1/cb":                false,
		"https://127.0.0.1:1/cb":           false,
		"http://localhost:7172/cb":         false,
		"http://[::ffff:127.0.0.1]:1/cb":   false,
		"http://[::1%25lo]:1/cb?x=1":       false,
		"http://127.0.0.1:1\\@evil/cb":     false,

		"":                                                          false,
		"https://app.example.com/auth/cb/":                          false,
		"https://app.example.com/auth/cb?x=1":                       false,
		"https://app.example.com/auth/cb#":                          false,
		"https://app.example.com/auth/cb#x":                         false,
		"https://app.example.com/auth/cb%2f..":                      false,
		"https://app.example.com/auth/../auth/cb":                   false,
		"https://app.example.com/auth/cb/../../evil":                false,
		"https://app.example.com/auth/c":                            false,
		"https://app.example.com/auth/cbx":                          false,
		"https://app.example.com/AUTH/CB":                           false,
		"https://App.Example.com/auth/cb":                           false,
		"HTTPS://app.example.com/auth/cb":                           false,
		"http://app.example.com/auth/cb":                            false,
		"https://app.example.com:443/auth/cb":                       false,
		"https://app.example.com:8443/auth/cb":                      false,
		"https://app.example.com./auth/cb":                          false,
		"https://app.example.com@evil.example/auth/cb":              false,
		"https://user:pw@app.example.com/auth/cb":                   false,
		"https://evil.example/?https://app.example.com/auth/cb":     false,
		"https://app.example.com.evil.example/auth/cb":              false,
		"https://evilapp.example.com/auth/cb":                       false,
		"//app.example.com/auth/cb":                                 false,
		"/auth/cb":                                                  false,
		" https://app.example.com/auth/cb":                          false,
		"https://app.example.com/auth/cb\n":                         false,
		"https://app.example.com/auth/cb\nhttps://app.example.com/": false,
		"https://app.example.com/q?a=1&b=2":                         false,
		"https://app.example.com/q":                                 false,
		"com.example.app://cb":                                      false,
		"com.example.app:/cb/":                                      false,
		"javascript:alert(1)":                                       false,
	}
	for asked, want := range tests {
		if got := allowedRedirect(registered, asked); got != want {
			t.Errorf("%q: %v, want %v", asked, got, want)
		}
	}
}

// FuzzRedirect looks for a redirect URI that is accepted although a browser would
// parse it as another URI than the registered one.
func FuzzRedirect(f *testing.F) {
	for _, seed := range []string{
		"http://127.0.0.1:8080/cb", "http://[::1]:1/cb", "http://127.0.0.1:1@evil/cb", "http://127.0.0.1:1/cb?code=x", "https://a.example/cb", "http://127.0.0.1\\.evil/cb",
	} {
		f.Add(seed)
	}
	registered := []string{"http://127.0.0.1/cb", "http://[::1]:7/cb?x=1", "https://a.example/cb"}
	f.Fuzz(func(t *testing.T, asked string) {
		if !allowedRedirect(registered, asked) || slices.Contains(registered, asked) {
			return
		}
		u, err := url.Parse(asked)
		if err != nil {
			t.Fatalf("%q is let through and can not be read: %v", asked, err)
		}
		addr, err := netip.ParseAddr(u.Hostname())
		if err != nil || !addr.IsLoopback() || u.Scheme != "http" || u.User != nil || u.Fragment != "" || u.Path != "/cb" {
			t.Fatalf("%q is let through", asked)
		}
		if to, err := url.Parse(withQuery(asked, url.Values{"code": {"c&d"}})); err != nil || to.Query().Get("code") != "c&d" || to.Host != u.Host {
			t.Fatalf("%q leads to %v, %v", asked, to, err)
		}
	})
}

func TestWithQuery(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"https://a/cb":      "https://a/cb?code=a+b%26c",
		"https://a/cb?":     "https://a/cb?code=a+b%26c",
		"https://a/cb?x=1":  "https://a/cb?x=1&code=a+b%26c",
		"https://a/cb?x=1&": "https://a/cb?x=1&code=a+b%26c",
	} {
		if got := withQuery(uri, url.Values{"code": {"a b&c"}}); got != want {
			t.Errorf("%s: %s, want %s", uri, got, want)
		}
	}
}
