package signin

import (
	"context"
	"errors"
	"fmt"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/user"
)

// Credentials are a username and a password at an LDAP directory.
type Credentials struct {
	Provider string
	Username string
	Password string
	Remember bool
	IP       string
	Agent    string
	By       actor.Actor // a user who links the account; anonymous to sign in
}

// TakesForm reports whether users give a provider their username and password on
// our page.
func (s *Service) TakesForm(provider string) bool { return s.directories[provider] != nil }

// Authenticate opens a session for a user of an LDAP directory, or links their entry
// to the actor. Refused if the credentials or the user are not accepted;
// user.TwoFactorRequired if a code is needed; Unavailable; NotFound.
func (s *Service) Authenticate(ctx context.Context, in Credentials) (*user.Session, error) {
	d, ok := s.directories[in.Provider]
	if !ok {
		return nil, errs.NotFound("")
	}
	link := !in.By.Anonymous()
	if link {
		if err := in.By.RequireSession(); err != nil {
			return nil, err
		}
	}
	p, err := d.authenticate(ctx, in.Username, in.Password)
	if errors.Is(err, errDirectory) {
		s.Log.WarnContext(ctx, "identity provider is not available", "provider", in.Provider, "error", err)
		return nil, errs.Unavailable("The identity provider does not respond. Try again later.")
	}
	if err != nil {
		return nil, s.refuse(ctx, in.Provider, in.IP, link, fmt.Errorf("user %q: %w", clip(in.Username), err))
	}
	if link {
		if err := s.link(ctx, &d.Provider, in.By, p); err != nil {
			return nil, s.refuse(ctx, in.Provider, in.IP, link, err)
		}
		return nil, nil
	}
	session, err := s.enter(ctx, &d.Provider, p, user.SignInRequest{IP: in.IP, UserAgent: in.Agent, Remember: in.Remember})
	if _, ok := errors.AsType[user.TwoFactorRequired](err); ok {
		return nil, err
	}
	if err != nil {
		return nil, s.refuse(ctx, in.Provider, in.IP, link, err)
	}
	return session, nil
}

// SyncDirectories looks up the users of each LDAP directory. Those who are gone, or
// who left the required groups, are blocked; the groups of the others are applied. It
// runs in the background.
func (s *Service) SyncDirectories(ctx context.Context) error {
	var faults []error
	for name, d := range s.directories {
		if err := s.syncDirectory(ctx, d); err != nil {
			faults = append(faults, fmt.Errorf("synchronize with %s: %w", name, err))
		}
	}
	return errors.Join(faults...)
}

// syncPage is the number of users that are read at a time.
const syncPage = 200

// A directory that was reorganized, or a wrong filter, must not block everyone: up
// to fewGone active users, and up to half of them, are blocked at a time. Deactivated
// users do not count: most of them may have left.
const fewGone = 3

func (s *Service) syncDirectory(ctx context.Context, d *directory) error {
	var found lookups
	after := int64(0)
	for {
		list, err := s.Users.LinkedUsers(ctx, d.Name, after, syncPage)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			break
		}
		if err := s.syncUsers(ctx, d, list, &found); err != nil {
			return err
		}
		after = list[len(list)-1].User.ID
	}
	if n := found.activeGone; n > fewGone && n > found.active/2 {
		return fmt.Errorf("%d of %d users are no longer found; no one was blocked: check base, user_filter and required_groups", n, found.active)
	}
	for _, u := range found.gone {
		if u.Admin {
			other, err := s.Users.OtherAdmin(ctx, u.ID)
			if err != nil {
				return err
			}
			if !other {
				s.Log.WarnContext(ctx, "the last administrator is not blocked", "provider", d.Name, "user", u.Username)
				continue
			}
		}
		if _, err := s.Users.Block(ctx, actor.System(), u.ID); err != nil && !isRefusal(err) {
			return err
		}
		s.Log.InfoContext(ctx, "blocked a user who is no longer in the directory", "provider", d.Name, "user", u.Username)
	}
	return nil
}

// lookups are the results of a synchronization.
type lookups struct {
	gone []*user.User
	// Numbers of active users who were looked up, and of those who are gone.
	active, activeGone int
}

// syncUsers applies the groups of some users, and adds those who are gone to found. A
// user who cannot be looked up is skipped, so that the others are not held up.
func (s *Service) syncUsers(ctx context.Context, d *directory, list []user.LinkedUser, found *lookups) error {
	at, err := d.connect(ctx)
	if err != nil {
		return err
	}
	defer at.end()
	for _, h := range list {
		p, err := at.lookUp(h.ExternUID)
		gone := errors.Is(err, errNoEntry)
		if err == nil {
			if gone = d.admits(p) != nil; !gone {
				err = s.applyGroups(ctx, &d.Provider, h.User, p)
			}
		}
		switch {
		case gone:
			found.gone = append(found.gone, h.User)
		case errors.Is(err, errDirectory), ctx.Err() != nil:
			return fmt.Errorf("user %s: %w", h.User.Username, errors.Join(err, ctx.Err()))
		case err != nil:
			s.Log.WarnContext(ctx, "a user of a directory is skipped", "provider", d.Name, "user", h.User.Username, "error", err)
			continue
		}
		if h.User.State == user.Active {
			found.active++
			if gone {
				found.activeGone++
			}
		}
	}
	return nil
}
