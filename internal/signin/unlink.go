package signin

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/user"
)

// Unlink removes the actor's identity at a provider, in their own session, and what
// the provider gave them. Forbidden if it is their last way to sign in, or if the
// provider is a directory; NotFound.
func (s *Service) Unlink(ctx context.Context, by actor.Actor, provider string) error {
	// An account without the identity is not blocked when its user leaves the directory.
	if s.directories[provider] != nil {
		return errs.Forbidden("Only an administrator can unlink this account.")
	}
	if err := s.Users.CheckUnlink(ctx, by, provider, s.names()); err != nil {
		return err
	}
	u, err := s.Users.Self(ctx, by)
	if err != nil {
		return err
	}
	if err := s.takeBack(ctx, provider, u); err != nil {
		return err
	}
	return s.Users.UnlinkIdentity(ctx, by, provider, s.names())
}

// DeleteIdentity removes the identity of a user at a provider, and what the provider
// gave them. Requires an administrator. NotFound.
func (s *Service) DeleteIdentity(ctx context.Context, by actor.Actor, userID int64, provider string) error {
	if err := by.RequireAdmin(); err != nil {
		return err
	}
	u, err := s.Users.Get(ctx, by, userID, false)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(u.Identities, func(i user.Identity) bool { return i.Provider == provider }) {
		return errs.NotFound("Identity")
	}
	if err := s.takeBack(ctx, provider, u); err != nil {
		return err
	}
	return s.Users.DeleteIdentity(ctx, by, userID, provider)
}

// takeBack removes the rights and memberships that a provider gave a user. It is called
// before the identity is deleted: nothing else would remove them later.
func (s *Service) takeBack(ctx context.Context, provider string, u *user.User) error {
	if err := s.applyGroups(ctx, s.provider(provider), u, &person{}); err != nil {
		return fmt.Errorf("remove what %s gave user %d: %w", provider, u.ID, err)
	}
	return nil
}

// provider returns a provider by its name. One that is no longer configured gives no
// rights, but may have given memberships.
func (s *Service) provider(name string) *Provider {
	if c, ok := s.remotes[name]; ok {
		return c.options()
	}
	if d, ok := s.directories[name]; ok {
		return &d.Provider
	}
	return &Provider{Name: name}
}
