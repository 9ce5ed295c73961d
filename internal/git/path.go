package git

import (
	"fmt"
	"strings"
)

// checkPath checks a path in a tree: it must be relative, without empty, "." or
// ".." components. The empty path is the root. It returns ErrBadPath.
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
