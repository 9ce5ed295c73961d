package user

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Person is a user in an export from an instance, without their email address. It
// is mapped to the account with the same confirmed address.
type Person struct {
	Username string
	Name     string
	Digest   string // digest of the primary address; empty if it is not confirmed
}

// Person returns the user for an export.
func (u *User) Person() Person {
	p := Person{Username: u.Username, Name: u.Name}
	if u.ConfirmedAt != nil {
		sum := addressDigest(u.Email)
		p.Digest = hex.EncodeToString(sum[:])
	}
	return p
}

// addressDigest returns the digest of an email address.
func addressDigest(address string) [sha256.Size]byte {
	return sha256.Sum256([]byte(strings.ToLower(address)))
}

// Persons returns users for an export by ID. Deleted users and those that are not
// human are left out.
func (s *Service) Persons(ctx context.Context, ids []int64) (map[int64]Person, error) {
	found := map[int64]Person{}
	if len(ids) == 0 {
		return found, nil
	}
	list, err := findPersons(ctx, s.DB, ids)
	if err != nil {
		return nil, fmt.Errorf("name users: %w", err)
	}
	for _, u := range list {
		found[u.ID] = u.Person()
	}
	return found, nil
}

// Recognise finds the users who have confirmed an address with one of the digests,
// and sets their IDs. It reads all addresses, so callers pass all digests at once.
func (s *Service) Recognise(ctx context.Context, digests map[[sha256.Size]byte]int64) error {
	if len(digests) == 0 {
		return nil
	}
	err := eachConfirmed(ctx, s.DB, func(id int64, address string) {
		sum := addressDigest(address)
		if _, ok := digests[sum]; ok {
			digests[sum] = id
		}
	})
	if err != nil {
		return fmt.Errorf("identify users: %w", err)
	}
	return nil
}
