package user

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
)

// SignUp creates an account for a new user. NotFound unless sign-up is enabled;
// Invalid if a value is not accepted or already taken. If the settings require
// approval, the account is pending.
func (s *Service) SignUp(ctx context.Context, n NewUser, ip string) (*User, error) {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, err
	}
	if !settings.SignUpEnabled || !settings.PasswordForWeb {
		return nil, errs.NotFound("")
	}
	// Other fields are for administrators only.
	n = NewUser{Email: n.Email, Name: n.Name, Username: n.Username, Password: n.Password}
	if err := n.check(settings); err != nil {
		return nil, err
	}
	hash, err := s.Hasher.Hash(ctx, n.Password)
	if err != nil {
		return nil, fmt.Errorf("sign up: %w", err)
	}
	by := actor.Actor{IP: ip}
	u := s.newUser(by, n, settings)
	if settings.SignUpApproval {
		u.State = PendingApproval
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error { return s.insert(ctx, tx, by, u, hash, n) })
	if err != nil {
		return nil, fmt.Errorf("sign up: %w", err)
	}
	return u, nil
}
