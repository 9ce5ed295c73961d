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
		"ssh://git@example.org:2222/a/b.git":          {URL: "ssh://example.org:2222/a/b.git", User: "git"},
		"git://example.org/a.git":                     {URL: "git://example.org/a.git"},
		"ssh://me:secret@[2001:db8::1]/~me/a/":        {URL: "ssh://[2001:db8::1]/~me/a", User: "me", Password: "secret"},
		"git@example.org:a/b.git":                     {URL: "ssh://example.org/a/b.git", User: "git"},
		"me@[2001:db8::1]:/srv/a":                     {URL: "ssh://[2001:db8::1]/srv/a", User: "me"},
		"git@example.org:~me/a":                       {URL: "ssh://example.org/~me/a", User: "git"},
	} {
		if got, err := ParseAddress(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "-", "--upload-pack=x", "file:///etc", "/etc", "../x", "ext::sh -c id", "ftp://example.org/a",
		"git@-oProxyCommand=x:a", "git@example.org:", "git@example.org:/", "-x@example.org:a", "ssh://-oProxyCommand=x/a", "ssh://example.org", "git://me@example.org/a", "ssh://u%0a@example.org/a",
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

func TestQuote(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"/a/b.git": "'/a/b.git'", "/a'; id #": `'/a'\''; id #'`, "/a!b": `'/a'\!'b'`} {
		if got := quote(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestParseHostKey parses keys in the formats that users copy.
func TestParseHostKey(t *testing.T) {
	t.Parallel()
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
	for _, text := range []string{key, key + " comment", "example.org " + key, "[example.org]:2222,10.0.0.1 " + key, "  " + key + "\n"} {
		if got, ok := ParseHostKey(text); !ok || got != key {
			t.Errorf("%q: %q, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "x", "ssh-ed25519 AAAA", "@revoked example.org " + key, "@cert-authority example.org " + key, key + "\n" + key} {
		if got, ok := ParseHostKey(text); ok {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	f.Add("https://me:p%40ss@example.org:80/a.git")
	f.Add("http://[::1]/a%2fb")
	f.Add("git@example.org:a/b.git")
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
