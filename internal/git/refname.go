package git

import (
	"fmt"
	"regexp"
	"strings"

	"svc/internal/git/refstore"
)

// CheckRef checks the full name of a ref ("refs/heads/x"). In addition to the
// rules of git-check-ref-format, the name must be below refs/, no component may
// look like an option or be too long for a file name, and no branch may be called
// HEAD. It returns ErrBadRef.
func CheckRef(name string) error { return refstore.CheckRef(name) }

// CheckBranch checks the short name of a new branch: CheckRef, and that git does
// not take it for HEAD, the full name of a ref or a commit ID. It returns
// ErrBadRef.
func CheckBranch(name string) error {
	if err := CheckRef(Heads + name); err != nil {
		return err
	}
	if Ambiguous(name) || LikeID(name) {
		return fmt.Errorf("%w: git takes it for something else", ErrBadRef)
	}
	return nil
}

var likeID = regexp.MustCompile(`^[0-9a-fA-F]{40}(-/|/|$)`)

// LikeID reports whether a name could be taken for a commit ID.
func LikeID(name string) bool { return likeID.MatchString(name) }

// Ambiguous reports whether git takes the short name of a branch or tag for
// HEAD or for the full name of a ref.
func Ambiguous(name string) bool {
	return name == "HEAD" || name == "@" || strings.HasPrefix(name, "refs/")
}
