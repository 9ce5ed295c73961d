package user

import (
	"context"
	"fmt"
	"strings"

	"svc/internal/db"
)

// FindByEmails returns the accounts that have confirmed the addresses, with
// what their public form shows, by the address in lower case: for features that
// name the authors of commits. Whose address is unknown is left out.
func (s *Service) FindByEmails(ctx context.Context, addresses []string) (map[string]*User, error) {
	const batch = 500
	found := map[string]*User{}
	for len(addresses) > 0 {
		part := addresses[:min(batch, len(addresses))]
		addresses = addresses[len(part):]
		if err := s.findByEmails(ctx, part, found); err != nil {
			return nil, fmt.Errorf("find users by address: %w", err)
		}
	}
	return found, nil
}

func (s *Service) findByEmails(ctx context.Context, addresses []string, found map[string]*User) error {
	type owner struct {
		address string
		id      int64
	}
	lower := make([]string, len(addresses))
	for i, address := range addresses {
		lower[i] = strings.ToLower(address)
	}
	owners, err := db.All(ctx, s.DB, func(s db.Scanner) (owner, error) {
		var o owner
		err := s.Scan(&o.address, &o.id)
		return o, err
	}, `SELECT lower(email), user_id FROM emails WHERE confirmed_at IS NOT NULL AND lower(email) IN `+db.In(len(lower)), db.Any(lower)...)
	if err != nil {
		return err
	}
	ids := make([]int64, len(owners))
	for i, o := range owners {
		ids[i] = o.id
	}
	users, err := s.FindAll(ctx, ids)
	if err != nil {
		return err
	}
	for _, o := range owners {
		if u := users[o.id]; u != nil {
			found[o.address] = u
		}
	}
	return nil
}
