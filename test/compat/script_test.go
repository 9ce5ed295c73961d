package compat

import (
	"context"
	"encoding/hex"
	"image/color"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPython runs the scenarios of Debian's python3-gitlab. It uses the path of the
// system's Python, which has the package; another Python may come first in PATH.
func TestPython(t *testing.T) {
	t.Parallel()
	// The client warns if a URL from the server differs from the configured one, or
	// if a list is incomplete. These warnings are errors here.
	scenarios(t, "python/*_test.py", "/usr/bin/python3", "-B", "-W", "error::UserWarning")
}

// TestRuby runs the scenarios of Debian's ruby-gitlab.
func TestRuby(t *testing.T) {
	t.Parallel()
	scenarios(t, "ruby/*_test.rb", "/usr/bin/ruby", "-w")
}

// scenarios runs each matching script with a new server.
func scenarios(t *testing.T, pattern string, command ...string) {
	t.Helper()
	scripts, err := filepath.Glob(pattern)
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no script matches %s: %v", pattern, err)
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), filepath.Ext(script)), func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, s *server) {
				out, err := s.command(t, append(command, script)...)
				if err != nil {
					t.Fatalf("%s: %v\n%s", script, err, out)
				}
				t.Logf("%s", out)
			})
		})
	}
}

// command runs a program of a client and returns its output, including stderr. It
// has a clean environment: no user configuration and no proxy.
func (s *server) command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	key, _ := sshKey(t)
	other, _ := sshKey(t)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LANG=C.UTF-8",
		"COMPAT_URL=" + s.url, "COMPAT_TOKEN=" + rootToken, "COMPAT_PASSWORD=" + password, "COMPAT_HIDDEN=" + hidden,
		"COMPAT_KEYS=" + key + "\n" + other,
		"COMPAT_PICTURE=" + hex.EncodeToString(picture(t, color.Black)),
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
