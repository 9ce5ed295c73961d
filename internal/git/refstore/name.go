package refstore

import (
	"fmt"
	"strings"
)

const (
	// MaxName is the maximum length of a ref name in bytes.
	MaxName      = 1024
	maxComponent = 240 // bytes between slashes: a file name with ".lock" must fit
)

// CheckRef checks the full name of a ref ("refs/heads/x"). In addition to the
// rules of git-check-ref-format, the name must be below refs/, no component may
// look like an option or be too long for a file name, and no branch may be called
// HEAD. It returns ErrBadRef.
func CheckRef(name string) error {
	bad := func(why string) error { return fmt.Errorf("%w: %s", ErrBadRef, why) }
	switch {
	case len(name) > MaxName:
		return bad("it is too long")
	case !strings.HasPrefix(name, "refs/"):
		return bad("it is not below refs/")
	case !WellFormed(name):
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

// WellFormed implements git-check-ref-format(1), which requires at least one slash.
func WellFormed(name string) bool {
	return strings.Contains(name, "/") && WellFormedOneLevel(name)
}

// WellFormedOneLevel is WellFormed for names that may have no slash.
func WellFormedOneLevel(name string) bool {
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
