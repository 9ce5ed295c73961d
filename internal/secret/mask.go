package secret

import (
	"crypto/rand"
	"encoding/base64"
)

// Mask returns a token in a form that differs each time. The length of a compressed
// page reveals whether it repeats a text that an attacker put into it (BREACH); a
// masked token is never repeated.
func Mask(token string) string {
	n := len(token)
	both := make([]byte, 2*n)
	_, _ = rand.Read(both[:n]) // never fails
	for i := range n {
		both[n+i] = both[i] ^ token[i]
	}
	return base64.RawURLEncoding.EncodeToString(both)
}

// EqualMasked is like Equal, for a given token that may be masked.
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
