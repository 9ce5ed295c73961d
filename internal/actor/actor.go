// Package actor defines Actor, the caller of an operation. Every operation of
// every feature takes an Actor and checks it before anything else.
package actor

import (
	"slices"

	"svc/internal/errs"
)

// Actor is the caller of an operation. The zero value is an anonymous caller.
type Actor struct {
	ID       int64 // of the user; 0 for anonymous callers
	Username string
	Name     string
	Email    string
	// CommitEmail is the address in commits that the actor creates in svc.
	CommitEmail string
	Admin       bool
	Auditor     bool
	External    bool
	Bot         bool // the account belongs to a program

	// Scopes are what the credential allows; nil means all, as for a session.
	Scopes []string
	// TokenID is the access token that was used, 0 for other credentials.
	TokenID int64
	// OAuthTokenID is the OAuth access token with which an application acts for
	// the user, 0 for other credentials.
	OAuthTokenID int64

	// Deploy is the deploy token or key that was used instead of an account. It
	// gives access to repositories only: everywhere else the actor is anonymous.
	Deploy *Deploy

	// Job is the CI job whose token was used. It may read what its user may read,
	// where job tokens are accepted, and nothing else.
	Job *Job

	// Impersonator is the administrator who acts as this user, by sudo or
	// impersonation; nil for none.
	Impersonator *Actor

	IP string // where the request came from
}

// Job is a CI job that acts for its user.
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

// DeployKind is the kind of such a credential.
type DeployKind string

// The kinds: a password for git over HTTP, and a key for git over SSH.
const (
	DeployToken DeployKind = "token"
	DeployKey   DeployKind = "key"
)

// System is the server itself, for work without a user. It has all permissions.
func System() Actor { return Actor{ID: SystemID, Username: "svc", Name: "System", Admin: true} }

// SystemID is the id of System; no user has it.
const SystemID = -1

// Anonymous reports whether the caller has not signed in.
func (a Actor) Anonymous() bool { return a.ID == 0 }

// Account is the user whom the actor's work is accounted to: for a deploy token
// or key, the one who made it. It is 0 for a caller who has not signed in.
func (a Actor) Account() int64 {
	if a.Deploy != nil {
		return a.Deploy.UserID
	}
	return a.ID
}

// Is reports whether the actor is this user.
func (a Actor) Is(userID int64) bool { return a.ID != 0 && a.ID == userID }

// Has reports whether the credential carries the scope.
func (a Actor) Has(scope string) bool { return a.Scopes == nil || slices.Contains(a.Scopes, scope) }

// ReadsSecrets reports whether the credential may be shown secrets that its user
// may see: a session, or a token with the scope api. A token that only reads, or
// that of a job, is not.
func (a Actor) ReadsSecrets() bool { return a.Job == nil && a.Has("api") }

// RequireUser refuses anonymous callers: Unauthorized.
func (a Actor) RequireUser() error {
	if a.Anonymous() {
		return errs.Unauthorized("")
	}
	return nil
}

// RequireHuman refuses callers who have not signed in, and bots: Unauthorized,
// or Forbidden with what bots cannot do. A credential that a bot could give
// itself would outlive the access token that the bot was made for.
func (a Actor) RequireHuman(what string) error {
	if err := a.RequireUser(); err != nil {
		return err
	}
	if a.Bot {
		return errs.Forbidden("Bot users cannot %s.", what)
	}
	return nil
}

// RequireSession refuses everyone but a user in their own browser session: a
// token cannot create another one, nor can an impersonator. Unauthorized or
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

// RequireAdmin refuses everyone but administrators: Unauthorized or Forbidden.
func (a Actor) RequireAdmin() error {
	if err := a.RequireUser(); err != nil {
		return err
	}
	if !a.Admin {
		return errs.Forbidden("")
	}
	return nil
}

// RequireSelf refuses everyone but the user and administrators: Unauthorized, or
// NotFound of the named object, whose existence is not shown to others.
func (a Actor) RequireSelf(userID int64, thing string) error {
	if err := a.RequireUser(); err != nil {
		return err
	}
	if !a.Admin && a.ID != userID {
		return errs.NotFound(thing)
	}
	return nil
}
