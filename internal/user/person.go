package user

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Person is a user as the export of another instance names them, without their
// address. It is mapped to the account with the same confirmed address.
type Person struct {
	Username string
	Name     string
	Digest   string // of their primary address; empty while that is not confirmed
}

// Person is how a file that leaves this instance names the user.
func (u *User) Person() Person {
	p := Person{Username: u.Username, Name: u.Name}
	if u.ConfirmedAt != nil {
		sum := addressDigest(u.Email)
		p.Digest = hex.EncodeToString(sum[:])
	}
	return p
}

// addressDigest stands for an address where the address is not to be read.
func addressDigest(address string) [sha256.Size]byte {
	return sha256.Sum256([]byte(strings.ToLower(address)))
}

// Persons names several accounts, by id. Who is not there, or is not human, is
// left out.
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

// Recognise finds the users with a confirmed address that has one of the digests,
// and sets their IDs. It reads all addresses, so callers pass all digests at
// once.
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
		return fmt.Errorf("recognise users: %w", err)
	}
	return nil
}
