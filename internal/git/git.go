// Package git is the engine that runs git.
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
		return "", fmt.Errorf("git can not be run: %w", err)
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "git version "), nil
}
