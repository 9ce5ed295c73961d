package user

import (
	"bytes"
	"context"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
)

// Key is a public SSH key of a user.
type Key struct {
	ID          int64
	UserID      int64
	Title       string
	Key         string // line for authorized_keys, with its comment
	Fingerprint string // MD5 in hex with colons
	SHA256      string // "SHA256:" and base64
	Usage       KeyUsage
	CreatedAt   time.Time
	ExpiresAt   *time.Time
	LastUsedAt  *time.Time
}

// KeyUsage is the usage type of a key.
type KeyUsage string

// The usages.
const (
	AuthKey           KeyUsage = "auth"
	SigningKey        KeyUsage = "signing"
	AuthAndSigningKey KeyUsage = "auth_and_signing"
)

// NewKey has the fields of a new key.
type NewKey struct {
	Title     string
	Key       string
	Usage     KeyUsage // empty for both
	ExpiresAt *time.Time
}

// OwnKeys lists the keys of the actor, oldest first.
func (s *Service) OwnKeys(ctx context.Context, by actor.Actor, p db.Paging) (db.Page[Key], error) {
	if err := by.RequireUser(); err != nil {
		return db.Page[Key]{}, err
	}
	return listKeys(ctx, s.DB, by.ID, p)
}

// OwnKey returns a key of the actor. NotFound.
func (s *Service) OwnKey(ctx context.Context, by actor.Actor, id int64) (*Key, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	return findUserKey(ctx, s.DB, by.ID, id)
}

// KeysOf lists the keys of a user, oldest first. They are public. NotFound.
func (s *Service) KeysOf(ctx context.Context, by actor.Actor, of Ref, p db.Paging) (db.Page[Key], error) {
	u, err := s.Find(ctx, by, of)
	if err != nil {
		return db.Page[Key]{}, err
	}
	page, err := listKeys(ctx, s.DB, u.ID, p)
	for i := range page.Items {
		page.Items[i].hideComment(by)
	}
	return page, err
}

// KeyOf returns a key of a user. No permissions are required. NotFound.
func (s *Service) KeyOf(ctx context.Context, by actor.Actor, of Ref, id int64) (*Key, error) {
	u, err := s.Find(ctx, by, of)
	if err != nil {
		return nil, err
	}
	k, err := findUserKey(ctx, s.DB, u.ID, id)
	if err != nil {
		return nil, err
	}
	k.hideComment(by)
	return k, nil
}

// hideComment removes the comment unless the actor is the owner or an
// administrator: it is often an email address or a host name.
func (k *Key) hideComment(by actor.Actor) {
	if by.Admin || by.Is(k.UserID) {
		return
	}
	if parts := strings.SplitN(k.Key, " ", 3); len(parts) == 3 {
		k.Key = parts[0] + " " + parts[1]
	}
}

// KeyWithUser returns a key and its owner. Requires an administrator. NotFound.
func (s *Service) KeyWithUser(ctx context.Context, by actor.Actor, id int64) (*Key, *User, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, nil, err
	}
	k, err := findKeyByID(ctx, s.DB, id)
	if err != nil {
		return nil, nil, err
	}
	u, err := s.profile(ctx, by, k.UserID)
	return k, u, err
}

var (
	md5Pattern    = regexp.MustCompile(`^([0-9a-f]{2}:){15}[0-9a-f]{2}$`)
	sha256Pattern = regexp.MustCompile(`^SHA256:[A-Za-z0-9+/]{43}$`)
)

// KeyByFingerprint returns the key with an MD5 or SHA-256 fingerprint, and its
// owner. Requires an administrator. Invalid; NotFound.
func (s *Service) KeyByFingerprint(ctx context.Context, by actor.Actor, fingerprint string) (*Key, *User, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, nil, err
	}
	md5, sha256, err := ParseFingerprint(fingerprint)
	if err != nil {
		return nil, nil, err
	}
	find, arg := findKeyBySHA256, sha256
	if md5 != "" {
		find, arg = findKeyByMD5, md5
	}
	k, err := find(ctx, s.DB, arg)
	if err != nil {
		return nil, nil, err
	}
	u, err := s.profile(ctx, by, k.UserID)
	return k, u, err
}

// ParseFingerprint parses an MD5 or SHA-256 fingerprint. The other result is
// empty. Invalid.
func ParseFingerprint(text string) (md5, sha256 string, err error) {
	if md5 := strings.ToLower(strings.TrimPrefix(text, "MD5:")); md5Pattern.MatchString(md5) {
		return md5, "", nil
	}
	if !sha256Pattern.MatchString(text) {
		return "", "", errs.Invalid("Failed to return the key")
	}
	return "", text, nil
}

// AddOwnKey adds a key to the actor's account. Invalid, also if the key is in use;
// Forbidden for bot users.
func (s *Service) AddOwnKey(ctx context.Context, by actor.Actor, n NewKey) (*Key, error) {
	if err := by.RequireHuman("add SSH keys"); err != nil {
		return nil, err
	}
	return s.addKey(ctx, by, by.ID, n)
}

// AddKey adds a key to a user. Requires an administrator. NotFound; otherwise like
// AddOwnKey.
func (s *Service) AddKey(ctx context.Context, by actor.Actor, userID int64, n NewKey) (*Key, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	return s.addKey(ctx, by, userID, n)
}

// DeleteOwnKey deletes a key of the actor. NotFound.
func (s *Service) DeleteOwnKey(ctx context.Context, by actor.Actor, id int64) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	return s.deleteKey(ctx, by, by.ID, id)
}

// DeleteKey deletes a key of a user. Requires an administrator. NotFound.
func (s *Service) DeleteKey(ctx context.Context, by actor.Actor, userID, id int64) error {
	if err := by.RequireAdmin(); err != nil {
		return err
	}
	return s.deleteKey(ctx, by, userID, id)
}

func (s *Service) addKey(ctx context.Context, by actor.Actor, userID int64, n NewKey) (*Key, error) {
	k, err := n.Check(s.Now())
	if err != nil {
		return nil, err
	}
	k.UserID = userID
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		u, err := findUser(ctx, tx, userID)
		if err != nil {
			return err
		}
		if u.Bot() {
			return errs.Forbidden("Bot users cannot have SSH keys.")
		}
		if err := requireNoDeployKey(ctx, tx, k.SHA256); err != nil {
			return err
		}
		err = insertKey(ctx, tx, k)
		if db.IsUnique(err, "ssh_keys_sha256") {
			return keyTaken().Because(err)
		}
		if err != nil {
			return err
		}
		return s.recordOf(ctx, tx, by, u, "add_ssh_key", k.target(), audit.Details{Add: "ssh_key", Message: "Added SSH key"})
	})
	if err != nil {
		return nil, fmt.Errorf("add key of user %d: %w", userID, err)
	}
	return k, nil
}

func keyTaken() *errs.Error { return errs.InvalidField("fingerprint_sha256", "has already been taken") }

func (s *Service) deleteKey(ctx context.Context, by actor.Actor, userID, id int64) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		u, err := findUser(ctx, tx, userID)
		if err != nil {
			return err
		}
		k, err := findUserKey(ctx, tx, userID, id)
		if err != nil {
			return err
		}
		// Recorded before the deletion, because subscribers read the key.
		if err := s.recordOf(ctx, tx, by, u, "remove_ssh_key", k.target(), audit.Details{Remove: "ssh_key", Message: "Removed SSH key"}); err != nil {
			return err
		}
		return db.NotFound(deleteKey(ctx, tx, id), "Key")
	})
	if err != nil {
		return fmt.Errorf("delete key %d: %w", id, err)
	}
	return nil
}

func (k *Key) target() audit.Target {
	return audit.Target{Type: "Key", ID: k.ID, Details: k.Title}
}

// Check validates a new key and returns it. It is also used by features with their
// own keys. Invalid.
func (n NewKey) Check(now time.Time) (*Key, error) {
	wrong := errs.Fields{}
	switch {
	case strings.TrimSpace(n.Title) == "":
		wrong.Set("title", "can't be blank")
	case utf8.RuneCountInString(n.Title) > 255:
		wrong.Set("title", "is too long (maximum is 255 characters)")
	}
	switch n.Usage {
	case "":
		n.Usage = AuthAndSigningKey
	case AuthKey, SigningKey, AuthAndSigningKey:
	default:
		wrong.Set("usage_type", "is not included in the list")
	}
	if n.ExpiresAt != nil && !n.ExpiresAt.After(now) {
		wrong.Set("expires_at", "can't be in the past")
	}
	line, public, problem := parseKey(n.Key)
	if problem != "" {
		wrong.Set("key", problem)
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	return &Key{
		Title: n.Title, Key: line, Fingerprint: ssh.FingerprintLegacyMD5(public), SHA256: ssh.FingerprintSHA256(public),
		Usage: n.Usage, CreatedAt: now, ExpiresAt: n.ExpiresAt,
	}, nil
}

const (
	maxKeyText = 5000 // an RSA key of 16384 bits has 2800
	minRSABits = 2048
)

// parseKey parses a line of authorized_keys: type, base64 and comment. It returns
// the line to store, or a message about the problem. Options are not allowed.
func parseKey(text string) (line string, key ssh.PublicKey, problem string) {
	const malformed = "is invalid"
	text = strings.TrimSpace(text)
	if len(text) > maxKeyText || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return "", nil, malformed
	}
	kind, rest, _ := strings.Cut(text, " ")
	blob, comment, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	raw, err := base64.StdEncoding.Strict().DecodeString(blob)
	if err != nil {
		return "", nil, malformed
	}
	key, err = ssh.ParsePublicKey(raw)
	// A different encoding of the same key would have another fingerprint.
	if err != nil || key.Type() != kind || !bytes.Equal(key.Marshal(), raw) {
		return "", nil, malformed
	}
	switch key.Type() {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256,
		ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521:
	case ssh.KeyAlgoRSA:
		public, ok := key.(ssh.CryptoPublicKey).CryptoPublicKey().(*rsa.PublicKey)
		if !ok || public.N.BitLen() < minRSABits {
			return "", nil, fmt.Sprintf("must be at least %d bits", minRSABits)
		}
	default:
		return "", nil, "type is forbidden. Must be RSA, ECDSA, ED25519, ECDSA_SK or ED25519_SK"
	}
	line = kind + " " + blob
	if comment = strings.TrimSpace(comment); comment != "" {
		line += " " + comment
	}
	return line, key, ""
}
