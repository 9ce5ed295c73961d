package git

import (
	"fmt"
	"regexp"
	"strings"

	"svc/internal/git/refstore"
)

// CheckRef says whether name may be the full name of a ref ("refs/heads/x").
// Beside the rules of git-check-ref-format it wants the name below refs/, no
// part of it that git could take for an option or that a file system could
// not hold, and no branch called HEAD. It returns ErrBadRef.
func CheckRef(name string) error { return refstore.CheckRef(name) }

// CheckBranch says whether name may be the short name of a new branch: CheckRef,
// and git does not take it for HEAD, the full name of a ref or the ID of a commit.
// It returns ErrBadRef.
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

// LikeID reports whether a name could be taken for the ID of a commit.
func LikeID(name string) bool { return likeID.MatchString(name) }

// Ambiguous reports whether git takes the short name of a branch or tag for
// HEAD or for the full name of a ref.
func Ambiguous(name string) bool {
	return name == "HEAD" || name == "@" || strings.HasPrefix(name, "refs/")
}
