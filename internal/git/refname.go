package git

import (
	"fmt"
	"regexp"
	"strings"
)

const (
	maxRef       = 1024 // bytes of a ref's name
	maxComponent = 240  // bytes between slashes: a file name with ".lock" must fit
)

// CheckRef says whether name may be the full name of a ref ("refs/heads/x").
// Beside the rules of git-check-ref-format it wants the name below refs/, no
// part of it that git could take for an option or that a file system could
// not hold, and no branch called HEAD. It returns ErrBadRef.
func CheckRef(name string) error {
	bad := func(why string) error { return fmt.Errorf("%w: %s", ErrBadRef, why) }
	switch {
	case len(name) > maxRef:
		return bad("it is too long")
	case !strings.HasPrefix(name, "refs/"):
		return bad("it is not below refs/")
	case !wellFormed(name):
		return bad("git does not allow it")
	case strings.Contains(name, "/-"):
		return bad("a part starts with -")
	case name == "refs/heads/HEAD", name == "refs/heads/@": // which is short for it
		return bad("HEAD is no branch")
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > maxComponent {
			return bad("a part is too long")
		}
	}
	return nil
}

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

// wellFormed follows git-check-ref-format(1), which needs one slash at least.
func wellFormed(name string) bool {
	return strings.Contains(name, "/") && wellFormedOneLevel(name)
}

// wellFormedOneLevel is wellFormed for names that need no slash.
func wellFormedOneLevel(name string) bool {
	if name == "" || name == "@" || strings.HasSuffix(name, ".") || strings.Contains(name, "..") || strings.Contains(name, "@{") {
		return false
	}
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c == 0x7f || strings.IndexByte(`~^:?*[\`, c) >= 0 {
			return false
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}

// checkPath says whether a path of a tree may be asked for: relative, with no
// part that climbs. The empty path is the root. It returns ErrBadPath.
func checkPath(path string) error {
	if path == "" {
		return nil
	}
	if len(path) > 4096 || strings.ContainsRune(path, 0) {
		return fmt.Errorf("%w: too long or with a NUL", ErrBadPath)
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Errorf("%w: %.200q", ErrBadPath, path)
		}
	}
	return nil
}
