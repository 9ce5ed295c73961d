package oauth

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"svc/internal/secret"
)

// unreserved are the valid characters of a code verifier (RFC 7636).
const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"

// verifies reports whether a code verifier is valid and matches the challenge.
func verifies(challenge, verifier string) bool {
	if len(verifier) < 43 || len(verifier) > 128 || strings.Trim(verifier, unreserved) != "" {
		return false
	}
	return secret.Equal(Challenge(verifier), challenge)
}

// Challenge returns the S256 code challenge of a verifier.
func Challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// isChallenge reports whether a text is a valid S256 code challenge.
func isChallenge(text string) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && len(raw) == sha256.Size && len(text) == base64.RawURLEncoding.EncodedLen(sha256.Size)
}
