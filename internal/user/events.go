package user

import (
	"svc/internal/audit"
	"svc/internal/event"
)

// Events are the events of users.
type Events struct {
	// Deleting is published before a deletion begins. A subscriber can refuse it
	// with errs.Conflict.
	Deleting event.Event[Deletion]
	// Deleted is published in the background, in the transaction that deletes the
	// account. A subscriber reassigns the contributions of the user to the ghost user,
	// or deletes them if the deletion is hard.
	Deleted event.Event[Deletion]
	// Renamed is published when a username changes; the paths in the user's
	// namespace change with it.
	Renamed event.Event[Renaming]
	// Reclaimed is published when the owner of an email address takes over an account
	// that was created with it before the address was confirmed. A subscriber revokes
	// the credentials of the user.
	Reclaimed event.Event[Reclaim]
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
	GhostID int64 // the ghost user; 0 for Deleting
	Hard    bool  // contributions are deleted
}

// Reclaim is the takeover of an account by the owner of its email address.
type Reclaim struct{ UserID int64 }

// Renaming is a change of a username.
type Renaming struct {
	NamespaceID int64
	From, To    string
}
