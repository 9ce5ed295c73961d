package user

import "svc/internal/event"

// Events is what happens to users.
type Events struct {
	// Deleting comes before a deletion begins. A subscriber refuses it with
	// Conflict.
	Deleting event.Event[Deletion]
	// Deleted comes in the background, in the transaction that removes the
	// account. A subscriber hands what the user made over to the ghost user, or
	// deletes it if the deletion is hard.
	Deleted event.Event[Deletion]
	// Renamed comes with a new username: what is in the user's namespace has a new
	// path.
	Renamed event.Event[Renaming]
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
