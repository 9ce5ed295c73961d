// Package pgp reads OpenPGP public keys and verifies detached signatures with
// them.
package pgp

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

const (
	// MaxKey is the maximum size of an armored key.
	MaxKey = 128 << 10
	// maxSignature is the maximum size of an armored signature. Most are smaller
	// than 2 KiB.
	maxSignature = 64 << 10
	// maxParts is the maximum number of subkeys, and of user IDs, of a key.
	maxParts = 100
)

// The errors.
var (
	ErrKey       = errors.New("not an OpenPGP public key")
	ErrSignature = errors.New("not a valid OpenPGP signature")
)

// Key is an OpenPGP public key with its subkeys.
type Key struct {
	Fingerprint string // of the primary key, in uppercase hex
	ID          string // key ID of the primary key: 16 hex digits
	Parts       []Part // the primary key and the subkeys
	Users       []UserID
	entity      *openpgp.Entity
}

// Part is the primary key or a subkey.
type Part struct {
	Fingerprint string
	ID          string
}

// UserID is a name and email address of a key. Its self-signature is valid and not
// revoked.
type UserID struct{ Name, Email string }

// ParseKey parses one armored public key. ErrKey for anything else, including a
// private key.
func ParseKey(text string) (*Key, error) {
	if len(text) > MaxKey {
		return nil, fmt.Errorf("%d bytes: %w", len(text), ErrKey)
	}
	list, err := openpgp.ReadArmoredKeyRing(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	if len(list) != 1 {
		return nil, fmt.Errorf("%d keys: %w", len(list), ErrKey)
	}
	e := list[0]
	if e.PrivateKey != nil || len(e.Subkeys) > maxParts || len(e.Identities) > maxParts {
		return nil, ErrKey
	}
	k := &Key{entity: e}
	first := partOf(e.PrimaryKey)
	k.Fingerprint, k.ID, k.Parts = first.Fingerprint, first.ID, []Part{first}
	for _, sub := range e.Subkeys {
		if sub.PrivateKey != nil {
			return nil, ErrKey
		}
		k.Parts = append(k.Parts, partOf(sub.PublicKey))
	}
	for _, id := range e.Identities {
		if id.UserId == nil || id.SelfSignature == nil || len(id.Revocations) > 0 {
			continue
		}
		k.Users = append(k.Users, UserID{Name: id.UserId.Name, Email: id.UserId.Email})
	}
	slices.SortFunc(k.Users, func(a, b UserID) int { return strings.Compare(a.Email+a.Name, b.Email+b.Name) })
	return k, nil
}

func partOf(k *packet.PublicKey) Part {
	return Part{Fingerprint: strings.ToUpper(hex.EncodeToString(k.Fingerprint)), ID: strings.ToUpper(k.KeyIdString())}
}

// Revoked reports whether the key was revoked by its owner.
func (k *Key) Revoked() bool { return len(k.entity.Revocations) > 0 }

// Signature is a detached signature.
type Signature struct {
	Fingerprint string // of the signing key, if the signature contains it
	ID          string // key ID of the signing key
	created     time.Time
	text        string
}

// ParseSignature parses an armored detached signature. ErrSignature if the text is
// not exactly one.
func ParseSignature(text string) (*Signature, error) {
	if len(text) > maxSignature {
		return nil, ErrSignature
	}
	block, err := armor.Decode(strings.NewReader(text))
	if err != nil || block.Type != openpgp.SignatureType {
		return nil, ErrSignature
	}
	in := packet.NewReader(block.Body)
	first, err := in.Next()
	if err != nil {
		return nil, ErrSignature
	}
	sig, ok := first.(*packet.Signature)
	if !ok {
		return nil, ErrSignature
	}
	if _, err := in.Next(); err == nil {
		return nil, ErrSignature // several signatures
	}
	s := &Signature{text: text, created: sig.CreationTime}
	if len(sig.IssuerFingerprint) > 0 {
		s.Fingerprint = strings.ToUpper(hex.EncodeToString(sig.IssuerFingerprint))
	}
	if sig.IssuerKeyId != nil {
		s.ID = fmt.Sprintf("%016X", *sig.IssuerKeyId)
	}
	if s.ID == "" && s.Fingerprint == "" {
		return nil, ErrSignature
	}
	return s, nil
}

// Verify checks that the key signed the text. The key must have been valid when the
// signature was created: a signature remains valid after its key has expired.
func (k *Key) Verify(s *Signature, text []byte) error {
	at := func() time.Time { return s.created }
	_, err := openpgp.CheckArmoredDetachedSignature(openpgp.EntityList{k.entity}, bytes.NewReader(text), strings.NewReader(s.text), &packet.Config{Time: at})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSignature, err)
	}
	return nil
}
