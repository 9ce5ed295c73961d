package lfs

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"svc/internal/errs"
	"svc/internal/project"
)

// tokenLife is the lifetime of tokens of git-lfs-authenticate and of the URLs in a batch
// response.
const tokenLife = 30 * time.Minute

// ExpiresIn is the lifetime of tokens and URLs in seconds, for clients.
const ExpiresIn = int64(tokenLife / time.Second)

// tokenPrefix distinguishes the tokens of this package from other credentials.
const tokenPrefix = "lfs-"

// Grant is the content of a token. One of Key and UserID is set. Each request checks again
// that the key or user still has access.
type Grant struct {
	Key       string    `json:"k,omitempty"` // SHA-256 fingerprint of an SSH key
	UserID    int64     `json:"u,omitempty"` // of a user who signed in with a password
	ProjectID int64     `json:"p"`
	Operation Operation `json:"o"`
	Expires   int64     `json:"e"` // seconds since 1970
}

// IsToken reports whether a password has the form of a token.
func IsToken(password string) bool { return strings.HasPrefix(password, tokenPrefix) }

// NewToken returns a token for an operation on the objects of a project. Tokens are signed
// with the instance key and not stored.
func (s *Service) NewToken(g Grant, p *project.Project, op Operation) string {
	g.ProjectID, g.Operation, g.Expires = p.ID, op, s.Now().Add(tokenLife).Unix()
	text, _ := json.Marshal(g) // never fails for this type
	body := base64.RawURLEncoding.EncodeToString(text)
	return tokenPrefix + body + "." + base64.RawURLEncoding.EncodeToString(s.sign(body))
}

// OpenToken returns the content of a token; ok is false if its signature is invalid.
// Unauthorized if it has expired.
func (s *Service) OpenToken(token string) (g Grant, ok bool, err error) {
	body, signature, _ := strings.Cut(strings.TrimPrefix(token, tokenPrefix), ".")
	given, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || !hmac.Equal(given, s.sign(body)) {
		return Grant{}, false, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err == nil {
		err = json.Unmarshal(text, &g)
	}
	if err != nil {
		return Grant{}, false, fmt.Errorf("read LFS token: %w", err)
	}
	if s.Now().Unix() >= g.Expires {
		return Grant{}, false, errs.Unauthorized("The token has expired.")
	}
	return g, true, nil
}

// Allows reports whether the grant is for an operation on a project. A grant for uploads
// includes downloads.
func (g Grant) Allows(p *project.Project, op Operation) bool {
	return g.ProjectID == p.ID && (g.Operation == op || g.Operation == Upload)
}

func (s *Service) sign(body string) []byte {
	mac := hmac.New(sha256.New, s.Keys.Derive("lfs token"))
	mac.Write([]byte(body))
	return mac.Sum(nil)
}
