// Package git is the engine by which features read and write bare
// repositories. It runs the git program and gives typed answers; it knows no
// feature, no database and no protocol but git's own.
//
// An Engine bounds the processes, their time and the memory of its caches. A
// Repo is a cheap handle on one bare directory. What is cached is keyed by
// the ids of immutable objects, so nothing has to be dropped when a branch
// moves, on this node or another; refs are read from the repository each
// time (see refstore.go).
//
// No text from outside becomes an argument of git as it is: revisions are
// resolved to object ids first, names of refs pass CheckRef, and paths follow
// "--" and are taken literally.
package git

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Version is the version of the git that is installed.
func Version(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "git", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("cannot run git: %w", err)
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "git version "), nil
}
