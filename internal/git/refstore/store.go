// Package refstore holds the refs of Git repositories: names that lead to objects.
// Store is what package git needs of them, Files the form that git itself has.
package refstore

import (
	"context"
	"errors"
	"fmt"
)

// The kinds of errors. Test with errors.Is.
var (
	ErrNoRepository = errors.New("no such repository")
	ErrNotFound     = errors.New("no such object, ref or path")
	ErrBadRevision  = errors.New("not a revision")
	ErrBadRef       = errors.New("not a name for a ref")
	ErrConflict     = errors.New("it changed meanwhile")
	ErrBusy         = errors.New("too many git processes")
	ErrCorrupt      = errors.New("the repository is damaged")
)

// The places of branches and tags.
const (
	Heads = "refs/heads/"
	Tags  = "refs/tags/"
)

// Store is the refs of one repository. What it returns is as new as the last
// update that was finished before the call, by any process. Names that it is
// given are well-formed.
type Store interface {
	// Exists returns ErrNoRepository when there is nothing to find refs in.
	Exists() error
	// First returns the id of the first of the refs that is there, by their full
	// names, through symbolic refs; HEAD is such a name. It returns ErrNotFound.
	First(ctx context.Context, names []string) (OID, error)
	// All returns the ids of refs by their full names, empty for those that are
	// not there.
	All(ctx context.Context, names []string) ([]OID, error)
	// List returns the refs below a place, which ends with a slash, in the order
	// of their names. wanted is asked about full names; nil takes all. It returns
	// ErrNoRepository.
	List(ctx context.Context, place string, wanted func(string) bool) (Listing, error)
	// Head returns the branch that HEAD names, whether it exists or not. It
	// returns ErrNoRepository.
	Head(ctx context.Context) (branch string, err error)
	// SetHead makes HEAD name a branch, which need not exist. It returns
	// ErrNoRepository, and ErrConflict when someone else does the same just now.
	SetHead(ctx context.Context, branch string) error
	// Update moves all refs, or none; they survive a crash when it returns. The
	// mark is a word that is used once, or empty. It returns ErrBadRef, a
	// *RefConflict when a ref is not at Old, is locked or is in the way of
	// another ref's name, and ErrNotFound for a New that is not there or cannot
	// stand in a branch.
	Update(ctx context.Context, mark string, updates []Update) error
}

// Listing is refs that were listed together.
type Listing struct {
	Names []string // in order; must not be changed
	read  func(name string) (Entry, error)
}

// Read returns what one of the refs holds. It returns ErrNotFound for one that
// went meanwhile or cannot be read.
func (l Listing) Read(name string) (Entry, error) { return l.read(name) }

// Entry is what a ref holds.
type Entry struct {
	ID     OID
	Peeled OID  // what a tag leads to; empty when it is not a tag
	Known  bool // whether it is one was looked up; otherwise Peeled is empty
}

// Update moves one ref.
type Update struct {
	Ref string // in full
	Old OID    // what it must hold now: ZeroOID for nothing, empty for no matter what
	New OID    // ZeroOID deletes it
}

// Check returns ErrBadRef or ErrBadRevision for an update that cannot be.
func (u Update) Check() error {
	if err := CheckRef(u.Ref); err != nil {
		return fmt.Errorf("update %.100q: %w", u.Ref, err)
	}
	for _, id := range []OID{u.Old, u.New} {
		if _, ok := ParseOID(string(id)); !ok && (id != "" || id == u.New) {
			return fmt.Errorf("update %s to %.50q: %w", u.Ref, id, ErrBadRevision)
		}
	}
	return nil
}

// RefConflict says which ref could not be moved, and why in git's words. It is
// an ErrConflict.
type RefConflict struct {
	Ref string
	Why string
}

// Error returns the text for the log.
func (c *RefConflict) Error() string { return fmt.Sprintf("ref %s: %s", c.Ref, c.Why) }

// Unwrap returns ErrConflict.
func (c *RefConflict) Unwrap() error { return ErrConflict }
