package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/secret"
	"svc/internal/user"
)

// refreshLife is the lifetime of an unused refresh token.
const refreshLife = 180 * 24 * time.Hour

// TokenRequest has the parameters of a token request. An empty secret means none.
type TokenRequest struct {
	GrantType    string
	ClientID     string
	ClientSecret string
	Code         string
	RedirectURI  string
	Verifier     string
	RefreshToken string
	Username     string
	Password     string
	Scope        string

	IP string
}

// Tokens is the response to a token request.
type Tokens struct {
	AccessToken  string
	RefreshToken string // empty for the password grant
	IDToken      string // with the scope openid
	Scopes       []string
	CreatedAt    time.Time
}

// Exchange returns tokens for a code, a refresh token or a password. No actor is
// required. Errors are *Error, or limit.Refused if too many credentials from the
// address were wrong.
func (s *Service) Exchange(ctx context.Context, r TokenRequest) (*Tokens, error) {
	t, err := s.exchange(ctx, r)
	if refused, ok := errors.AsType[*Error](err); ok && r.GrantType != "password" && (refused.Code == InvalidClient || refused.Code == InvalidGrant) {
		return nil, s.Users.FailedToken(ctx, r.IP, refused) // CheckPassword counts wrong passwords
	}
	return t, err
}

func (s *Service) exchange(ctx context.Context, r TokenRequest) (*Tokens, error) {
	switch r.GrantType {
	case "":
		return nil, missing("grant_type")
	case "authorization_code":
		return s.exchangeCode(ctx, r)
	case "refresh_token":
		return s.refresh(ctx, r)
	case "password":
		return s.exchangePassword(ctx, r)
	case "urn:ietf:params:oauth:grant-type:device_code":
		return nil, refuse(UnsupportedGrant, "The device authorization grant is not supported.")
	}
	return nil, refuse(UnsupportedGrant, "The grant type must be authorization_code, refresh_token or password.")
}

// client returns the application of an external request. If a secret was sent, it
// must be correct; proven reports that one was. Built-in applications are refused
// like unknown ones.
func (s *Service) client(ctx context.Context, id, text string) (app *Application, proven bool, err error) {
	app, err = findByUID(ctx, s.DB, id)
	if errs.Is(err, errs.KindNotFound) || err == nil && (app.Disabled || app.Builtin) {
		return nil, false, refuse(InvalidClient, textInvalidClient)
	}
	if err != nil {
		return nil, false, fmt.Errorf("find client: %w", err)
	}
	if text == "" {
		return app, false, nil
	}
	if !secret.Equal(secret.Digest(text), app.digest) {
		return nil, false, refuse(InvalidClient, textInvalidClient)
	}
	return app, true, nil
}

func (s *Service) exchangeCode(ctx context.Context, r TokenRequest) (*Tokens, error) {
	app, proven, err := s.client(ctx, r.ClientID, r.ClientSecret)
	if err != nil {
		return nil, err
	}
	return s.redeem(ctx, app, proven, r)
}

// RedeemBuiltin exchanges a code of a built-in application for an access token,
// without a refresh token. Only the server itself calls it, for a code that
// reached the part of the server that the application represents. Errors are
// *Error.
func (s *Service) RedeemBuiltin(ctx context.Context, r TokenRequest) (*Tokens, error) {
	app, err := findByUID(ctx, s.DB, r.ClientID)
	if errs.Is(err, errs.KindNotFound) || err == nil && (app.Disabled || !app.Builtin) {
		return nil, refuse(InvalidClient, textInvalidClient)
	}
	if err != nil {
		return nil, fmt.Errorf("find client: %w", err)
	}
	return s.redeem(ctx, app, false, r)
}

// redeem exchanges a code for tokens. proven reports that the client sent its
// secret.
func (s *Service) redeem(ctx context.Context, app *Application, proven bool, r TokenRequest) (*Tokens, error) {
	switch {
	case r.Code == "":
		return nil, missing("code")
	case r.RedirectURI == "":
		return nil, missing("redirect_uri")
	}
	c, err := findCode(ctx, s.DB, secret.Digest(r.Code))
	if errors.Is(err, db.ErrNoRows) {
		return nil, refuse(InvalidGrant, textInvalidGrant)
	}
	if err != nil {
		return nil, fmt.Errorf("find code: %w", err)
	}
	g := &c.grant
	if g.applicationID == nil || *g.applicationID != app.ID || g.revokedAt != nil {
		return nil, refuse(InvalidGrant, textInvalidGrant)
	}
	if c.usedAt != nil {
		return nil, s.replayed(ctx, g, r.IP, "An authorization code was used twice")
	}
	switch {
	case c.challenge == "" && !proven: // for any application, a PKCE verifier replaces the secret
		return nil, refuse(InvalidClient, textInvalidClient)
	case !s.Now().Before(c.expiresAt), r.RedirectURI != g.redirectURI:
		return nil, refuse(InvalidGrant, textInvalidGrant)
	case c.challenge == "" && r.Verifier != "", c.challenge != "" && !verifies(c.challenge, r.Verifier):
		return nil, refuse(InvalidGrant, textInvalidGrant)
	}
	made, err := s.mint(ctx, app, g, g.scopes, g.nonce)
	if err != nil {
		return nil, err
	}
	if app.Builtin {
		made.RefreshToken = ""
	}
	return s.give(ctx, made, r.IP, "An authorization code was used twice", func(tx *db.Tx) error {
		return useCode(ctx, tx, c.id, s.Now())
	})
}

func (s *Service) refresh(ctx context.Context, r TokenRequest) (*Tokens, error) {
	app, proven, err := s.client(ctx, r.ClientID, r.ClientSecret)
	if err != nil {
		return nil, err
	}
	if r.RefreshToken == "" {
		return nil, missing("refresh_token")
	}
	old, err := findRefresh(ctx, s.DB, secret.Digest(r.RefreshToken))
	if errors.Is(err, db.ErrNoRows) {
		return nil, refuse(InvalidGrant, textInvalidGrant)
	}
	if err != nil {
		return nil, fmt.Errorf("find refresh token: %w", err)
	}
	g := &old.grant
	switch {
	case g.applicationID == nil, *g.applicationID != app.ID, g.revokedAt != nil:
		return nil, refuse(InvalidGrant, textInvalidGrant)
	case !g.pkce && !proven: // the same rule as for the code
		return nil, refuse(InvalidClient, textInvalidClient)
	case old.revokedAt != nil:
		return nil, s.replayed(ctx, g, r.IP, "A refresh token was used twice")
	case s.Now().Sub(old.createdAt) >= refreshLife, r.RedirectURI != "" && r.RedirectURI != g.redirectURI:
		return nil, refuse(InvalidGrant, textInvalidGrant)
	}
	scopes := old.scopes
	if r.Scope != "" {
		if scopes = scopeList(r.Scope); len(scopes) == 0 || !within(scopes, g.scopes) {
			return nil, refuse(InvalidScope, textInvalidScope)
		}
	}
	made, err := s.mint(ctx, app, g, scopes, "")
	if err != nil {
		return nil, err
	}
	return s.give(ctx, made, r.IP, "A refresh token was used twice", func(tx *db.Tx) error {
		return revokeToken(ctx, tx, old.id, s.Now())
	})
}

// minted are tokens that are not stored yet.
type minted struct {
	Tokens
	grant *grant
}

// mint generates tokens for the user of a grant, whose account must be active. Slow
// operations and those that can fail happen here, before the code or refresh token
// is used up.
func (s *Service) mint(ctx context.Context, app *Application, g *grant, scopes []string, nonce string) (*minted, error) {
	u, err := s.account(ctx, g.userID)
	if err != nil {
		return nil, err
	}
	m := &minted{grant: g, Tokens: Tokens{
		AccessToken: secret.Token(s.tokenStart() + "oat-"), RefreshToken: secret.Token(s.tokenStart() + "ort-"), Scopes: scopes, CreatedAt: s.Now(),
	}}
	if slices.Contains(scopes, "openid") {
		if m.IDToken, err = s.idToken(ctx, app, u, m, nonce); err != nil {
			return nil, fmt.Errorf("make id token: %w", err)
		}
	}
	return m, nil
}

// account returns the user of a grant if their account is active.
func (s *Service) account(ctx context.Context, id int64) (*user.User, error) {
	u, err := s.Users.Find(ctx, actor.System(), user.Ref(strconv.FormatInt(id, 10)))
	if errs.Is(err, errs.KindNotFound) || err == nil && u.State != user.Active {
		return nil, refuse(InvalidGrant, textInvalidGrant)
	}
	if err != nil {
		return nil, fmt.Errorf("find user of grant: %w", err)
	}
	return u, nil
}

// give stores tokens. spend uses up the code or refresh token that they are issued
// for; if it returns db.ErrNoRows, that was used twice, and the grant is revoked.
func (s *Service) give(ctx context.Context, m *minted, ip, story string, spend func(tx *db.Tx) error) (*Tokens, error) {
	var refused *Error
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		refused = nil
		if err := tx.Lock(ctx, "oauth_grants", m.grant.id); err != nil {
			return err
		}
		if err := touchGrant(ctx, tx, m.grant.id, m.CreatedAt); errors.Is(err, db.ErrNoRows) {
			refused = refuse(InvalidGrant, textInvalidGrant) // the grant was revoked, or its application deleted
			return nil
		} else if err != nil {
			return err
		}
		if err := spend(tx); errors.Is(err, db.ErrNoRows) {
			refused = refuse(InvalidGrant, textInvalidGrant)
			return s.endFamily(ctx, tx, m.grant, ip, story)
		} else if err != nil {
			return err
		}
		if err := insertToken(ctx, tx, m); err != nil {
			return err
		}
		return s.Users.Forget(ctx, tx, m.grant.userID)
	})
	if err != nil {
		return nil, fmt.Errorf("give tokens: %w", err)
	}
	if refused != nil {
		return nil, refused
	}
	return &m.Tokens, nil
}

// replayed revokes all tokens of a grant whose code or refresh token was used twice,
// because one of the two clients has a stolen copy.
func (s *Service) replayed(ctx context.Context, g *grant, ip, story string) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error { return s.endFamily(ctx, tx, g, ip, story) })
	if err != nil {
		return fmt.Errorf("end replayed grant %d: %w", g.id, err)
	}
	return refuse(InvalidGrant, textInvalidGrant)
}

func (s *Service) endFamily(ctx context.Context, tx *db.Tx, g *grant, ip, story string) error {
	if err := revokeGrant(ctx, tx, g.id, s.Now()); errors.Is(err, db.ErrNoRows) {
		return nil // the grant was already revoked
	} else if err != nil {
		return err
	}
	by := actor.System()
	by.IP = ip
	err := audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: "oauth_grant_replayed", Entity: audit.Entity{Type: audit.UserEntity, ID: g.userID, Path: g.username},
		Target: audit.Target{Type: "OauthGrant", ID: g.id, Details: g.application}, Details: audit.Details{Message: story},
	})
	if err != nil {
		return err
	}
	return s.Users.Forget(ctx, tx, g.userID)
}

// exchangePassword implements the password grant, with or without an application.
// There is no refresh token: the program can send the password again.
func (s *Service) exchangePassword(ctx context.Context, r TokenRequest) (*Tokens, error) {
	var app *Application
	allowed := user.Scopes()
	if r.ClientID != "" || r.ClientSecret != "" {
		var proven bool
		var err error
		if app, proven, err = s.client(ctx, r.ClientID, r.ClientSecret); err != nil {
			return nil, err
		}
		if app.Confidential && !proven {
			return nil, refuse(InvalidClient, textInvalidClient)
		}
		allowed = app.Scopes
	}
	if r.Username == "" {
		return nil, missing("username")
	}
	if r.Password == "" {
		return nil, missing("password")
	}
	scopes := scopeList(r.Scope)
	if len(scopes) == 0 {
		scopes = []string{"api"}
	}
	if !within(scopes, allowed) {
		return nil, refuse(InvalidScope, textInvalidScope)
	}
	by, err := s.Users.CheckPassword(ctx, user.ForWeb, r.Username, r.Password, r.IP)
	if errs.Is(err, errs.KindUnauthorized) || errs.Is(err, errs.KindForbidden) {
		// The reason is not returned, because it would reveal whether the password
		// is correct.
		return nil, refuse(InvalidGrant, textInvalidPassword)
	}
	if err != nil {
		return nil, err
	}
	return s.givePassword(ctx, app, by, scopes)
}

func (s *Service) givePassword(ctx context.Context, app *Application, by actor.Actor, scopes []string) (*Tokens, error) {
	now := s.Now()
	g := &grant{userID: by.ID, scopes: scopes, authenticatedAt: now, createdAt: now, usedAt: now}
	if app != nil {
		g.applicationID = &app.ID
	}
	made, err := s.mint(ctx, app, g, scopes, "")
	if err != nil {
		return nil, err
	}
	made.RefreshToken = ""
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := insertGrant(ctx, tx, g); err != nil {
			return err
		}
		return insertToken(ctx, tx, made)
	})
	if db.IsForeignKey(err) { // the application or the user was deleted
		return nil, refuse(InvalidGrant, textInvalidPassword)
	}
	if err != nil {
		return nil, fmt.Errorf("give tokens: %w", err)
	}
	return &made.Tokens, nil
}

// tokenStart returns the prefix of secrets and tokens.
func (s *Service) tokenStart() string { return cmp.Or(s.TokenPrefix, s.ServiceName) }
