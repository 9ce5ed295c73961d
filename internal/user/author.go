package user

import (
	"context"
	"fmt"
)

// FindByEmails returns the users who have confirmed the addresses, by lowercase
// address, with their public fields. It is used to show the authors of commits.
// Unknown addresses are left out.
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
	owners, err := findOwners(ctx, s.DB, addresses)
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
