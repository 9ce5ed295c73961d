package user

import (
	"svc/internal/audit"
	"svc/internal/event"
)

// Events is what happens to users.
type Events struct {
	// Deleting is published before a deletion begins. A subscriber can refuse it
	// with errs.Conflict.
	Deleting event.Event[Deletion]
	// Deleted is published in the background, in the transaction that removes the
	// account. A subscriber hands what the user created over to the ghost user. A
	// hard deletion deletes it instead.
	Deleted event.Event[Deletion]
	// Renamed is published when a username changes; the paths in the user's
	// namespace change with it.
	Renamed event.Event[Renaming]
	// Recorded is published with each audit event about a user or something of
	// theirs, and when a sign-in has failed.
	Recorded event.Event[Recorded]
}

// FailedLogin is the kind of the audit event about a failed sign-in.
const FailedLogin = "login_failed"

// Recorded is an audit event about a user.
type Recorded struct {
	User   *User
	Kind   string // "user_created"
	Target audit.Target
	Detail audit.Details
}

// Deletion is the deletion of a user.
type Deletion struct {
	UserID  int64
	GhostID int64 // the user who gets what stays; zero while the deletion begins
	Hard    bool  // nothing stays
}

// Renaming is a change of a username.
type Renaming struct {
	NamespaceID int64
	From, To    string
}
