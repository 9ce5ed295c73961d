// Package actor defines Actor, the caller of an operation. Every operation of
// every feature takes an Actor and checks it before anything else.
package actor

import (
	"slices"

	"svc/internal/errs"
)

// Actor is the caller of an operation. The zero value is an anonymous caller.
type Actor struct {
	ID       int64 // user ID; 0 for anonymous callers
	Username string
	Name     string
	Email    string
	// CommitEmail is the address in commits that the actor creates in svc.
	CommitEmail string
	Admin       bool
	Auditor     bool
	External    bool
	Bot         bool // the user is a bot user

	// Scopes are the scopes of the credential; nil means all, as for a session.
	Scopes []string
	// TokenID is the ID of the access token that was used, 0 for other credentials.
	TokenID int64
	// OAuthTokenID is the ID of the OAuth access token with which an application
	// acts as the user, 0 for other credentials.
	OAuthTokenID int64

	// Deploy is the deploy token or key that was used instead of a user's
	// credential. It only gives access to repositories and packages; for all other
	// operations, the actor is anonymous.
	Deploy *Deploy

	// Job is the CI/CD job whose token was used. Operations that accept job tokens
	// allow it to read what its user may read; all others reject it.
	Job *Job

	// Impersonator is the administrator who acts as this user, by sudo or
	// impersonation, or nil.
	Impersonator *Actor

	IP string // client address of the request
}

// Job is a CI/CD job that acts as its user.
type Job struct {
	ID        int64
	ProjectID int64
}

// Deploy is a credential that belongs to projects, not to a user.
type Deploy struct {
	Kind   DeployKind
	ID     int64
	Name   string
	UserID int64 // the creator, to whom activity is attributed
}

// DeployKind is the kind of a deploy credential.
type DeployKind string

// The kinds: a password for Git over HTTP, and a key for Git over SSH.
const (
	DeployToken DeployKind = "token"
	DeployKey   DeployKind = "key"
)

// System returns the actor for operations of the server itself, without a user. It
// has all permissions.
func System() Actor { return Actor{ID: SystemID, Username: "svc", Name: "System", Admin: true} }

// SystemID is the ID of System; no user has it.
const SystemID = -1

// Anonymous reports whether the caller has not signed in.
func (a Actor) Anonymous() bool { return a.ID == 0 }

// Account returns the ID of the user to whom the actor's use of resources is
// attributed: for a deploy token or key, its creator. It is 0 for an anonymous
// caller.
func (a Actor) Account() int64 {
	if a.Deploy != nil {
		return a.Deploy.UserID
	}
	return a.ID
}

// Is reports whether the actor is this user.
func (a Actor) Is(userID int64) bool { return a.ID != 0 && a.ID == userID }

// Has reports whether the credential has the scope.
func (a Actor) Has(scope string) bool { return a.Scopes == nil || slices.Contains(a.Scopes, scope) }

// ReadsSecrets reports whether the credential may be shown secrets that its user may
// see: a session, or a token with the scope api. Read-only tokens and job tokens may
// not.
func (a Actor) ReadsSecrets() bool { return a.Job == nil && a.Has("api") }

// RequireUser rejects anonymous callers: Unauthorized.
func (a Actor) RequireUser() error {
	if a.Anonymous() {
		return errs.Unauthorized("")
	}
	return nil
}

// RequireHuman rejects anonymous callers and bots: Unauthorized, or Forbidden with
// what bots cannot do. A credential that a bot creates for itself would outlive the
// access token that the bot was created for.
func (a Actor) RequireHuman(what string) error {
	if err := a.RequireUser(); err != nil {
		return err
	}
	if a.Bot {
		return errs.Forbidden("Bot users cannot %s.", what)
	}
	return nil
}

// RequireSession rejects all callers except a user in their own browser session:
// tokens and impersonators must not be able to create tokens. Unauthorized or
// Forbidden.
func (a Actor) RequireSession() error {
	if err := a.RequireUser(); err != nil {
		return err
	}
	if a.Bot || a.Scopes != nil || a.TokenID != 0 || a.OAuthTokenID != 0 || a.Job != nil || a.Impersonator != nil {
		return errs.Forbidden("This action requires a browser session.")
	}
	return nil
}

// RequireAdmin rejects all callers except administrators: Unauthorized or Forbidden.
func (a Actor) RequireAdmin() error {
	if err := a.RequireUser(); err != nil {
		return err
	}
	if !a.Admin {
		return errs.Forbidden("")
	}
	return nil
}

// RequireSelf rejects all callers except the user and administrators: Unauthorized,
// or NotFound with the name of the object, whose existence others must not learn.
func (a Actor) RequireSelf(userID int64, thing string) error {
	if err := a.RequireUser(); err != nil {
		return err
	}
	if !a.Admin && a.ID != userID {
		return errs.NotFound(thing)
	}
	return nil
}
