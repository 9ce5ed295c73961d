package user

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/secret"
)

// TokenKind is the kind of an access token.
type TokenKind string

// The kinds of access tokens.
const (
	Personal      TokenKind = "personal"
	Impersonation TokenKind = "impersonation" // created by an administrator to act as the user
	OfBot         TokenKind = "bot"           // created by a project or group, see AddBot
)

// Scopes returns all scopes of access tokens.
func Scopes() []string {
	return []string{
		"api", "read_api", "read_user", "create_runner", "manage_runner", "k8s_proxy",
		"read_repository", "write_repository", "sudo", "admin_mode", "openid", "profile", "email",
	}
}

// Token is an access token. Its secret is only known when it is created.
type Token struct {
	ID          int64
	UserID      int64
	Kind        TokenKind
	Name        string
	Description string
	Scopes      []string
	CreatedAt   time.Time
	ExpiresAt   string // first day on which it is invalid, YYYY-MM-DD; empty means never
	RevokedAt   *time.Time
	LastUsedAt  *time.Time

	Secret string // set by operations that create a token
}

// Active reports whether the token is valid.
func (t *Token) Active(now time.Time) bool {
	return t.RevokedAt == nil && (t.ExpiresAt == "" || now.UTC().Format(time.DateOnly) < t.ExpiresAt)
}

// NewToken has the fields of a new token.
type NewToken struct {
	Name        string
	Description string
	Scopes      []string
	ExpiresAt   string // date; empty means the latest that the settings allow
}

// CreateToken creates a personal access token for a user. Requires an
// administrator.
func (s *Service) CreateToken(ctx context.Context, by actor.Actor, userID int64, n NewToken) (*Token, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	return s.createToken(ctx, by, userID, Personal, n)
}

// CreateOwnToken creates a token for the actor, with the scope k8s_proxy only. It
// expires at the end of the day by default. Forbidden for bot users.
func (s *Service) CreateOwnToken(ctx context.Context, by actor.Actor, n NewToken) (*Token, error) {
	if err := by.RequireHuman("create personal access tokens"); err != nil {
		return nil, err
	}
	for _, scope := range n.Scopes {
		if scope != "k8s_proxy" {
			return nil, errs.Invalid("scopes does not have a valid value")
		}
	}
	if n.ExpiresAt == "" {
		n.ExpiresAt = s.Now().AddDate(0, 0, 1).Format(time.DateOnly)
	}
	return s.createToken(ctx, by, by.ID, Personal, n)
}

// CreateImpersonationToken creates an impersonation token. Requires an
// administrator, and that the settings allow impersonation.
func (s *Service) CreateImpersonationToken(ctx context.Context, by actor.Actor, userID int64, n NewToken) (*Token, error) {
	if err := s.requireImpersonation(ctx, by); err != nil {
		return nil, err
	}
	return s.createToken(ctx, by, userID, Impersonation, n)
}

func (s *Service) requireImpersonation(ctx context.Context, by actor.Actor) error {
	if err := by.RequireAdmin(); err != nil {
		return err
	}
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return err
	}
	if !settings.ImpersonationEnabled {
		return errs.NotFound("")
	}
	return nil
}

func (s *Service) createToken(ctx context.Context, by actor.Actor, userID int64, kind TokenKind, n NewToken) (*Token, error) {
	if _, err := s.find(ctx, s.DB, by, userID); err != nil {
		return nil, err
	}
	t, err := s.newToken(ctx, kind, n)
	if err != nil {
		return nil, err
	}
	t.UserID = userID
	err = s.DB.Tx(ctx, func(tx *db.Tx) error { return s.addToken(ctx, tx, by, t) })
	if err != nil {
		return nil, fmt.Errorf("create token: %w", err)
	}
	return t, nil
}

// newToken validates a new token and generates its secret.
func (s *Service) newToken(ctx context.Context, kind TokenKind, n NewToken) (*Token, error) {
	if strings.TrimSpace(n.Name) == "" {
		return nil, errs.InvalidField("name", "can't be blank")
	}
	if len(n.Name) > 255 {
		return nil, errs.InvalidField("name", "is too long (maximum is 255 characters)")
	}
	if len(n.Scopes) == 0 {
		return nil, errs.InvalidField("scopes", "can't be blank")
	}
	for _, scope := range n.Scopes {
		if !slices.Contains(Scopes(), scope) {
			return nil, errs.InvalidField("scopes", "can only contain available scopes")
		}
	}
	expires, err := s.tokenExpiry(ctx, n.ExpiresAt)
	if err != nil {
		return nil, err
	}
	scopes := slices.Clone(n.Scopes)
	slices.Sort(scopes)
	return &Token{
		Kind: kind, Name: n.Name, Description: n.Description, Scopes: slices.Compact(scopes),
		ExpiresAt: expires, CreatedAt: s.Now(), Secret: secret.Token(s.TokenStart() + "pat-"),
	}, nil
}

// tokenExpiry validates an expiration date, or returns the latest one allowed.
func (s *Service) tokenExpiry(ctx context.Context, day string) (string, error) {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return "", err
	}
	now := s.Now().UTC()
	last := now.AddDate(0, 0, settings.MaxTokenLifetimeDays).Format(time.DateOnly)
	switch {
	case day == "":
		return last, nil
	case day < now.Format(time.DateOnly):
		return "", errs.InvalidField("expires_at", "can't be in the past")
	case day > last:
		return "", errs.InvalidField("expires_at", "must expire in %d days", settings.MaxTokenLifetimeDays)
	}
	return day, nil
}

// addToken inserts a token and adds an audit event.
func (s *Service) addToken(ctx context.Context, tx *db.Tx, by actor.Actor, t *Token) error {
	if err := insertToken(ctx, tx, t, secret.Digest(t.Secret), 0); err != nil {
		return err
	}
	return s.recordNew(ctx, tx, by, t)
}

func (s *Service) recordNew(ctx context.Context, tx *db.Tx, by actor.Actor, t *Token) error {
	what := "Created personal access token with id " + fmt.Sprint(t.ID)
	if t.Kind == Impersonation {
		what = "Created impersonation token with id " + fmt.Sprint(t.ID)
	}
	return s.recordToken(ctx, tx, by, t, string(t.Kind)+"_access_token_created", what)
}

func (s *Service) recordToken(ctx context.Context, tx *db.Tx, by actor.Actor, t *Token, kind, message string) error {
	u, err := findUser(ctx, tx, t.UserID)
	if err != nil {
		return err
	}
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: u.entity(),
		Target:  audit.Target{Type: "PersonalAccessToken", ID: t.ID, Details: t.Name},
		Details: audit.Details{Message: message},
	})
}

// TokenFilter selects tokens. Zero values match everything.
type TokenFilter struct {
	UserID         int64
	State          string // active or inactive
	Revoked        *bool
	Search         string
	CreatedAfter   *time.Time
	CreatedBefore  *time.Time
	LastUsedAfter  *time.Time
	LastUsedBefore *time.Time
	ExpiresAfter   string
	ExpiresBefore  string
	Sort           TokenSort
}

// TokenSort is the order of a list of tokens. The default is oldest first.
type TokenSort struct {
	By   string // created, expires, last_used or name
	Desc bool
}

// Tokens lists personal access tokens, oldest first. Administrators can list all
// tokens, other users their own: Forbidden otherwise.
func (s *Service) Tokens(ctx context.Context, by actor.Actor, f TokenFilter, p db.Paging) (db.Page[Token], error) {
	if err := by.RequireUser(); err != nil {
		return db.Page[Token]{}, err
	}
	if !by.Admin {
		if f.UserID != 0 && f.UserID != by.ID {
			return db.Page[Token]{}, errs.Forbidden("")
		}
		f.UserID = by.ID
	}
	return listTokens(ctx, s.DB, Personal, f, s.Now(), p)
}

// ImpersonationTokens lists the impersonation tokens of a user. Requires an
// administrator.
func (s *Service) ImpersonationTokens(ctx context.Context, by actor.Actor, userID int64, state string, p db.Paging) (db.Page[Token], error) {
	if err := s.requireImpersonation(ctx, by); err != nil {
		return db.Page[Token]{}, err
	}
	if _, err := s.find(ctx, s.DB, by, userID); err != nil {
		return db.Page[Token]{}, err
	}
	return listTokens(ctx, s.DB, Impersonation, TokenFilter{UserID: userID, State: state}, s.Now(), p)
}

// ImpersonationToken returns an impersonation token. Requires an administrator.
func (s *Service) ImpersonationToken(ctx context.Context, by actor.Actor, userID, id int64) (*Token, error) {
	if err := s.requireImpersonation(ctx, by); err != nil {
		return nil, err
	}
	if _, err := s.find(ctx, s.DB, by, userID); err != nil {
		return nil, err
	}
	t, err := findToken(ctx, s.DB, id)
	if err != nil {
		return nil, err
	}
	if t.UserID != userID || t.Kind != Impersonation {
		return nil, errs.NotFound("Impersonation Token")
	}
	return t, nil
}

// RevokeImpersonationToken revokes an impersonation token. Requires an
// administrator.
func (s *Service) RevokeImpersonationToken(ctx context.Context, by actor.Actor, userID, id int64, unmodifiedSince *time.Time) error {
	t, err := s.ImpersonationToken(ctx, by, userID, id)
	if err != nil {
		return err
	}
	return s.revoke(ctx, by, t, unmodifiedSince)
}

// Token returns a personal access token. Requires its owner or an administrator.
// NotFound.
func (s *Service) Token(ctx context.Context, by actor.Actor, id int64) (*Token, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	t, err := findToken(ctx, s.DB, id)
	if err != nil {
		return nil, err
	}
	if t.Kind != Personal || !by.Admin && t.UserID != by.ID {
		return nil, errs.NotFound("")
	}
	return t, nil
}

// SelfToken returns the token that the actor uses. Unauthorized if there is none.
func (s *Service) SelfToken(ctx context.Context, by actor.Actor) (*Token, error) {
	if by.TokenID == 0 {
		return nil, errs.Unauthorized("")
	}
	return findToken(ctx, s.DB, by.TokenID)
}

// RevokeToken revokes a personal access token. Requires its owner or an
// administrator.
func (s *Service) RevokeToken(ctx context.Context, by actor.Actor, id int64, unmodifiedSince *time.Time) error {
	t, err := s.Token(ctx, by, id)
	if err != nil {
		return err
	}
	return s.revoke(ctx, by, t, unmodifiedSince)
}

// RevokeSelfToken revokes the token that the actor uses.
func (s *Service) RevokeSelfToken(ctx context.Context, by actor.Actor) error {
	t, err := s.SelfToken(ctx, by)
	if err != nil {
		return err
	}
	return s.revoke(ctx, by, t, nil)
}

func (s *Service) revoke(ctx context.Context, by actor.Actor, t *Token, unmodifiedSince *time.Time) error {
	if err := errs.ChangedSince(t.CreatedAt, unmodifiedSince); err != nil {
		return err
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		err := revokeToken(ctx, tx, t.ID, s.Now())
		if errors.Is(err, db.ErrNoRows) {
			return nil // revoked concurrently
		}
		if err != nil {
			return err
		}
		if err := s.recordToken(ctx, tx, by, t, string(t.Kind)+"_access_token_revoked", fmt.Sprintf("Revoked %s access token with id %d", t.Kind, t.ID)); err != nil {
			return err
		}
		return s.dropActor(ctx, tx, t.UserID)
	})
	if err != nil {
		return fmt.Errorf("revoke token %d: %w", t.ID, err)
	}
	return nil
}

// TokenStart returns the prefix of the tokens of the instance.
func (s *Service) TokenStart() string { return cmp.Or(s.TokenPrefix, s.ServiceName) }
