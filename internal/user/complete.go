package user

import (
	"context"
	"fmt"
	"strings"

	"svc/internal/actor"
)

// Complete suggests up to limit active users whose username starts with a text.
// Requires a signed-in user.
func (s *Service) Complete(ctx context.Context, by actor.Actor, text string, limit int) ([]*User, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	if text = strings.ToLower(text); text == "" || len(text) > 255 {
		return nil, nil
	}
	list, err := findUsersFrom(ctx, s.DB, text, limit*4)
	if err != nil {
		return nil, fmt.Errorf("complete users: %w", err)
	}
	var found []*User
	for _, u := range list {
		if strings.HasPrefix(strings.ToLower(u.Username), text) && u.State == Active && len(found) < limit {
			found = append(found, u)
		}
	}
	return found, nil
}
