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

// Session is a browser in which a user has signed in.
type Session struct {
	ID         int64
	UserID     int64
	CSRF       string // what a write by cookie must repeat
	IP         string // of the last use
	UserAgent  string
	CreatedAt  time.Time
	LastSeenAt time.Time // exact to sessionTouch
	ExpiresAt  time.Time // moves on with each use

	// Token is the value of the cookie. Only SignIn gives it; the database
	// holds its digest.
	Token string
	// Remember says that the cookie is to outlive the browser. Only SignIn
	// gives it.
	Remember bool
	// User is whose session it is. Only Service.Session gives it.
	User *User
	// Impersonator is the administrator who acts as the User; nil for none. Only
	// Service.Session sets it.
	Impersonator *User

	actingAs *int64
}

const (
	// rememberFor is how long an unused session lives that is to outlive the
	// browser.
	rememberFor = 14 * 24 * time.Hour
	// sessionTouch is how exact the last use of a session is known, so that
	// reads do not become writes.
	sessionTouch = 10 * time.Minute
	// maxCookie is far more than a token of ours has.
	maxCookie = 255
)

// Session returns the actor of a session cookie, and the session, which it
// extends. For an administrator who impersonates a user it returns that user,
// with Impersonator set. Unauthorized if there is no such session or it has
// ended, Forbidden if the account may not be used.
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

// RecheckSession is Session for a request that Session admitted and that goes
// on: it gives the actor as they are now and does not prolong the session.
func (s *Service) RecheckSession(ctx context.Context, token, ip string) (actor.Actor, error) {
	session, err := s.liveSession(ctx, token, s.Now())
	if err != nil {
		return actor.Actor{}, err
	}
	return s.sessionActor(ctx, session, ip)
}

// liveSession reads a session that has not ended, with its user.
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

// sessionActor returns the actor of a session: its user, or the user whom they
// impersonate.
func (s *Service) sessionActor(ctx context.Context, session *Session, ip string) (actor.Actor, error) {
	if session.actingAs != nil {
		return s.actAs(ctx, session, ip)
	}
	return s.toActor(session.User, ip), nil
}

// Visited notes that the user of a session was active today. Not every use of
// a session is activity: the interfaces decide which is.
func (s *Service) Visited(ctx context.Context, session *Session) error {
	who := session.User
	if session.Impersonator != nil { // it is they who sit there
		who = session.Impersonator
	}
	if err := s.noteActivity(ctx, who.ID, who.LastActivityOn, s.Now()); err != nil {
		return fmt.Errorf("note visit: %w", err)
	}
	return nil
}

// touchSession prolongs a session by the life it was given: the time between
// its last use and its end.
func (s *Service) touchSession(ctx context.Context, session *Session, ip string, now time.Time) error {
	life := session.ExpiresAt.Sub(session.LastSeenAt)
	// A short life must not end between two touches.
	if now.Sub(session.LastSeenAt) < min(sessionTouch, life/4) {
		return nil
	}
	was := session.LastSeenAt
	session.IP, session.LastSeenAt, session.ExpiresAt = ip, now, now.Add(life)
	return saveSeen(ctx, s.DB, session, was)
}

// SignOut ends the session of a cookie. One that has ended is no error.
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

// Sessions lists the actor's own sessions, the newest first.
func (s *Service) Sessions(ctx context.Context, by actor.Actor) ([]Session, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	return listSessions(ctx, s.DB, by.ID, s.Now())
}

// RevokeSession ends one of the actor's own sessions. NotFound when they have
// no such session.
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

// revokeSessions ends every session of a user but one, 0 for none.
func (s *Service) revokeSessions(ctx context.Context, tx *db.Tx, userID, keep int64) error {
	if err := deleteOtherSessions(ctx, tx, userID, keep); err != nil {
		return err
	}
	return s.dropActor(ctx, tx, userID)
}

// sessionBatch is how many rows one statement of purgeSessions removes.
const sessionBatch = 1000

// purgeSessions removes the sessions that have ended.
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
