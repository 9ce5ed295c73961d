package runner

import (
	"errors"
	"os/exec"
	"strings"
)

// shell is the program that runs the scripts.
type shell struct {
	name string // bash or sh
	path string
}

// findShell returns bash if it is installed, and otherwise sh.
func findShell() (shell, error) {
	for _, name := range []string{"bash", "sh"} {
		if path, err := exec.LookPath(name); err == nil {
			return shell{name, path}, nil
		}
	}
	return shell{}, errors.New("there is neither bash nor sh on this machine")
}

// script returns the script of a step. It prints each line before it runs it, and
// exits when a line fails.
func (s shell) script(lines []string, debug bool) string {
	var b strings.Builder
	b.WriteString("set -e\n")
	if s.name == "bash" {
		b.WriteString("set -o pipefail\nset +o noclobber\n")
	}
	b.WriteString("ulimit -c 0 2>/dev/null || :\n") // no core dumps
	b.WriteString("cd -- \"$CI_PROJECT_DIR\"\n")
	if debug {
		b.WriteString("set -x\n")
	}
	for _, line := range lines {
		if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) == "" {
			continue
		}
		b.WriteString("printf '%s\\n' " + quote(green("$ "+shown(line))) + "\n")
		b.WriteString(line + "\n")
	}
	return b.String()
}

// shown returns a command as it is printed in the log.
func shown(line string) string {
	if first, _, more := strings.Cut(line, "\n"); more {
		return strings.TrimRight(first, "\r") + " # collapsed multi-line command"
	}
	return line
}

// quote quotes a text as one shell word.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func green(text string) string  { return "\x1b[32;1m" + text + "\x1b[0;m" }
func cyan(text string) string   { return "\x1b[36;1m" + text + "\x1b[0;m" }
func red(text string) string    { return "\x1b[31;1m" + text + "\x1b[0;m" }
func yellow(text string) string { return "\x1b[33;1m" + text + "\x1b[0;m" }
