package user

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
)

// Identity is the identity of a user at an identity provider.
type Identity struct {
	Provider       string
	ExternUID      string
	SAMLProviderID *int64 // for the provider of a group
}

// DeleteIdentity deletes an identity of a user. Requires an administrator.
// NotFound. Interfaces call it through the service signin, which also removes what the
// provider gave.
func (s *Service) DeleteIdentity(ctx context.Context, by actor.Actor, userID int64, provider string) error {
	if err := by.RequireAdmin(); err != nil {
		return err
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		u, err := findUser(ctx, tx, userID)
		if err != nil {
			return err
		}
		if err := deleteIdentity(ctx, tx, userID, provider); err != nil {
			return db.NotFound(err, "Identity")
		}
		return s.record(ctx, tx, by, u, "user_identity_removed", audit.Details{Remove: "identity", Message: "Identity at " + provider + " removed"})
	})
	if err != nil {
		return fmt.Errorf("delete identity of user %d: %w", userID, err)
	}
	return nil
}

// setIdentity sets the identity of a user at a provider, replacing an existing
// one. Conflict if it belongs to another user.
func setIdentity(ctx context.Context, tx *db.Tx, userID int64, i Identity) error {
	if len(i.Provider) > 255 {
		return errs.InvalidField("provider", "is too long (maximum is 255 characters)")
	}
	if len(i.ExternUID) > 255 {
		return errs.InvalidField("extern_uid", "is too long (maximum is 255 characters)")
	}
	return taken(saveIdentity(ctx, tx, userID, i))
}

// FindIdentity returns the user of an identity. The UID is case-sensitive, as it
// is at many providers. NotFound.
func (s *Service) FindIdentity(ctx context.Context, provider, externUID string) (*User, error) {
	u, stored, err := findByIdentity(ctx, s.DB, provider, externUID)
	if err != nil {
		return nil, err
	}
	if stored != externUID {
		return nil, errs.NotFound("User")
	}
	return u, nil
}

// FindByConfirmedEmail returns the user who has confirmed an address. Only the case of
// ASCII letters may differ: PostgreSQL also folds other letters, some of them into
// ASCII, which makes one address of two. NotFound.
func (s *Service) FindByConfirmedEmail(ctx context.Context, address string) (*User, error) {
	owner, stored, confirmed, err := findAddress(ctx, s.DB, address)
	if err != nil {
		return nil, db.NotFound(err, "User")
	}
	if confirmed == nil || lowerASCII(stored) != lowerASCII(address) {
		return nil, errs.NotFound("User")
	}
	return findUser(ctx, s.DB, owner)
}

func lowerASCII(text string) string {
	lower := []byte(text)
	for i, b := range lower {
		if b >= 'A' && b <= 'Z' {
			lower[i] = b + 'a' - 'A'
		}
	}
	return string(lower)
}

// NewIdentityUser is an account that is created at the first sign-in with an
// identity provider. It has no password.
type NewIdentityUser struct {
	Identity      Identity
	Usernames     []string // candidates in order of preference; invalid and taken ones are skipped
	Name          string
	Email         string
	EmailVerified bool
	Approval      bool // the account is pending approval
	IP            string
}

// CreateFromIdentity creates an account for an identity. Invalid; Conflict if the
// address, the identity or all usernames are taken.
func (s *Service) CreateFromIdentity(ctx context.Context, n NewIdentityUser) (*User, error) {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, err
	}
	by := actor.System()
	by.IP = n.IP
	for _, name := range n.Usernames {
		fresh := NewUser{Email: n.Email, Name: n.Name, Username: name, ForceRandomPassword: true, SkipConfirmation: n.EmailVerified}
		wrong := errs.Fields{}
		if checkUsername(wrong, name); wrong.Err() != nil {
			continue
		}
		if err := fresh.check(settings); err != nil {
			return nil, err
		}
		u := s.newUser(by, fresh, settings)
		u.CreatedBy = nil
		if n.Approval {
			u.State = PendingApproval
		}
		free := true
		err := s.DB.Tx(ctx, func(tx *db.Tx) error {
			taken, err := usernameTaken(ctx, tx, name)
			if free = !taken; err != nil || taken {
				return err
			}
			if err := s.insert(ctx, tx, by, u, "", fresh); err != nil {
				return err
			}
			return s.link(ctx, tx, by, u, n.Identity)
		})
		if err != nil {
			return nil, fmt.Errorf("create user from identity: %w", err)
		}
		if free {
			return u, nil
		}
	}
	return nil, errs.Conflict("Username has already been taken")
}

// LinkIdentity adds an identity to a user. Users link their own identities, the
// system those of others. Conflict if it belongs to another user, or if the user
// has another identity at the provider.
func (s *Service) LinkIdentity(ctx context.Context, by actor.Actor, userID int64, i Identity) error {
	if by.ID != actor.SystemID {
		if err := by.RequireSession(); err != nil {
			return err
		}
		if !by.Is(userID) {
			return errs.Forbidden("")
		}
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		u, err := lockUser(ctx, tx, userID)
		if err != nil {
			return err
		}
		if u.Kind != Human {
			return errs.Forbidden("")
		}
		return s.link(ctx, tx, by, u, i)
	})
	if err != nil {
		return fmt.Errorf("link identity of user %d: %w", userID, err)
	}
	return nil
}

func (s *Service) link(ctx context.Context, tx *db.Tx, by actor.Actor, u *User, i Identity) error {
	has, err := identitiesOfAll(ctx, tx, []int64{u.ID})
	if err != nil {
		return err
	}
	for _, own := range has[u.ID] {
		if own.Provider == i.Provider {
			return errs.Conflict("The user has another identity at the provider")
		}
	}
	if err := setIdentity(ctx, tx, u.ID, i); err != nil {
		return err
	}
	return s.record(ctx, tx, by, u, "user_identity_added", audit.Details{Add: "identity", Message: "Identity at " + i.Provider + " added"})
}

// CheckUnlink refuses what UnlinkIdentity refuses, with the same errors.
func (s *Service) CheckUnlink(ctx context.Context, by actor.Actor, provider string, ways []string) error {
	if err := by.RequireSession(); err != nil {
		return err
	}
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return err
	}
	return checkUnlink(ctx, s.DB, by.ID, provider, ways, settings.PasswordForWeb)
}

// UnlinkIdentity removes an identity of the actor. Requires a session. ways are
// the providers that users can sign in with. Forbidden if it is the last way to
// sign in; NotFound.
func (s *Service) UnlinkIdentity(ctx context.Context, by actor.Actor, provider string, ways []string) error {
	if err := by.RequireSession(); err != nil {
		return err
	}
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		u, err := lockUser(ctx, tx, by.ID)
		if err != nil {
			return err
		}
		if err := checkUnlink(ctx, tx, u.ID, provider, ways, settings.PasswordForWeb); err != nil {
			return err
		}
		if err := deleteIdentity(ctx, tx, u.ID, provider); err != nil {
			return db.NotFound(err, "Identity")
		}
		return s.record(ctx, tx, by, u, "user_identity_removed", audit.Details{Remove: "identity", Message: "Identity at " + provider + " removed"})
	})
	if err != nil {
		return fmt.Errorf("unlink identity: %w", err)
	}
	return nil
}

func checkUnlink(ctx context.Context, q db.Q, userID int64, provider string, ways []string, passwords bool) error {
	hash, err := passwordHash(ctx, q, userID)
	if err != nil {
		return err
	}
	has, err := identitiesOfAll(ctx, q, []int64{userID})
	if err != nil {
		return err
	}
	linked, another := false, hash != "" && passwords
	for _, i := range has[userID] {
		linked = linked || i.Provider == provider
		another = another || i.Provider != provider && slices.Contains(ways, i.Provider)
	}
	if !another {
		return errs.Forbidden("This is your only way to sign in. Set a password or link another account first.")
	}
	if !linked {
		return errs.NotFound("Identity")
	}
	return nil
}

// HasPassword reports whether the actor has a password. Users who were created at
// their first sign-in with an identity provider have none until they set one.
func (s *Service) HasPassword(ctx context.Context, by actor.Actor) (bool, error) {
	if err := by.RequireUser(); err != nil {
		return false, err
	}
	hash, err := passwordHash(ctx, s.DB, by.ID)
	return hash != "", err
}

// AdminWithIdentity reports whether an active administrator has an identity at
// one of the providers.
func (s *Service) AdminWithIdentity(ctx context.Context, q db.Q, providers []string) (bool, error) {
	if len(providers) == 0 {
		return false, nil
	}
	return adminWithIdentity(ctx, q, providers)
}

// OtherAdmin reports whether there is another active administrator.
func (s *Service) OtherAdmin(ctx context.Context, userID int64) (bool, error) {
	return otherAdmin(ctx, s.DB, userID)
}

// SignInIdentity creates a session for a user whose identity a provider has
// authenticated. The errors are those of SignIn; TwoFactorRequired if the user has
// two-factor authentication and the provider is not trusted with it.
func (s *Service) SignInIdentity(ctx context.Context, userID int64, provider string, trustTwoFactor bool, r SignInRequest) (*Session, *User, error) {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, nil, err
	}
	u, err := findUser(ctx, s.DB, userID)
	if err != nil {
		return nil, nil, err
	}
	if u.Kind != Human {
		return nil, nil, errs.Forbidden("")
	}
	if err := u.mayEnter(); err != nil {
		return nil, nil, err
	}
	if err := u.unconfirmed(settings.Confirmation, s.Now()); err != nil {
		return nil, nil, err
	}
	a := &account{user: u, provider: provider}
	if a.hash, err = passwordHash(ctx, s.DB, u.ID); err != nil {
		return nil, nil, err
	}
	a.rehashed = a.hash
	if u.TwoFactorEnabled && !trustTwoFactor {
		return nil, nil, TwoFactorRequired{Ticket: s.halfway(a, r)}
	}
	session := newSession(u.ID, r, settings, s.Now())
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if u, err = lockUser(ctx, tx, userID); err != nil {
			return err
		}
		if err := u.mayEnter(); err != nil {
			return err
		}
		return s.signedIn(ctx, tx, a, u, session)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("sign in with identity: %w", err)
	}
	return session, u, nil
}

// LinkedUser is a user with their UID at a provider.
type LinkedUser struct {
	User      *User
	ExternUID string
}

// LinkedUsers lists the users of a provider who can sign in, by ID, starting after an
// ID. Those who are deactivated are among them: a sign-in activates them.
func (s *Service) LinkedUsers(ctx context.Context, provider string, after int64, limit int) ([]LinkedUser, error) {
	ids, uids, err := findLinked(ctx, s.DB, provider, after, limit)
	if err != nil {
		return nil, err
	}
	var list []LinkedUser
	for i, id := range ids {
		u, err := findUser(ctx, s.DB, id)
		if err != nil {
			return nil, err
		}
		list = append(list, LinkedUser{u, uids[i]})
	}
	return list, nil
}
