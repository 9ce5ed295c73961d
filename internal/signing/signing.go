// Package signing manages the keys with which the instance signs JSON Web Tokens
// (RS256), and provides the public keys (JWKS) to verify them.
package signing

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"sync"
	"time"

	"svc/internal/db"
	"svc/internal/secret"
)

// Algorithm is the signature algorithm of the tokens (JWS "alg").
const Algorithm = "RS256"

// keyBits is the size of the keys in bits.
const keyBits = 2048

// Deps are the dependencies of the service.
type Deps struct {
	DB   *db.DB
	Keys *secret.Keyring
	Now  func() time.Time
}

// Service signs tokens. The key is created when it is first needed, and stored
// sealed in the database, so that all nodes use it.
type Service struct {
	Deps

	mu  sync.Mutex
	own *key // the newest key that this node has read
}

// New returns the service.
func New(d Deps) *Service { return &Service{Deps: d} }

// PublicKey is a public key to verify signatures, as a JSON Web Key.
type PublicKey struct {
	Type      string `json:"kty"`
	ID        string `json:"kid"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
	Modulus   string `json:"n"`
	Exponent  string `json:"e"`
}

// PublicKeys returns the public keys of the instance, newest first.
func (s *Service) PublicKeys(ctx context.Context) ([]PublicKey, error) {
	keys, err := s.all(ctx)
	if err != nil {
		return nil, err
	}
	var out []PublicKey
	for _, k := range keys {
		out = append(out, toPublic(&k.private.PublicKey, k.id))
	}
	return out, nil
}

// Sign returns a signed token with claims, which must be encoded as a JSON object.
func (s *Service) Sign(ctx context.Context, claims any) (string, error) {
	k, err := s.newest(ctx)
	if err != nil {
		return "", err
	}
	head, err := json.Marshal(map[string]string{"alg": Algorithm, "kid": k.id, "typ": "JWT"})
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	body, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	text := encode(head) + "." + encode(body)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, k.private, crypto.SHA256, sum[:])
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return text + "." + encode(signature), nil
}

// key is a private key with its key ID.
type key struct {
	id      string
	private *rsa.PrivateKey
}

// newest returns the key for signing, and creates it if there is none.
func (s *Service) newest(ctx context.Context) (*key, error) {
	s.mu.Lock()
	k := s.own
	s.mu.Unlock()
	if k != nil {
		return k, nil
	}
	keys, err := s.all(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own = keys[0]
	return s.own, nil
}

// all returns the keys, newest first, and creates the first one if there is none. If
// two nodes do so at the same time, there are two keys, and both are valid.
func (s *Service) all(ctx context.Context) ([]*key, error) {
	keys, err := s.read(ctx)
	if err != nil || len(keys) > 0 {
		return keys, err
	}
	if err := s.add(ctx); err != nil {
		return nil, fmt.Errorf("make signing key: %w", err)
	}
	return s.read(ctx)
}

func (s *Service) add(ctx context.Context) error {
	private, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	id, err := thumbprint(&private.PublicKey)
	if err != nil {
		return err
	}
	sealed := s.Keys.Seal(raw, place(id))
	return s.DB.Tx(ctx, func(tx *db.Tx) error { return insertKey(ctx, tx, id, sealed, s.Now()) })
}

func place(id string) string { return "signing_keys/sealed/" + id }

// thumbprint returns the JWK thumbprint of a key: RFC 7638.
func thumbprint(k *rsa.PublicKey) (string, error) {
	p := toPublic(k, "")
	text, err := json.Marshal(map[string]string{"e": p.Exponent, "kty": p.Type, "n": p.Modulus}) // members in lexicographic order
	sum := sha256.Sum256(text)
	return encode(sum[:]), err
}

func toPublic(k *rsa.PublicKey, id string) PublicKey {
	return PublicKey{
		Type: "RSA", ID: id, Use: "sig", Algorithm: Algorithm,
		Modulus: encode(k.N.Bytes()), Exponent: encode(big.NewInt(int64(k.E)).Bytes()),
	}
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
