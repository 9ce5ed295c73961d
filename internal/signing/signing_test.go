package signing

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/secret"
)

func TestSign(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, testSign)
}

func testSign(t *testing.T, on *db.DB) {
	d := Deps{DB: on, Keys: newKeyring(t), Now: func() time.Time { return time.Unix(1_700_000_000, 0) }}
	s := New(d)
	token, err := s.Sign(t.Context(), map[string]any{"sub": "x", "n": 7})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := s.PublicKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != 1 || keys[0].Type != "RSA" || keys[0].Use != "sig" || keys[0].Algorithm != "RS256" {
		t.Fatalf("keys: %+v", keys)
	}
	head, claims := open(t, token, keys[0])
	if head["alg"] != "RS256" || head["kid"] != keys[0].ID || head["typ"] != "JWT" {
		t.Errorf("head: %v", head)
	}
	if claims["sub"] != "x" || claims["n"] != 7.0 {
		t.Errorf("claims: %v", claims)
	}

	// Another node, or a restarted one, uses the same key.
	other := New(d)
	again, err := other.Sign(t.Context(), map[string]any{"sub": "y"})
	if err != nil {
		t.Fatal(err)
	}
	if _, claims := open(t, again, keys[0]); claims["sub"] != "y" {
		t.Errorf("claims: %v", claims)
	}
	if keys, err = other.PublicKeys(t.Context()); err != nil || len(keys) != 1 {
		t.Errorf("keys of another node: %v, %v", keys, err)
	}
}

// TestKeyAtRest checks that the private key is sealed in the database, and that a
// server with another instance key cannot use it.
func TestKeyAtRest(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, testKeyAtRest)
}

func testKeyAtRest(t *testing.T, on *db.DB) {
	d := Deps{DB: on, Keys: newKeyring(t), Now: func() time.Time { return time.Unix(1_700_000_000, 0) }}
	s := New(d)
	if _, err := s.Sign(t.Context(), map[string]any{}); err != nil {
		t.Fatal(err)
	}
	sealed, err := db.All(t.Context(), d.DB, db.Value[string], `SELECT sealed FROM signing_keys`)
	if err != nil || len(sealed) != 1 {
		t.Fatalf("sealed: %v, %v", sealed, err)
	}
	if _, _, err := d.Keys.Reseal(sealed[0]); err != nil {
		t.Errorf("the key is not sealed: %v", err)
	}
	d.Keys = newKeyring(t)
	if _, err := New(d).Sign(t.Context(), map[string]any{}); err == nil {
		t.Error("a server with another instance key signs")
	}
}

func newKeyring(t *testing.T) *secret.Keyring {
	t.Helper()
	keys, err := secret.LoadKeyring(filepath.Join(t.TempDir(), "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// open verifies a token with a public key and returns its header and claims.
func open(t *testing.T, token string, k PublicKey) (head, claims map[string]any) {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("token of %d parts", len(parts))
	}
	public := &rsa.PublicKey{N: new(big.Int).SetBytes(decode(t, k.Modulus)), E: int(new(big.Int).SetBytes(decode(t, k.Exponent)).Int64())}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(public, crypto.SHA256, sum[:], decode(t, parts[2])); err != nil {
		t.Fatal(err)
	}
	for i, into := range []*map[string]any{&head, &claims} {
		if err := json.Unmarshal(decode(t, parts[i]), into); err != nil {
			t.Fatal(err)
		}
	}
	return head, claims
}

func decode(t *testing.T, text string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
