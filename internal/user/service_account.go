package user

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/setting"
)

// A service account is an account for a program. It has personal access tokens and
// can be a member of groups and projects, but it cannot sign in. It belongs to the
// instance or to a top-level group. For those of groups, the feature that owns
// groups checks permissions: see ServiceAccountsIn.

// ServiceAccounts lists the service accounts of the instance. Requires an
// administrator.
func (s *Service) ServiceAccounts(ctx context.Context, by actor.Actor, order Sort, p db.Paging) (db.Page[*User], error) {
	if err := by.RequireAdmin(); err != nil {
		return db.Page[*User]{}, err
	}
	return s.ServiceAccountsIn(ofInstance()).List(ctx, order, p)
}

// ServiceAccount returns a service account of the instance. Requires an
// administrator. NotFound.
func (s *Service) ServiceAccount(ctx context.Context, by actor.Actor, id int64) (*User, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	return s.ServiceAccountsIn(ofInstance()).Get(ctx, id)
}

// CreateServiceAccount adds a service account to the instance. Requires an
// administrator. Invalid.
func (s *Service) CreateServiceAccount(ctx context.Context, by actor.Actor, n NewServiceAccount) (*User, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	return s.ServiceAccountsIn(ofInstance()).Create(ctx, by, n)
}

// UpdateServiceAccount changes a service account of the instance. Requires an
// administrator. NotFound; Invalid.
func (s *Service) UpdateServiceAccount(ctx context.Context, by actor.Actor, id int64, c ServiceAccountChange) (*User, error) {
	u, err := s.ServiceAccount(ctx, by, id)
	if err != nil {
		return nil, err
	}
	return s.ServiceAccountsIn(ofInstance()).Update(ctx, by, u, c)
}

// ServiceAccountOwner is the owner of service accounts: a group or the instance.
type ServiceAccountOwner struct {
	GroupID *int64 // nil for the instance
	Entity  audit.Entity
}

func ofInstance() ServiceAccountOwner { return ServiceAccountOwner{Entity: audit.Instance()} }

// ServiceAccountsIn returns the service accounts of an owner. The caller checks
// permissions.
func (s *Service) ServiceAccountsIn(of ServiceAccountOwner) ServiceAccountList {
	return ServiceAccountList{s, of}
}

// ServiceAccountList is the service accounts of one owner.
type ServiceAccountList struct {
	service *Service
	of      ServiceAccountOwner
}

// NewServiceAccount has the fields of a new service account. Empty ones are
// generated.
type NewServiceAccount struct{ Name, Username, Email string }

// ServiceAccountChange are changes to a service account. A nil field keeps the
// current value.
type ServiceAccountChange struct{ Name, Username, Email *string }

// maxServiceAccounts is the maximum number of service accounts of an owner.
const maxServiceAccounts = 1000

// List lists the accounts.
func (l ServiceAccountList) List(ctx context.Context, order Sort, p db.Paging) (db.Page[*User], error) {
	page, err := listServiceAccounts(ctx, l.service.DB, l.of.GroupID, order, p)
	if err != nil {
		return page, fmt.Errorf("list service accounts: %w", err)
	}
	return page, nil
}

// Get returns an account. NotFound.
func (l ServiceAccountList) Get(ctx context.Context, id int64) (*User, error) {
	owned, err := isServiceAccount(ctx, l.service.DB, l.of.GroupID, id)
	if err != nil {
		return nil, fmt.Errorf("find service account %d: %w", id, err)
	}
	if !owned {
		return nil, errs.NotFound("User")
	}
	return findUser(ctx, l.service.DB, id)
}

// Create adds an account. Its email address is not confirmed: the caller decides
// who may choose one. Invalid, also if the username or address is taken.
func (l ServiceAccountList) Create(ctx context.Context, by actor.Actor, n NewServiceAccount) (*User, error) {
	s := l.service
	made := "service_account_"
	if l.of.GroupID != nil {
		made += fmt.Sprintf("group_%d_", *l.of.GroupID)
	}
	n.Username = cmp.Or(n.Username, made+strings.ToLower(rand.Text()))
	n.Name = cmp.Or(n.Name, "Service account user")
	n.Email = cmp.Or(n.Email, n.Username+"@noreply."+cmp.Or(s.Host, "localhost"))
	wrong := errs.Fields{}
	checkUsername(wrong, n.Username)
	checkName(wrong, n.Name)
	if !validEmail(n.Email) {
		wrong.Set("email", "is invalid")
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	u := s.newUser(by, NewUser{Username: n.Username, Name: n.Name, Email: n.Email, SkipConfirmation: true}, setting.Default())
	u.Kind, u.External, u.ProjectsLimit, u.CanCreateGroup = ServiceAccount, by.External, 0, false
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		count, err := countServiceAccounts(ctx, tx, l.of.GroupID)
		if err != nil {
			return err
		}
		if count >= maxServiceAccounts {
			return errs.Invalid("There are at most %d service accounts: delete one first", maxServiceAccounts)
		}
		if err := insertUser(ctx, tx, u, ""); err != nil { // no password
			return err
		}
		if _, err := insertEmail(ctx, tx, u.ID, u.Email, u.ConfirmedAt, "", u.CreatedAt); err != nil {
			return taken(err)
		}
		if err := saveUser(ctx, tx, u); err != nil {
			return err
		}
		if err := insertServiceAccount(ctx, tx, u.ID, l.of.GroupID); err != nil {
			return err
		}
		return l.record(ctx, tx, by, u, "service_account_created", audit.Details{Add: "service_account"})
	})
	if err != nil {
		return nil, fmt.Errorf("create service account: %w", refuseTaken(err))
	}
	return u, nil
}

// refuseTaken converts a conflict to a validation error: clients expect 400.
func refuseTaken(err error) error {
	if e, ok := errs.As(err); ok && e.Kind == errs.KindConflict {
		return errs.Invalid("%s", e.Text).Because(err)
	}
	return err
}

// Update changes an account. Invalid.
func (l ServiceAccountList) Update(ctx context.Context, by actor.Actor, u *User, c ServiceAccountChange) (*User, error) {
	s := l.service
	wrong := errs.Fields{}
	if c.Username != nil {
		checkUsername(wrong, *c.Username)
	}
	if c.Name != nil {
		checkName(wrong, *c.Name)
	}
	if c.Email != nil && !validEmail(*c.Email) {
		wrong.Set("email", "is invalid")
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	u, err := s.change(ctx, u.ID, func(tx *db.Tx, u *User) error {
		was := *u
		patch.Set(&u.Name, c.Name)
		patch.Set(&u.Username, c.Username)
		if c.Email != nil && !strings.EqualFold(*c.Email, u.Email) {
			now := s.Now()
			if _, err := insertEmail(ctx, tx, u.ID, *c.Email, &now, "", now); err != nil {
				return taken(err)
			}
			u.Email, u.ConfirmedAt = *c.Email, &now
		}
		for _, one := range []struct{ what, from, to string }{
			{"username", was.Username, u.Username}, {"name", was.Name, u.Name}, {"email address", was.Email, u.Email},
		} {
			if one.from == one.to {
				continue
			}
			if err := l.record(ctx, tx, by, u, "service_account_updated", audit.Details{Change: one.what, From: one.from, To: one.to}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, refuseTaken(err)
	}
	return u, nil
}

// Delete deletes an account: see Service.Delete.
func (l ServiceAccountList) Delete(ctx context.Context, by actor.Actor, u *User, hard bool) error {
	return l.service.delete(ctx, by, u, hard, "user_deleted")
}

// Tokens lists the personal access tokens of an account.
func (l ServiceAccountList) Tokens(ctx context.Context, u *User, f TokenFilter, p db.Paging) (db.Page[Token], error) {
	f.UserID = u.ID
	return listTokens(ctx, l.service.DB, Personal, f, l.service.Now(), p)
}

// CreateToken creates a personal access token. The scopes sudo and admin_mode
// require an administrator. Invalid.
func (l ServiceAccountList) CreateToken(ctx context.Context, by actor.Actor, u *User, n NewToken) (*Token, error) {
	s := l.service
	if !by.Admin && (slices.Contains(n.Scopes, "sudo") || slices.Contains(n.Scopes, "admin_mode")) {
		return nil, errs.InvalidField("scopes", "can only contain available scopes")
	}
	t, err := s.newToken(ctx, Personal, n)
	if err != nil {
		return nil, err
	}
	t.UserID = u.ID
	err = s.DB.Tx(ctx, func(tx *db.Tx) error { return s.addToken(ctx, tx, by, t) })
	if err != nil {
		return nil, fmt.Errorf("create token of service account %d: %w", u.ID, err)
	}
	return t, nil
}

// RevokeToken revokes a personal access token of an account. NotFound.
func (l ServiceAccountList) RevokeToken(ctx context.Context, by actor.Actor, u *User, id int64, unmodifiedSince *time.Time) error {
	t, err := l.token(ctx, u, id)
	if err != nil {
		return err
	}
	return l.service.revoke(ctx, by, t, unmodifiedSince)
}

// RotateToken is Service.RotateToken for a token of an account. NotFound, Invalid.
func (l ServiceAccountList) RotateToken(ctx context.Context, by actor.Actor, u *User, id int64, expiresAt string) (*Token, error) {
	t, err := l.token(ctx, u, id)
	if err != nil {
		return nil, err
	}
	return l.service.rotate(ctx, by, t, expiresAt)
}

func (l ServiceAccountList) token(ctx context.Context, u *User, id int64) (*Token, error) {
	t, err := findToken(ctx, l.service.DB, id)
	if err != nil {
		return nil, err
	}
	if t.UserID != u.ID || t.Kind != Personal {
		return nil, errs.NotFound("Personal Access Token")
	}
	return t, nil
}

func (l ServiceAccountList) record(ctx context.Context, tx *db.Tx, by actor.Actor, u *User, kind string, d audit.Details) error {
	return audit.Record(ctx, tx, by, l.service.Now(), audit.Event{
		Type: kind, Entity: l.of.Entity, Target: audit.Target{Type: "User", ID: u.ID, Details: u.Username}, Details: d,
	})
}
