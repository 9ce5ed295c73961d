package redirect

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	t.Parallel()
	const file = `
# Moves
/old.html /new.html
/found /elsewhere 302   # for now
/news/:year/:month /blog-:year-:month.html
/docs/* /manual/:splat 301
/away/* https://example.org/from/:splat 302
/rest/* /:splat
http://blog.example.com/* https://www.example.com/blog/:splat
/app/* /index.html 200
/self /self
/any/:x/* /y/:x?z=:splat
`
	rules, faults := Parse([]byte(file))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	for _, c := range []struct{ at, want string }{
		{"/old.html", "301 /new.html"},
		{"/old.html/", "301 /new.html"},
		{"/found", "302 /elsewhere"},
		{"/news/2024/05", "301 /blog-2024-05.html"},
		{"/news/2024", "none"},
		{"/news/2024/05/06", "none"},
		{"/docs", "301 /manual/"},
		{"/docs/a/b c", "301 /manual/a/b%20c"},
		{"/docsx", "none"},
		{"/away/x?y", "302 https://example.org/from/x%3Fy"},
		{"/rest//evil.example/x", "301 /evil.example/x"},
		{"/rest/%0d%0a", "301 /%250d%250a"},
		{"/app/deep/link", "200 /index.html"},
		{"/self", "none"},
		{"/any/1/2/3", "301 /y/1?z=2%2F3"},
		{"/any/1/2&admin=1", "301 /y/1?z=2%26admin%3D1"},
		{"http://blog.example.com/a", "301 https://www.example.com/blog/a"},
		{"https://blog.example.com/a", "none"},
		{"/nothing", "none"},
	} {
		scheme, host, path := "https", "site.example.com", c.at
		if u, err := url.Parse(c.at); err == nil && u.Host != "" && u.Scheme != "" {
			scheme, host, path = u.Scheme, u.Host, u.Path
		}
		got := "none"
		if to, ok := rules.Find(scheme, host, path); ok {
			got = fmt.Sprint(to.Status, " ", to.To)
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.at, got, c.want)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"/a":                                    "an address and one to go to",
		"/a /b 404":                             "200, 301 or 302",
		"/a /b 301!":                            "200, 301 or 302",
		"/a id=:id /b 301":                      "conditions",
		"a /b":                                  "must begin with /",
		"/a b":                                  "must begin with /",
		"/a //evil.example":                     "no plain address",
		`/a /\evil.example`:                     "no plain address",
		"/a /x/../../y":                         "no plain address",
		"/a/../b /c":                            "no empty segments",
		"/a//b /c":                              "no empty segments",
		"/a*b /c":                               "alone",
		"/*/b /c":                               "alone",
		"/* https://:splat/x":                   "",
		"/* https://x.example/ 200":             "only a file of the site",
		"/* javascript:alert(1)":                "must begin with /",
		"/* https://u@x.example/":               "must begin with /",
		strings.Repeat("/a", 26) + " /b":        "at most 25 segments",
		"/" + strings.Repeat("a", 3000):         "an address and one to go to",
		"/" + strings.Repeat("a", 3000) + " /b": "at most 2048 bytes",
	} {
		rules, faults := Parse([]byte(line + "\n/good /one\n"))
		if len(faults) != 1 || !strings.Contains(faults[0].Text, want) || len(rules) != 1 {
			t.Errorf("%.60s: got %v and %d rules, want a fault with %q", line, faults, len(rules), want)
		}
	}
	if rules, faults := Parse([]byte(strings.Repeat("/a /b\n", MaxRules+5))); len(rules) != MaxRules || len(faults) != 1 {
		t.Errorf("too many rules: %d, %v", len(rules), faults)
	}
	if rules, faults := Parse(make([]byte, MaxSize+1)); len(rules) != 0 || len(faults) != 1 {
		t.Errorf("too large: %d, %v", len(rules), faults)
	}
}

// FuzzParse checks that a target never has a host that is not in the file, for any
// requested path.
func FuzzParse(f *testing.F) {
	f.Add("/a/* /b/:splat 302", "/a//evil.example/x")
	f.Add("/* https://example.org/:splat", "/@evil.example")
	f.Add("/:a/:b /:a:b", "/x/y")
	f.Add("/* /:splat", "/\\evil.example")
	f.Fuzz(func(t *testing.T, file, path string) {
		rules, _ := Parse([]byte(file))
		to, ok := rules.Find("https", "site.example", path)
		if !ok {
			return
		}
		u, err := url.Parse(to.To)
		if strings.HasPrefix(to.To, "/") {
			if strings.HasPrefix(to.To, "//") || strings.HasPrefix(to.To, `/\`) || err == nil && u.Host != "" {
				t.Fatalf("%q and %q lead to %q", file, path, to.To)
			}
			return
		}
		if err != nil || u.Host == "" || !strings.Contains(strings.ToLower(file), strings.ToLower(u.Host)) {
			t.Fatalf("%q and %q lead to %q: %v", file, path, to.To, err)
		}
	})
}
