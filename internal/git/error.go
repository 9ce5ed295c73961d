package git

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"svc/internal/git/pack"
	"svc/internal/git/refstore"
)

// Error kinds, for errors.Is.
var (
	ErrNoRepository = refstore.ErrNoRepository
	ErrNotFound     = refstore.ErrNotFound
	ErrBadRevision  = refstore.ErrBadRevision
	ErrBadRef       = refstore.ErrBadRef
	ErrBadPath      = errors.New("not a path")
	ErrExists       = errors.New("it exists already")
	ErrConflict     = refstore.ErrConflict
	ErrTooLarge     = pack.ErrTooLarge
	ErrMemory       = fmt.Errorf("%w: git ran out of memory", ErrTooLarge)
	ErrBusy         = refstore.ErrBusy
	ErrTimeout      = errors.New("git took too long")
	ErrKilled       = errors.New("git was killed")
	ErrCorrupt      = refstore.ErrCorrupt
	ErrCommand      = errors.New("git refused") // any other non-zero exit status
)

// Error is the failure of a git process. Its kind is one of the above,
// syscall.ENOSPC or EDQUOT if the storage is full, or context.Canceled or
// DeadlineExceeded.
type Error struct {
	Kind   error
	Name   string // the git command
	Exit   int    // exit status; -1 if it was killed
	Stderr string // end of its stderr
}

func (e *Error) Error() string {
	text := "git " + e.Name + ": " + e.Kind.Error()
	if stderr := strings.TrimSpace(e.Stderr); stderr != "" {
		text += ": " + stderr
	}
	return text
}

func (e *Error) Unwrap() error { return e.Kind }

// clues are parts of git's messages that identify the kind of error. The order
// matters: git often reports an object that could not be written as corrupt, and a
// corrupt object as missing.
var clues = []struct {
	text string
	kind error
}{
	{"No space left on device", syscall.ENOSPC},
	{"Disk quota exceeded", syscall.EDQUOT},
	{"ut of memory", ErrMemory},
	{"Cannot allocate memory", ErrMemory},
	{"is corrupt", ErrCorrupt},
	{"corrupt loose object", ErrCorrupt},
	{"inflate: ", ErrCorrupt},
	{"unable to unpack", ErrCorrupt},
	{"hash mismatch", ErrCorrupt},
	{"unable to read tree", ErrCorrupt},
	{"unable to read sha1 file", ErrCorrupt},
	{"missing blob object", ErrCorrupt},
	{"missing tree object", ErrCorrupt},
	{"error in object", ErrCorrupt},
	{"revision walk setup failed", ErrCorrupt},
	{"not a git repository", ErrNoRepository},
	{"does not appear to be a git repository", ErrNoRepository},
	{"unknown revision", ErrNotFound},
	{"bad revision", ErrNotFound},
	{"bad object", ErrNotFound},
	{"Not a valid object name", ErrNotFound},
	{"not a valid object", ErrNotFound},
	{"not a tree object", ErrNotFound},
	{"Not a valid commit name", ErrNotFound},
	{"not a commit", ErrNotFound},
	{"Needed a single revision", ErrNotFound},
	{"did not match any files", ErrNotFound},
	{"no such path", ErrNotFound},
	{"does not exist in", ErrNotFound},
	{"Could not get object info", ErrNotFound},
	{"unrelated histories", ErrNotFound},
	{"pack exceeds maximum allowed size", ErrTooLarge},
}

func kindOf(stderr string) error {
	for _, c := range clues {
		if strings.Contains(stderr, c.text) {
			return c.kind
		}
	}
	return ErrCommand
}

// tail is a writer that keeps the end of what is written to it.
type tail struct{ kept []byte }

const tailSize = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if len(p) > tailSize {
		p = p[len(p)-tailSize:]
	}
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - tailSize; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return n, nil
}

func (t *tail) String() string { return strings.ToValidUTF8(string(t.kept), "\uFFFD") }
