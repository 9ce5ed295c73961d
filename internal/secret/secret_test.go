package secret

import (
	"regexp"
	"strings"
	"testing"
)

func TestToken(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^svcpat-[A-Za-z0-9_-]{20,}$`)
	seen := map[string]bool{}
	for range 1000 {
		token := Token("svcpat-")
		if !form.MatchString(token) {
			t.Fatalf("token %q has another form", token)
		}
		// At least 128 bits, with 5 bits per character.
		if n := len(strings.TrimPrefix(token, "svcpat-")); n*5 < 128 {
			t.Fatalf("token has %d letters, too few for 128 bits", n)
		}
		if seen[token] {
			t.Fatalf("token %q came twice", token)
		}
		seen[token] = true
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	// The well-known SHA-256 of "abc".
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if got := Digest("abc"); got != want {
		t.Errorf("Digest(abc) = %s, want %s", got, want)
	}
}

func TestEqual(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"", "", true},
		{"abc", "abc", true},
		{"abc", "abd", false},
		{"abc", "abcd", false},
		{"abc", "", false},
	} {
		if got := Equal(tt.a, tt.b); got != tt.want {
			t.Errorf("Equal(%q, %q) = %v", tt.a, tt.b, got)
		}
	}
}
