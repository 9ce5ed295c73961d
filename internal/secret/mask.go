package secret

import (
	"crypto/rand"
	"encoding/base64"
)

// Mask returns a token in a form that is another one each time. A page that is
// compressed tells by its length whether it repeats something that someone put
// into it; with a mask there is nothing to be repeated.
func Mask(token string) string {
	n := len(token)
	both := make([]byte, 2*n)
	_, _ = rand.Read(both[:n]) // never fails
	for i := range n {
		both[n+i] = both[i] ^ token[i]
	}
	return base64.RawURLEncoding.EncodeToString(both)
}

// EqualMasked is Equal for a token that came back as it is, or masked.
func EqualMasked(given, token string) bool {
	both, err := base64.RawURLEncoding.DecodeString(given)
	if n := len(token); err == nil && len(both) == 2*n {
		for i := range n {
			both[n+i] ^= both[i]
		}
		given = string(both[n:])
	}
	return Equal(given, token)
}
