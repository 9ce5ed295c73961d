package markup

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestCandidate checks that split finds the same references as the expression alone.
func TestCandidate(t *testing.T) {
	t.Parallel()
	words := []string{" ", " ", "#1", "!2", "$3", "@a", "~b", `~"c d"`, "%e", "0123abc", "0123abcd0", "g/p", "x", ".", "(", "\n", "é", "~é", "@", "#", "12345", "-", ","}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		var text strings.Builder
		for range random.IntN(8) {
			text.WriteString(words[random.IntN(len(words))])
		}
		source := text.String()
		if at := references.FindStringIndex(source); at != nil && candidate(source, 0) < 0 {
			t.Fatalf("%q has a reference but no candidate", source)
		}
		var got strings.Builder
		found := false
		for _, p := range split(source) {
			got.WriteString(p.text)
			found = found || p.ref != nil
		}
		if want := references.MatchString(source); got.String() != source || found != want {
			t.Fatalf("%q becomes %q, found %v, want %v", source, got.String(), found, want)
		}
		if word := candidate(source, 0); word > 0 && references.MatchString(source[:word]) {
			t.Fatalf("%q has a reference before the candidate at %d", source, word)
		}
	}
}
