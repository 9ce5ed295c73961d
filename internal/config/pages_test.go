package config

import (
	"strings"
	"testing"
)

// TestPagesHostSharesNoCookies checks which hosts of sites give a warning, and that
// the default is never on the domain of the instance.
func TestPagesHostSharesNoCookies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ external, pages, want string }{
		{"https://forge.example.com", "https://pages.example.net", ""},
		{"https://forge.example.com", "https://pages.forge.example.com", "share a domain"},
		{"https://forge.example.com", "https://pages.example.com", "share a domain"},
		{"https://forge.example.com", "https://example.com", "share a domain"},
		{"https://example.com", "https://example.com", "share a domain"},
		{"https://Forge.Example.co.uk.", "https://pages.example.co.uk", "share a domain"},
		{"https://forge.co.uk", "https://pages.co.uk", ""},
		{"https://forge.github.io", "https://github.io", "share a domain"},
		{"http://127.0.0.1:8080", "", ""},
		{"http://localhost:8080", "", ""},
		{"http://localhost:8080", "http://pages.localhost:8090", ""},
		{"http://[::1]:8080", "http://pages.test", ""},
		{"", "", ""},
		{"https://forge.example.com", "", "pages_url is not set"},
	} {
		got := Config{ExternalURL: c.external, PagesURL: c.pages, PagesAddr: "127.0.0.1:8090"}.PagesWarning()
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s with sites at %s: %q, want %q", c.external, c.pages, got, c.want)
		}
		if off := (Config{ExternalURL: c.external, PagesURL: c.pages}).PagesWarning(); off != "" {
			t.Errorf("without sites: %q", off)
		}
	}
	for addr, want := range map[string]string{"0.0.0.0:80": "http://pages.localhost", "127.0.0.1:8090": "http://pages.localhost:8090", "": "http://pages.localhost"} {
		if got := DefaultPagesURL(addr); got != want {
			t.Errorf("DefaultPagesURL(%q) = %q, want %q", addr, got, want)
		}
	}
}
