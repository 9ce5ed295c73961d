package user

import (
	"context"
	"errors"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/secret"
)

// Session is a session of a user in a browser.
type Session struct {
	ID         int64
	UserID     int64
	CSRF       string // CSRF token
	IP         string // of the last request
	UserAgent  string
	CreatedAt  time.Time
	LastSeenAt time.Time // precise to sessionTouch
	ExpiresAt  time.Time // extended by each use

	// Token is the value of the cookie. It is set by SignIn only; the database stores
	// its digest.
	Token string
	// Remember makes the cookie persistent. It is set by SignIn only.
	Remember bool
	// User is the owner of the session. It is set by Service.Session only.
	User *User
	// Impersonator is the administrator who impersonates the User; may be nil. It is
	// set by Service.Session only.
	Impersonator *User

	actingAs *int64
}

const (
	// rememberFor is the lifetime of an unused session with a persistent cookie.
	rememberFor = 14 * 24 * time.Hour
	// sessionTouch is the precision of the last use of a session. It is limited, so
	// that reads do not cause writes.
	sessionTouch = 10 * time.Minute
	// maxCookie is longer than any valid token.
	maxCookie = 255
)

// Session returns the actor of a session cookie, and the session, which it
// extends. If an administrator impersonates a user, it returns that user, with
// Impersonator set. Unauthorized if the session does not exist or has ended;
// Forbidden if the account may not be used.
func (s *Service) Session(ctx context.Context, token, ip string) (actor.Actor, *Session, error) {
	if token == "" || len(token) > maxCookie {
		return actor.Actor{}, nil, errs.Unauthorized("")
	}
	now := s.Now()
	session, err := s.liveSession(ctx, token, now)
	if err != nil {
		return actor.Actor{}, nil, err
	}
	if err := s.touchSession(ctx, session, ip, now); err != nil {
		return actor.Actor{}, nil, fmt.Errorf("touch session: %w", err)
	}
	by, err := s.sessionActor(ctx, session, ip)
	return by, session, err
}

// RecheckSession checks a session again during a long request. It returns the
// current actor and does not extend the session.
func (s *Service) RecheckSession(ctx context.Context, token, ip string) (actor.Actor, error) {
	session, err := s.liveSession(ctx, token, s.Now())
	if err != nil {
		return actor.Actor{}, err
	}
	return s.sessionActor(ctx, session, ip)
}

// liveSession returns a session that has not ended, with its user.
func (s *Service) liveSession(ctx context.Context, token string, now time.Time) (*Session, error) {
	session, u, err := findSession(ctx, s.DB, secret.Digest(token))
	if errors.Is(err, db.ErrNoRows) || err == nil && !now.Before(session.ExpiresAt) {
		return nil, errs.Unauthorized("")
	}
	if err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	if err := u.State.refusal(); err != nil {
		return nil, err
	}
	session.User = u
	return session, nil
}

// sessionActor returns the actor of a session: its user, or the user they
// impersonate.
func (s *Service) sessionActor(ctx context.Context, session *Session, ip string) (actor.Actor, error) {
	if session.actingAs != nil {
		return s.actAs(ctx, session, ip)
	}
	return s.toActor(session.User, ip), nil
}

// Visited records the activity of the user of a session. Interfaces decide which
// requests are activity.
func (s *Service) Visited(ctx context.Context, session *Session) error {
	who := session.User
	if session.Impersonator != nil { // the administrator is active, not the user
		who = session.Impersonator
	}
	if err := s.noteActivity(ctx, who.ID, who.LastActivityOn, s.Now()); err != nil {
		return fmt.Errorf("note visit: %w", err)
	}
	return nil
}

// touchSession extends a session by its lifetime, which is the time between its
// last use and its end.
func (s *Service) touchSession(ctx context.Context, session *Session, ip string, now time.Time) error {
	life := session.ExpiresAt.Sub(session.LastSeenAt)
	// A session with a short lifetime must not end between two updates.
	if now.Sub(session.LastSeenAt) < min(sessionTouch, life/4) {
		return nil
	}
	was := session.LastSeenAt
	session.IP, session.LastSeenAt, session.ExpiresAt = ip, now, now.Add(life)
	return saveSeen(ctx, s.DB, session, was)
}

// SignOut ends the session of a cookie. It is not an error if it has ended
// already.
func (s *Service) SignOut(ctx context.Context, token string) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		userID, err := deleteSession(ctx, tx, secret.Digest(token))
		if err != nil {
			return err
		}
		return s.dropActor(ctx, tx, userID)
	})
	if err != nil && !errors.Is(err, db.ErrNoRows) {
		return fmt.Errorf("sign out: %w", err)
	}
	return nil
}

// Sessions lists the sessions of the actor, newest first.
func (s *Service) Sessions(ctx context.Context, by actor.Actor) ([]Session, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	return listSessions(ctx, s.DB, by.ID, s.Now())
}

// RevokeSession ends a session of the actor. NotFound.
func (s *Service) RevokeSession(ctx context.Context, by actor.Actor, id int64) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := deleteOwnSession(ctx, tx, by.ID, id); err != nil {
			return db.NotFound(err, "Session")
		}
		return s.dropActor(ctx, tx, by.ID)
	})
}

// revokeSessions ends all sessions of a user except keep; 0 means none.
func (s *Service) revokeSessions(ctx context.Context, tx *db.Tx, userID, keep int64) error {
	if err := deleteOtherSessions(ctx, tx, userID, keep); err != nil {
		return err
	}
	return s.dropActor(ctx, tx, userID)
}

// sessionBatch is the number of rows that one statement of purgeSessions deletes.
const sessionBatch = 1000

// purgeSessions deletes expired sessions.
func (s *Service) purgeSessions(ctx context.Context) error {
	for {
		more, err := deleteEnded(ctx, s.DB, s.Now(), sessionBatch)
		if err != nil {
			return fmt.Errorf("purge sessions: %w", err)
		}
		if !more {
			return nil
		}
	}
}
