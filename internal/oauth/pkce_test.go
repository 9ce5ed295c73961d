package oauth

import (
	"strings"
	"testing"
)

// The example of RFC 7636, appendix B.
const (
	exampleVerifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	exampleChallenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

func TestVerifies(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, challenge, verifier string
		want                      bool
	}{
		{"the example of the RFC", exampleChallenge, exampleVerifier, true},
		{"another verifier", exampleChallenge, strings.Repeat("a", 43), false},
		{"none", exampleChallenge, "", false},
		{"the challenge itself", exampleChallenge, exampleChallenge, false},
		{"no challenge", "", exampleVerifier, false},
		{"plain", exampleVerifier, exampleVerifier, false},
	}
	for _, test := range tests {
		if got := verifies(test.challenge, test.verifier); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
	for verifier, want := range map[string]bool{
		strings.Repeat("a", 42): false, strings.Repeat("a", 43): true, strings.Repeat("~", 128): true, strings.Repeat("a", 129): false,
		strings.Repeat("a", 42) + "+": false, strings.Repeat("a", 21) + " " + strings.Repeat("a", 22): false, strings.Repeat("ü", 30): false,
	} {
		if got := verifies(Challenge(verifier), verifier); got != want {
			t.Errorf("%q: %v, want %v", verifier, got, want)
		}
	}
}

func TestIsChallenge(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		exampleChallenge: true, "": false, exampleChallenge[:42]: false, exampleChallenge + "=": false, exampleChallenge + "A": false,
		strings.Replace(exampleChallenge, "-", "+", 1): false, exampleChallenge[:42] + "N": false, exampleChallenge[:42] + "\n": false,
	} {
		if got := isChallenge(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// FuzzVerifier checks that only valid verifiers that match the challenge are
// accepted.
func FuzzVerifier(f *testing.F) {
	f.Add(exampleChallenge, exampleVerifier)
	f.Add("", "")
	f.Add(exampleVerifier, exampleVerifier)
	f.Fuzz(func(t *testing.T, challenge, verifier string) {
		if !verifies(challenge, verifier) {
			return
		}
		if challenge != Challenge(verifier) || !isChallenge(challenge) {
			t.Fatalf("%q is taken for %q", verifier, challenge)
		}
		if len(verifier) < 43 || len(verifier) > 128 || strings.ContainsFunc(verifier, func(r rune) bool { return !strings.ContainsRune(unreserved, r) }) {
			t.Fatalf("%q is no verifier", verifier)
		}
	})
}
