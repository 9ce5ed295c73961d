// Package refstore reads and writes the refs of Git repositories. Store is the
// interface that package git uses, Files the implementation with git's own files.
package refstore

import (
	"context"
	"errors"
	"fmt"
)

// Error kinds, for errors.Is.
var (
	ErrNoRepository = errors.New("no such repository")
	ErrNotFound     = errors.New("no such object, ref or path")
	ErrBadRevision  = errors.New("not a revision")
	ErrBadRef       = errors.New("not a name for a ref")
	ErrConflict     = errors.New("it changed meanwhile")
	ErrBusy         = errors.New("too many git processes")
	ErrCorrupt      = errors.New("the repository is damaged")
)

// The prefixes of branches and tags.
const (
	Heads = "refs/heads/"
	Tags  = "refs/tags/"
)

// Store is the refs of one repository. Results include all updates, by any
// process, that were finished before the call. Names must be well-formed.
type Store interface {
	// Exists returns ErrNoRepository if the repository does not exist.
	Exists(ctx context.Context) error
	// First returns the ID of the first ref that exists, by full names, following
	// symbolic refs such as HEAD. It returns ErrNotFound.
	First(ctx context.Context, names []string) (OID, error)
	// All returns the IDs of refs by full names, empty for refs that do not exist.
	All(ctx context.Context, names []string) ([]OID, error)
	// List returns the refs below a prefix that ends with a slash, sorted by name.
	// wanted gets full names; nil matches all. It returns ErrNoRepository.
	List(ctx context.Context, place string, wanted func(string) bool) (Listing, error)
	// Head returns the branch that HEAD refers to, which need not exist. It returns
	// ErrNoRepository.
	Head(ctx context.Context) (branch string, err error)
	// SetHead sets HEAD to a branch, which need not exist. It returns ErrNoRepository, and
	// ErrConflict if HEAD is being changed concurrently.
	SetHead(ctx context.Context, branch string) error
	// Update updates all refs or none. The update is durable when it returns. The mark
	// is a unique word, or empty. It returns ErrBadRef, a *RefConflict if a ref is not
	// at Old, is locked or conflicts with the name of another ref, and ErrNotFound if
	// New does not exist or is not allowed in a branch.
	Update(ctx context.Context, mark string, updates []Update) error
	// Happened reports whether an update with a mark was made, even if the ref has
	// moved since. A store may only know that a deleted ref is missing now. It returns
	// ErrBadRef and ErrNoRepository.
	Happened(ctx context.Context, u Update, mark string) (bool, error)
	// WasAt reports whether a ref has an ID, or is known to have had it before. For
	// ZeroOID it reports whether the ref is or was missing. It returns ErrBadRef and
	// ErrNoRepository.
	WasAt(ctx context.Context, ref string, id OID) (bool, error)
}

// Listing is the result of a list of refs.
type Listing struct {
	Names []string // in order; must not be changed
	read  func(name string) (Entry, error)
}

// NewListing returns a Listing that reads values with read.
func NewListing(names []string, read func(name string) (Entry, error)) Listing {
	return Listing{names, read}
}

// Read returns the value of a listed ref. It returns ErrNotFound if the ref was
// deleted or cannot be read.
func (l Listing) Read(name string) (Entry, error) { return l.read(name) }

// Entry is the value of a ref.
type Entry struct {
	ID     OID
	Peeled OID  // target of a tag; empty if it is not a tag
	Known  bool // Peeled was looked up; otherwise it is empty
}

// Update is the update of one ref.
type Update struct {
	Ref string // full name
	Old OID    // expected value: ZeroOID for none, empty for any
	New OID    // ZeroOID deletes it
}

// Check returns ErrBadRef or ErrBadRevision for an invalid update.
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

// RefConflict is the reason why a ref could not be updated, in git's words. It
// wraps ErrConflict.
type RefConflict struct {
	Ref string
	Why string
}

// Error returns the text for the log.
func (c *RefConflict) Error() string { return fmt.Sprintf("ref %s: %s", c.Ref, c.Why) }

// Unwrap returns ErrConflict.
func (c *RefConflict) Unwrap() error { return ErrConflict }
