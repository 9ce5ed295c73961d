// Package git reads and writes bare repositories. It runs the git program and
// returns typed results; it depends on no feature, no database and no protocol
// but git's own.
//
// An Engine bounds the processes, their time and the memory of its caches. A
// Repo is a cheap handle on one bare directory. Cache keys are the IDs of
// immutable objects, so no entry becomes stale when a branch moves, on this node
// or another; refs are read from the repository each time (see refstore.go).
//
// User input is never passed to git unchecked: revisions are resolved to object
// IDs first, ref names pass CheckRef, and paths follow "--" and are literal.
package git

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Version returns the version of the installed git.
func Version(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "git", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("cannot run git: %w", err)
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "git version "), nil
}
