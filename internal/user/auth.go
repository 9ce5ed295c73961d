package user

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/notice"
	"svc/internal/secret"
)

// topic is the topic of notices that a user or one of their credentials has
// changed. The key is the user ID.
const topic = "user"

const (
	// tokenTouch is the precision of the last use of a token.
	tokenTouch = 10 * time.Minute
	// actorTTL is how long a cached actor is used if no notice arrives.
	actorTTL = time.Minute
	// actorsMax is the maximum number of cached actors, of about 1 KiB each.
	actorsMax = 20_000
)

// credential is a stored access token with its account.
type credential struct {
	token  Token
	oauth  *OAuthToken // instead of token
	actor  actor.Actor
	state  State
	active string // last_activity_on
}

// OAuthToken is an access token with which an OAuth application acts for a user.
type OAuthToken struct {
	ID        int64 // OAuthTokenID of the actor
	UserID    int64
	Scopes    []string
	ExpiresAt time.Time
	Revoked   bool
}

// TokenSource finds an OAuth access token by its digest. ErrNoRows. The feature
// that owns the tokens calls Forget in the transaction that revokes one.
type TokenSource func(ctx context.Context, q db.Q, digest string) (*OAuthToken, error)

// OnToken registers a TokenSource. It is called at startup.
func (s *Service) OnToken(l TokenSource) { s.tokenSources = append(s.tokenSources, l) }

// Forget drops the cached credentials of a user on all nodes when the transaction
// is committed.
func (s *Service) Forget(ctx context.Context, tx *db.Tx, userID int64) error {
	return s.dropActor(ctx, tx, userID)
}

// Authenticate returns the actor for a personal access token, an impersonation
// token, or a token of another feature. Unauthorized if the token is unknown,
// revoked, expired or not allowed by the settings; Forbidden if the account may
// not be used; limit.Refused instead of Unauthorized if there were too many
// failures from the IP address.
func (s *Service) Authenticate(ctx context.Context, token, ip string) (actor.Actor, error) {
	by, err := s.TryToken(ctx, token, ip)
	if errs.Is(err, errs.KindUnauthorized) {
		err = s.FailedToken(ctx, ip, err)
	}
	return by, err
}

// TryToken is Authenticate for a string that may be another kind of credential. It
// does not count failures; the caller does if nothing matches.
func (s *Service) TryToken(ctx context.Context, token, ip string) (actor.Actor, error) {
	now := s.Now()
	c, err := s.credential(ctx, secret.Digest(token))
	if errors.Is(err, db.ErrNoRows) {
		return actor.Actor{}, errs.Unauthorized("")
	}
	if err != nil {
		return actor.Actor{}, fmt.Errorf("authenticate: %w", err)
	}
	if err := c.usable(now); err != nil {
		return actor.Actor{}, err
	}
	if c.token.Kind == Impersonation {
		settings, err := s.Settings.Current(ctx)
		if err != nil {
			return actor.Actor{}, err
		}
		if !settings.ImpersonationEnabled {
			return actor.Actor{}, errs.Unauthorized("Impersonation is disabled.")
		}
	}
	if err := c.state.refusal(); err != nil {
		return actor.Actor{}, err
	}
	if err := s.touch(ctx, c, now); err != nil {
		return actor.Actor{}, fmt.Errorf("authenticate: %w", err)
	}
	by := c.actor
	by.IP = ip
	return by, nil
}

// usable returns an error if the token has expired or was revoked.
func (c *credential) usable(now time.Time) error {
	active, revoked := c.token.Active(now), c.token.RevokedAt != nil
	if c.oauth != nil {
		active, revoked = !c.oauth.Revoked && now.Before(c.oauth.ExpiresAt), c.oauth.Revoked
	}
	switch {
	case active:
		return nil
	case revoked:
		return errs.Unauthorized("Token was revoked.")
	}
	return errs.Unauthorized("Token is expired.")
}

// refusal returns the error for credentials of an account in this state.
func (s State) refusal() error {
	switch s {
	case Blocked, Banned:
		return errs.Forbidden("Your account has been blocked.")
	case Deactivated:
		return errs.Forbidden("Your account has been deactivated by your administrator. Please log back in to reactivate your account.")
	case PendingApproval:
		return errs.Forbidden("Your account is pending approval from your administrator and hence blocked.")
	}
	return nil
}

// Become returns the actor for another account, for sudo. Requires an
// administrator. Forbidden; NotFound.
func (s *Service) Become(ctx context.Context, by actor.Actor, ref Ref) (actor.Actor, error) {
	if !by.Admin {
		return actor.Actor{}, errs.Forbidden("Must be admin to use sudo")
	}
	u, err := findByRef(ctx, s.DB, ref)
	if errs.Is(err, errs.KindNotFound) {
		return actor.Actor{}, errs.NotFound(fmt.Sprintf("User with ID or username '%s'", ref))
	}
	if err != nil {
		return actor.Actor{}, err
	}
	if err := u.State.refusal(); err != nil {
		return actor.Actor{}, err
	}
	as := s.toActor(u, by.IP)
	as.Scopes = by.Scopes
	if by.ID != actor.SystemID { // the server acts for a user, it does not impersonate them
		as.Impersonator = &by
	}
	return as, nil
}

// As returns the actor for a user on whose behalf a background job runs. NotFound;
// Forbidden if the account may not be used.
func (s *Service) As(ctx context.Context, userID int64) (actor.Actor, error) {
	return s.Become(ctx, actor.System(), Ref(strconv.FormatInt(userID, 10)))
}

func (s *Service) toActor(u *User, ip string) actor.Actor {
	return actor.Actor{
		ID: u.ID, Username: u.Username, Name: u.Name, Email: u.Email, CommitEmail: u.CommitAddress(s.Host),
		Admin: u.Admin, Auditor: u.Auditor, External: u.External, Bot: u.Bot(), IP: ip,
	}
}

// touch records the activity of the user and the use of the token. Both are
// updated rarely, so that reads do not cause writes.
func (s *Service) touch(ctx context.Context, c *credential, now time.Time) error {
	if err := s.noteActivity(ctx, c.actor.ID, c.active, now); err != nil {
		return err
	}
	if c.oauth != nil || c.token.LastUsedAt != nil && now.Sub(*c.token.LastUsedAt) < tokenTouch {
		return nil
	}
	if err := touchToken(ctx, s.DB, c.token.ID, now); err != nil {
		return err
	}
	s.actors.DropGroup(c.actor.ID) // read again with the new times
	return nil
}

// noteActivity records the date of the last activity, at most once a day.
func (s *Service) noteActivity(ctx context.Context, userID int64, last string, now time.Time) error {
	var room [len(time.DateOnly)]byte
	today := now.AppendFormat(room[:0], time.DateOnly)
	if last >= string(today) { // the common case; avoids an allocation
		return nil
	}
	s.actors.DropGroup(userID)
	return saveActivity(ctx, s.DB, userID, string(today), now)
}

// credential returns a token with its account, from the cache if possible.
func (s *Service) credential(ctx context.Context, digest string) (*credential, error) {
	return s.actors.Get(digest, func() (*credential, bool, error) {
		c, err := s.findCredential(ctx, digest)
		return c, true, err
	})
}

// findCredential searches personal access tokens, then the tokens of other
// features.
func (s *Service) findCredential(ctx context.Context, digest string) (*credential, error) {
	c, err := s.readCredential(ctx, digest)
	for i := 0; i < len(s.tokenSources) && errors.Is(err, db.ErrNoRows); i++ {
		var token *OAuthToken
		if token, err = s.tokenSources[i](ctx, s.DB, digest); err == nil {
			c, err = s.readOAuth(ctx, token)
		}
	}
	return c, err
}

// dropActor drops the cached credentials of a user on all nodes when the
// transaction is committed.
func (s *Service) dropActor(ctx context.Context, tx *db.Tx, userID int64) error {
	return s.Notices.Send(ctx, tx, topic, strconv.FormatInt(userID, 10))
}

// OnChange registers a function that is called with a user ID when the account,
// credentials or sessions of the user have changed, after the caches of this node
// were cleared; 0 means all users. It must be fast. OnChange is called at startup.
func (s *Service) OnChange(f func(userID int64)) {
	s.Notices.Subscribe(topic, func(key string) {
		id, err := strconv.ParseInt(key, 10, 64)
		if err != nil {
			id = 0
		}
		f(id)
	})
}

// watchNotices creates the cache of credentials, by token digest, and drops those
// of a user when a notice arrives. The cache holds no secrets: a digest is not
// accepted as a token.
func (s *Service) watchNotices() {
	s.actors = notice.NewCache[string](notice.CacheOptions[*credential]{
		Bus: s.Notices, TTL: actorTTL, Now: s.Now, Max: actorsMax,
		Group: func(c *credential) int64 { return c.actor.ID },
	})
	s.Notices.Subscribe(topic, func(key string) {
		id, err := strconv.ParseInt(key, 10, 64)
		if err != nil { // notices were lost, so drop everything
			s.actors.Drop()
			return
		}
		s.actors.DropGroup(id)
	})
}
