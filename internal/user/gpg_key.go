package user

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/pgp"
)

// GPGKey is an OpenPGP public key of a user.
type GPGKey struct {
	ID          int64
	UserID      int64
	Key         string // armored
	Fingerprint string // of the primary key, in uppercase hex
	CreatedAt   time.Time
}

// Parse parses the key.
func (k *GPGKey) Parse() (*pgp.Key, error) { return pgp.ParseKey(k.Key) }

// maxGPGKeys is the maximum number of GPG keys of a user.
const maxGPGKeys = 100

// OwnGPGKeys lists the actor's own GPG keys, oldest first.
func (s *Service) OwnGPGKeys(ctx context.Context, by actor.Actor, p db.Paging) (db.Page[GPGKey], error) {
	if err := by.RequireUser(); err != nil {
		return db.Page[GPGKey]{}, err
	}
	return listGPGKeys(ctx, s.DB, by.ID, p)
}

// OwnGPGKey returns one of the actor's own GPG keys. NotFound.
func (s *Service) OwnGPGKey(ctx context.Context, by actor.Actor, id int64) (*GPGKey, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	return findUserGPGKey(ctx, s.DB, by.ID, id)
}

// GPGKeysOf lists the GPG keys of a user, oldest first. They are public. NotFound.
func (s *Service) GPGKeysOf(ctx context.Context, by actor.Actor, of Ref, p db.Paging) (db.Page[GPGKey], error) {
	u, err := s.Find(ctx, by, of)
	if err != nil {
		return db.Page[GPGKey]{}, err
	}
	return listGPGKeys(ctx, s.DB, u.ID, p)
}

// GPGKeyOf returns a GPG key of a user. No permissions are required. NotFound.
func (s *Service) GPGKeyOf(ctx context.Context, by actor.Actor, of Ref, id int64) (*GPGKey, error) {
	u, err := s.Find(ctx, by, of)
	if err != nil {
		return nil, err
	}
	return findUserGPGKey(ctx, s.DB, u.ID, id)
}

// AddOwnGPGKey adds a GPG key to the actor's account. Invalid, also if another
// user has the key; Forbidden for bot users.
func (s *Service) AddOwnGPGKey(ctx context.Context, by actor.Actor, key string) (*GPGKey, error) {
	if err := by.RequireHuman("add GPG keys"); err != nil {
		return nil, err
	}
	return s.addGPGKey(ctx, by, by.ID, key)
}

// AddGPGKey adds a GPG key to a user. Requires an administrator. NotFound;
// otherwise like AddOwnGPGKey.
func (s *Service) AddGPGKey(ctx context.Context, by actor.Actor, userID int64, key string) (*GPGKey, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	return s.addGPGKey(ctx, by, userID, key)
}

func (s *Service) addGPGKey(ctx context.Context, by actor.Actor, userID int64, text string) (*GPGKey, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, errs.InvalidField("key", "can't be blank")
	}
	parsed, err := pgp.ParseKey(text)
	if err != nil {
		return nil, errs.InvalidField("key", "is invalid. It must be an armored public key: it starts with -----BEGIN PGP PUBLIC KEY BLOCK-----").Because(err)
	}
	k := &GPGKey{UserID: userID, Key: text, Fingerprint: parsed.Fingerprint, CreatedAt: s.Now()}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		u, err := findUser(ctx, tx, userID)
		if err != nil {
			return err
		}
		if u.Bot() {
			return errs.Forbidden("Bot users cannot have GPG keys.")
		}
		count, err := countGPGKeys(ctx, tx, userID)
		if err != nil {
			return err
		}
		if count >= maxGPGKeys {
			return errs.InvalidField("key", "cannot be added. A user has at most %d GPG keys", maxGPGKeys)
		}
		err = insertGPGKey(ctx, tx, k, parsed.Parts)
		if db.IsUnique(err, "gpg_keys_fingerprint") {
			return errs.InvalidField("fingerprint", "has already been taken").Because(err)
		}
		if err != nil {
			return err
		}
		return s.recordOf(ctx, tx, by, u, "add_gpg_key", k.target(), audit.Details{Add: "gpg_key", Message: "Added GPG key"})
	})
	if err != nil {
		return nil, fmt.Errorf("add GPG key of user %d: %w", userID, err)
	}
	return k, nil
}

func (k *GPGKey) target() audit.Target {
	return audit.Target{Type: "GpgKey", ID: k.ID, Details: k.Fingerprint}
}

// DeleteOwnGPGKey deletes a GPG key of the actor. NotFound.
func (s *Service) DeleteOwnGPGKey(ctx context.Context, by actor.Actor, id int64) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	return s.deleteGPGKey(ctx, by, by.ID, id)
}

// DeleteGPGKey deletes a GPG key of a user. Requires an administrator. NotFound.
func (s *Service) DeleteGPGKey(ctx context.Context, by actor.Actor, userID, id int64) error {
	if err := by.RequireAdmin(); err != nil {
		return err
	}
	return s.deleteGPGKey(ctx, by, userID, id)
}

func (s *Service) deleteGPGKey(ctx context.Context, by actor.Actor, userID, id int64) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		u, err := findUser(ctx, tx, userID)
		if err != nil {
			return err
		}
		k, err := findUserGPGKey(ctx, tx, userID, id)
		if err != nil {
			return err
		}
		if err := deleteGPGKey(ctx, tx, id); err != nil {
			return db.NotFound(err, "GPG Key")
		}
		return s.recordOf(ctx, tx, by, u, "remove_gpg_key", k.target(), audit.Details{Remove: "gpg_key", Message: "Removed GPG key"})
	})
	if err != nil {
		return fmt.Errorf("delete GPG key %d: %w", id, err)
	}
	return nil
}

// SigningGPGKeys returns the keys that may have made a signature: those with its
// fingerprint or, if it has none, with its key ID.
func (s *Service) SigningGPGKeys(ctx context.Context, sig *pgp.Signature) ([]GPGKey, error) {
	found, err := findSigningGPGKeys(ctx, s.DB, sig.Fingerprint, sig.ID)
	if err != nil {
		return nil, fmt.Errorf("find GPG key %s: %w", sig.ID, err)
	}
	return found, nil
}

// GPGEmail is an email address of a key, and whether it is a confirmed address
// of the owner of the key.
type GPGEmail struct {
	pgp.UserID
	Verified bool
}

// GPGEmails returns the email addresses of a key.
func (s *Service) GPGEmails(ctx context.Context, k *GPGKey) ([]GPGEmail, error) {
	parsed, err := k.Parse()
	if err != nil {
		return nil, fmt.Errorf("parse GPG key %d: %w", k.ID, err)
	}
	var addresses []string
	for _, u := range parsed.Users {
		addresses = append(addresses, strings.ToLower(u.Email))
	}
	owners, err := s.FindByEmails(ctx, slices.Clone(addresses))
	if err != nil {
		return nil, err
	}
	list := make([]GPGEmail, len(parsed.Users))
	for i, u := range parsed.Users {
		owner := owners[addresses[i]]
		list[i] = GPGEmail{UserID: u, Verified: owner != nil && owner.ID == k.UserID}
	}
	return list, nil
}
