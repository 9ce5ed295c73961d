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

// Token returns a new token: the prefix and 26 random letters and digits (130 random
// bits), which need no escaping in a URL, a header or a shell.
func Token(prefix string) string { return prefix + rand.Text() }

// Digest returns the digest by which a token is stored and looked up: its SHA-256 in
// lowercase hexadecimal. Tokens are long and random, so they need neither a salt nor
// a slow hash.
func Digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Equal compares two secrets of the same length in constant time. Compare digests if
// the length is secret too.
func Equal(a, b string) bool {
	return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}
