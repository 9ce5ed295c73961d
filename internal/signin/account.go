package signin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/user"
)

// pending is the refusal of an account that waits for approval, of which the user
// is informed: they have just proved that the account is theirs.
type pending struct{ error }

// enter finds or creates the account of a person, applies their groups and opens a
// session.
func (s *Service) enter(ctx context.Context, c *Provider, p *person, r user.SignInRequest) (*user.Session, error) {
	if err := c.admits(p); err != nil {
		return nil, err
	}
	u, err := s.Users.FindIdentity(ctx, c.Name, p.uid)
	if errs.Is(err, errs.KindNotFound) {
		u, err = s.newAccount(ctx, c, p, r.IP)
	}
	if err != nil {
		return nil, err
	}
	// Groups are applied only to users who can sign in.
	if u.State == user.PendingApproval {
		return nil, pending{fmt.Errorf("user %s waits for approval", u.Username)}
	}
	if u.Kind != user.Human || u.State != user.Active && u.State != user.Deactivated {
		return nil, fmt.Errorf("user %s is %s", u.Username, u.State)
	}
	if err := s.applyGroups(ctx, c, u, p); err != nil {
		return nil, err
	}
	session, _, err := s.Users.SignInIdentity(ctx, u.ID, c.Name, c.TrustTwoFactor, r)
	return session, err
}

// link gives the identity to the user who asked for it in their settings.
func (s *Service) link(ctx context.Context, c *Provider, by actor.Actor, p *person) error {
	if err := c.admits(p); err != nil {
		return err
	}
	return s.Users.LinkIdentity(ctx, by, by.ID, user.Identity{Provider: c.Name, ExternUID: p.uid})
}

// admits refuses a person who is in none of the required groups.
func (c *Provider) admits(p *person) error {
	if len(c.RequiredGroups) > 0 && !p.inAny(c.RequiredGroups) {
		return fmt.Errorf("%q is in none of the required groups", p.uid)
	}
	return nil
}

func (p *person) inAny(groups []string) bool {
	return slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(p.groups, g) })
}

// newAccount links a person to an account with the same address, if the provider
// may do that, or creates one.
func (s *Service) newAccount(ctx context.Context, c *Provider, p *person, ip string) (*user.User, error) {
	identity := user.Identity{Provider: c.Name, ExternUID: p.uid}
	if c.LinkByEmail && p.emailVerified && p.email != "" {
		u, err := s.Users.FindByConfirmedEmail(ctx, p.email)
		if err == nil {
			// A provider that is mistaken, or a mailbox that changed hands, must not
			// open the accounts that are worth most.
			if u.Admin || u.TwoFactorEnabled || u.Kind != user.Human {
				return nil, fmt.Errorf("user %s has the address, and must link the identity in their settings", u.Username)
			}
			by := actor.System()
			by.IP = ip
			return u, s.Users.LinkIdentity(ctx, by, u.ID, identity)
		}
		if !errs.Is(err, errs.KindNotFound) {
			return nil, err
		}
	}
	if !c.AutoCreate {
		return nil, errors.New("there is no account for the identity, and the provider does not create any")
	}
	if p.email == "" {
		return nil, errors.New("the provider does not give an email address")
	}
	names := usernames(p)
	name := p.name
	if name == "" {
		name = names[0]
	}
	return s.Users.CreateFromIdentity(ctx, user.NewIdentityUser{
		Identity: identity, Usernames: names, Name: clipRunes(name, 255), Email: p.email, EmailVerified: p.emailVerified,
		Approval: c.RequireApproval, IP: ip,
	})
}

// usernames are candidates for the username of a person: what the provider says
// and the first part of their address, each also with a number.
func usernames(p *person) []string {
	var names []string
	for _, text := range []string{p.username, p.email, "user"} {
		text, _, _ = strings.Cut(text, "@")
		name := plainName(text)
		if len(name) < 2 || strings.Trim(name, "0123456789") == "" {
			continue
		}
		if user.Reserved(name) {
			name += "-user"
		}
		names = append(names, name)
		for i := 1; i < 10; i++ {
			names = append(names, name+strconv.Itoa(i))
		}
		for range 3 {
			names = append(names, name+"-"+strings.ToLower(rand.Text()[:6]))
		}
	}
	return names
}

// plainName replaces what a username cannot have.
func plainName(text string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', r == '.':
			return r
		}
		return '-'
	}, text)
	for strings.Contains(name, "--") {
		name = strings.ReplaceAll(name, "--", "-")
	}
	for strings.Contains(name, "..") {
		name = strings.ReplaceAll(name, "..", ".")
	}
	name = strings.Trim(name, "-.")
	for _, end := range []string{".git", ".atom"} {
		if len(name) >= len(end) && strings.EqualFold(name[len(name)-len(end):], end) {
			name = strings.TrimRight(name[:len(name)-len(end)], "-.")
		}
	}
	return name[:min(len(name), 200)]
}

func clipRunes(text string, n int) string {
	runes := []rune(strings.ToValidUTF8(text, "?"))
	return strings.ReplaceAll(string(runes[:min(len(runes), n)]), "\x00", "?")
}
