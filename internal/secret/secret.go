// Package secret protects secrets in the database: tokens are stored as digests,
// passwords as slow hashes, and other values encrypted with the instance key,
// which can be rotated.
package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
)

// DigestLen is the length of every Digest.
const DigestLen = 2 * sha256.Size

// Token makes a new token: the prefix and 26 letters and digits (130 random
// bits) that need no escaping in a URL, a header or a shell.
func Token(prefix string) string { return prefix + rand.Text() }

// Digest returns the form in which a token is stored and looked up: its SHA-256
// in lower-case hex. Tokens are random and long, so no salt and no slow hash is
// needed, and a lookup is one read of an index.
func Digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Equal compares two secrets of the same length in a time that does not
// depend on where they differ. Compare digests rather than tokens where the
// length should stay hidden too.
func Equal(a, b string) bool {
	return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}
