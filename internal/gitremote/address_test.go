package gitremote

import (
	"strings"
	"testing"
)

func TestParseAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Address{
		"https://example.org/a.git":                   {URL: "https://example.org/a.git"},
		" http://example.org:8080/a/b/ ":              {URL: "http://example.org:8080/a/b"},
		"https://me:p%40ss@example.org/a":             {URL: "https://example.org/a", User: "me", Password: "p@ss"},
		"https://token@[2001:db8::1]:443/a%20b.git":   {URL: "https://[2001:db8::1]:443/a%20b.git", User: "token"},
		"https://:secret@example.org/~user/dir/x.git": {URL: "https://example.org/~user/dir/x.git", Password: "secret"},
	} {
		if got, err := ParseAddress(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "-", "--upload-pack=x", "file:///etc", "/etc", "../x", "ext::sh -c id", "git://example.org/a", "ssh://git@example.org/a", "git@example.org:a",
		"https://", "https:///a", "https://example.org", "https://example.org/", "https:example.org/a", "https://-x/a", "https://example.org/a\nb",
		"https://example.org/a%0ab", "https://u%0a:p@example.org/a", "https://u:p%0d@example.org/a", "https://example.org/a?x=1", "https://example.org/a#b",
		"https://example.org/a?", "https://example.org/a#", "https://exam ple.org/a", "https://example.org/%zz", "HTTPS//x", "https://example.org:port/a",
		"https://example.org/" + strings.Repeat("a", maxURL), "https://" + strings.Repeat("a", maxCredential+1) + "@example.org/a",
	} {
		if got, err := ParseAddress(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		} else if strings.Contains(err.Error(), "example.org") {
			t.Errorf("%q: the error repeats it: %v", text, err)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	f.Add("https://me:p%40ss@example.org:80/a.git")
	f.Add("http://[::1]/a%2fb")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAddress(text)
		if err != nil {
			return
		}
		again, err := ParseAddress(a.URL)
		if err != nil || again.URL != a.URL || again.User != "" || again.Password != "" {
			t.Fatalf("%q became %q, which became %+v, %v", text, a.URL, again, err)
		}
	})
}
