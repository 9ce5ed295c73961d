package oauth

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/secret"
	"svc/internal/user"
)

// Application is an OAuth application.
type Application struct {
	ID           int64
	UID          string // the client_id
	Name         string
	RedirectURIs []string
	Scopes       []string // the scopes that it may request
	Confidential bool     // can keep a secret
	Trusted      bool     // users are not asked for consent
	Disabled     bool     // gets no tokens
	Builtin      bool     // part of the server; gets tokens by RedeemBuiltin only
	OwnerID      *int64   // nil for applications of the instance
	CreatedAt    time.Time
	UpdatedAt    time.Time

	Secret string // set only by Create and RenewSecret

	digest string // of the secret
}

// NewApplication has the fields of a new application.
type NewApplication struct {
	Name         string
	RedirectURIs string // one per line
	Scopes       []string
	Confidential bool
	Trusted      bool // applications of the instance only
}

// Create creates an application of the instance. Requires an administrator.
// Invalid.
func (s *Service) Create(ctx context.Context, by actor.Actor, n NewApplication) (*Application, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	return s.create(ctx, by, nil, n)
}

// CreateOwn creates an application of the actor. It is never trusted. Forbidden
// for bot users.
func (s *Service) CreateOwn(ctx context.Context, by actor.Actor, n NewApplication) (*Application, error) {
	if err := by.RequireHuman("create applications"); err != nil {
		return nil, err
	}
	n.Trusted = false
	return s.create(ctx, by, &by.ID, n)
}

func (s *Service) create(ctx context.Context, by actor.Actor, owner *int64, n NewApplication) (*Application, error) {
	app := &Application{
		UID: secret.Token(""), OwnerID: owner, Confidential: n.Confidential, Trusted: n.Trusted, CreatedAt: s.Now(), UpdatedAt: s.Now(),
	}
	if err := app.set(n.Name, n.RedirectURIs, n.Scopes); err != nil {
		return nil, err
	}
	s.newSecret(app)
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := insertApplication(ctx, tx, app); err != nil {
			return err
		}
		return s.record(ctx, tx, by, app, "oauth_application_created", audit.Details{Add: "oauth_application", Message: "OAuth application added"})
	})
	if err != nil {
		return nil, fmt.Errorf("create application: %w", err)
	}
	return app, nil
}

func (s *Service) newSecret(app *Application) {
	app.Secret = secret.Token(s.tokenStart() + "oas-")
	app.digest = secret.Digest(app.Secret)
}

// set validates and sets the fields that users enter.
func (a *Application) set(name, redirects string, scopes []string) error {
	a.Name = strings.TrimSpace(name)
	if a.Name == "" {
		return errs.InvalidField("name", "can't be blank")
	}
	if len(a.Name) > 255 {
		return errs.InvalidField("name", "is too long (maximum is 255 characters)")
	}
	var err error
	if a.RedirectURIs, err = parseRedirects(redirects); err != nil {
		return err
	}
	a.Scopes = scopeList(strings.Join(scopes, " "))
	if len(a.Scopes) == 0 {
		return errs.InvalidField("scopes", "can't be blank")
	}
	if !slices.ContainsFunc(a.Scopes, func(scope string) bool { return !known(scope) }) {
		return nil
	}
	return errs.InvalidField("scopes", "doesn't match configured on the server.")
}

// Change lists changes to an application; nil keeps the current value.
type Change struct {
	Name         *string
	RedirectURIs *string
	Scopes       []string
	Confidential *bool
	Trusted      *bool // administrators only
	Disabled     *bool // administrators only
}

// Update changes an application. Requires its owner, or an administrator for
// applications of the instance. NotFound. If the application is disabled, or loses
// a scope, the affected tokens are revoked.
func (s *Service) Update(ctx context.Context, by actor.Actor, id int64, c Change) (*Application, error) {
	if !by.Admin && (c.Trusted != nil || c.Disabled != nil) {
		return nil, errs.Forbidden("")
	}
	return s.change(ctx, by, id, func(tx *db.Tx, app *Application) error {
		was := *app
		if err := app.apply(c); err != nil {
			return err
		}
		if app.Disabled && !was.Disabled || !within(was.Scopes, app.Scopes) {
			if err := s.endAll(ctx, tx, app.ID); err != nil {
				return err
			}
		}
		return s.record(ctx, tx, by, app, "oauth_application_updated", audit.Details{Change: "oauth_application", Message: "OAuth application changed"})
	})
}

func (a *Application) apply(c Change) error {
	name, redirects, scopes := a.Name, strings.Join(a.RedirectURIs, "\n"), a.Scopes
	if c.Name != nil {
		name = *c.Name
	}
	if c.RedirectURIs != nil {
		redirects = *c.RedirectURIs
	}
	if c.Scopes != nil {
		scopes = c.Scopes
	}
	for to, value := range map[*bool]*bool{&a.Confidential: c.Confidential, &a.Trusted: c.Trusted, &a.Disabled: c.Disabled} {
		if value != nil {
			*to = *value
		}
	}
	a.Trusted = a.Trusted && a.OwnerID == nil
	return a.set(name, redirects, scopes)
}

// RenewSecret replaces the secret of an application. Permissions are those of
// Update.
func (s *Service) RenewSecret(ctx context.Context, by actor.Actor, id int64) (*Application, error) {
	return s.change(ctx, by, id, func(tx *db.Tx, app *Application) error {
		s.newSecret(app)
		return s.record(ctx, tx, by, app, "oauth_application_secret_renewed", audit.Details{Change: "secret", Message: "OAuth application secret renewed"})
	})
}

// change runs f on an application that the actor may change, and saves it.
func (s *Service) change(ctx context.Context, by actor.Actor, id int64, f func(tx *db.Tx, app *Application) error) (*Application, error) {
	var app *Application
	err := s.DB.Tx(ctx, func(tx *db.Tx) (err error) {
		if app, err = s.own(ctx, tx, by, id); err != nil {
			return err
		}
		if err := f(tx, app); err != nil {
			return err
		}
		app.UpdatedAt = s.Now()
		return saveApplication(ctx, tx, app)
	})
	if err != nil {
		return nil, fmt.Errorf("change application %d: %w", id, err)
	}
	return app, nil
}

// Delete deletes an application and revokes all its tokens. Permissions are those
// of Update.
func (s *Service) Delete(ctx context.Context, by actor.Actor, id int64) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		app, err := s.own(ctx, tx, by, id)
		if err != nil {
			return err
		}
		if err := s.endAll(ctx, tx, app.ID); err != nil {
			return err
		}
		if err := deleteApplication(ctx, tx, app.ID); err != nil {
			return err
		}
		return s.record(ctx, tx, by, app, "oauth_application_deleted", audit.Details{Remove: "oauth_application", Message: "OAuth application removed"})
	})
	if err != nil {
		return fmt.Errorf("delete application %d: %w", id, err)
	}
	return nil
}

// Builtin creates or updates the application of a part of the server itself. It
// belongs to the instance and is trusted, so users are not asked for consent. For
// that reason the token endpoint refuses it: see RedeemBuiltin. Builtin is called
// at startup.
func (s *Service) Builtin(ctx context.Context, uid, name, redirect string, scopes []string) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		app, err := findByUID(ctx, tx, uid)
		if errs.Is(err, errs.KindNotFound) {
			app, err = &Application{UID: uid, Confidential: true, Trusted: true, Builtin: true, CreatedAt: s.Now(), UpdatedAt: s.Now()}, nil
			s.newSecret(app) // not known to anyone
		}
		if err != nil {
			return err
		}
		if app.ID != 0 && app.Builtin && slices.Equal(app.RedirectURIs, []string{redirect}) && slices.Equal(app.Scopes, scopes) {
			return nil
		}
		if err := app.set(name, redirect, scopes); err != nil {
			return err
		}
		app.Builtin = true
		if app.ID != 0 {
			return saveApplication(ctx, tx, app)
		}
		return insertApplication(ctx, tx, app)
	})
	if db.IsUnique(err, "oauth_applications_uid") {
		return nil // a node that started at the same time has created it
	}
	if err != nil {
		return fmt.Errorf("application %s: %w", uid, err)
	}
	return nil
}

// Application returns an application. Permissions are those of Update.
func (s *Service) Application(ctx context.Context, by actor.Actor, id int64) (*Application, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	app, err := findApplication(ctx, s.DB, id)
	if err != nil {
		return nil, err
	}
	return app, app.require(by)
}

// own reads an application that the actor may change, and locks it.
func (s *Service) own(ctx context.Context, tx *db.Tx, by actor.Actor, id int64) (*Application, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	if err := tx.Lock(ctx, "oauth_applications", id); err != nil {
		return nil, err
	}
	app, err := findApplication(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	return app, app.require(by)
}

// require returns an error unless the actor may change the application: its owner,
// or an administrator for applications of the instance.
func (a *Application) require(by actor.Actor) error {
	if a.OwnerID == nil && by.Admin || a.OwnerID != nil && by.Is(*a.OwnerID) {
		return nil
	}
	return errs.NotFound("Application")
}

// Applications lists the applications of the instance, oldest first. Requires an
// administrator.
func (s *Service) Applications(ctx context.Context, by actor.Actor, p db.Paging) (db.Page[*Application], error) {
	if err := by.RequireAdmin(); err != nil {
		return db.Page[*Application]{}, err
	}
	return listApplications(ctx, s.DB, nil, p)
}

// OwnApplications lists the applications of the actor.
func (s *Service) OwnApplications(ctx context.Context, by actor.Actor, p db.Paging) (db.Page[*Application], error) {
	if err := by.RequireUser(); err != nil {
		return db.Page[*Application]{}, err
	}
	return listApplications(ctx, s.DB, &by.ID, p)
}

// record writes an audit event about an application, for its owner or for the
// instance.
func (s *Service) record(ctx context.Context, tx *db.Tx, by actor.Actor, app *Application, kind string, d audit.Details) error {
	entity := audit.Instance()
	if app.OwnerID != nil {
		entity = audit.Entity{Type: audit.UserEntity, ID: *app.OwnerID, Path: by.Username}
	}
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: entity, Target: audit.Target{Type: "OauthApplication", ID: app.ID, Details: app.Name}, Details: d,
	})
}

// endAll revokes all authorizations of an application.
func (s *Service) endAll(ctx context.Context, tx *db.Tx, id int64) error {
	users, err := usersOf(ctx, tx, id)
	if err != nil {
		return err
	}
	if err := revokeOf(ctx, tx, id, s.Now()); err != nil {
		return err
	}
	for _, userID := range users {
		if err := s.Users.Forget(ctx, tx, userID); err != nil {
			return err
		}
	}
	return nil
}

// UserReclaimed revokes the authorizations that a user has granted.
func (s *Service) UserReclaimed(ctx context.Context, tx *db.Tx, r user.Reclaim) error {
	return revokeAllOf(ctx, tx, r.UserID, s.Now())
}

// UserDeleted deletes the applications of a deleted user, with the tokens of
// everyone who authorized them.
func (s *Service) UserDeleted(ctx context.Context, tx *db.Tx, d user.Deletion) error {
	ids, err := applicationsOf(ctx, tx, d.UserID)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.endAll(ctx, tx, id); err != nil {
			return err
		}
		if err := deleteApplication(ctx, tx, id); err != nil {
			return err
		}
	}
	return nil
}
