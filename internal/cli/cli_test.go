package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/cli"
	"svc/internal/db/dbtest"
	"svc/internal/waittest"
)

// run runs the program with a data directory and returns its exit code and output.
func run(t *testing.T, env []string, in string, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = cli.Main(args, append(env, "PATH="+os.Getenv("PATH")), strings.NewReader(in), &o, &e)
	return code, o.String(), e.String()
}

func ok(t *testing.T, env []string, in string, args ...string) string {
	t.Helper()
	code, out, errOut := run(t, env, in, args...)
	if code != 0 {
		t.Fatalf("svc %s: exit %d\n%s%s", strings.Join(args, " "), code, out, errOut)
	}
	return out
}

func TestCommands(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		dir := t.TempDir()
		env := []string{"SVC_DATA_DIR=" + dir}
		if src.URL != "" {
			env = append(env, "SVC_DATABASE_URL="+src.URL)
		}
		if out := ok(t, env, "", "migrate"); !strings.Contains(out, "schema") {
			t.Error(out)
		}
		if out := ok(t, env, "", "migrate"); !strings.Contains(out, "up to date") {
			t.Error(out)
		}
		if out := ok(t, env, "", "admin", "create-user", "alice", "--email", "a@example.org", "--name", "Alice", "--admin"); !strings.Contains(out, "password") {
			t.Error(out)
		}
		if out := ok(t, env, "my own password\n", "admin", "create-user", "bob", "--email", "b@example.org", "--password-stdin"); strings.Contains(out, "my own password") {
			t.Error(out)
		}
		if out := ok(t, env, "", "admin", "create-token", "alice", "--scopes", "api,sudo", "--expires-at", time.Now().AddDate(0, 0, 9).Format(time.DateOnly)); !regexp.MustCompile(`^svcpat-\w+\n$`).MatchString(out) {
			t.Errorf("a script would read %q", out)
		}
		ok(t, env, "", "admin", "reset-password", "alice")
		ok(t, env, "", "admin", "block-user", "bob")
		if out := ok(t, env, "", "admin", "list-users"); !regexp.MustCompile(`(?m)^\d+ +alice +Alice +a@example.org +active +true +false$`).MatchString(out) ||
			!regexp.MustCompile(`(?m)^\d+ +bob .* blocked `).MatchString(out) {
			t.Error(out)
		}
		ok(t, env, "", "admin", "unblock-user", "bob")
		if out := ok(t, env, "", "admin", "enroll-two-factor", "bob"); !strings.Contains(out, "otpauth://totp/") {
			t.Error(out)
		}
		if out := ok(t, env, "", "admin", "rotate-key"); !strings.Contains(out, "1 stored secrets") {
			t.Error(out)
		}
		ok(t, env, "", "admin", "disable-two-factor", "bob")
		if out := ok(t, env, "", "admin", "enable-passwords"); !strings.Contains(out, "is enabled for the web") {
			t.Errorf("enable-passwords prints %q", out)
		}
		if out := ok(t, env, "", "doctor"); strings.Count(out, "ok ") != 5 {
			t.Error(out)
		}

		for _, wrong := range []struct {
			args []string
			code int
			text string
		}{
			{[]string{"admin", "create-user", "alice", "--email", "c@example.org"}, 1, "Username has already been taken"},
			{[]string{"admin", "create-user", "carol", "--email", "nonsense"}, 1, "email is invalid"},
			{[]string{"admin", "create-user", "carol"}, 1, "email"},
			{[]string{"admin", "reset-password", "nobody"}, 1, "User not found"},
			{[]string{"admin", "create-token", "alice", "--scopes", "all"}, 1, "scopes"},
			{[]string{"serve", "--nonsense"}, 2, "unknown flag: --nonsense"},
			{[]string{"serve", "--tier", "gold"}, 2, `--tier: "gold" is not one of free, premium, ultimate`},
			{[]string{"nonsense"}, 1, "unknown command"},
		} {
			code, _, errOut := run(t, env, "", wrong.args...)
			if code != wrong.code || !strings.Contains(errOut, wrong.text) {
				t.Errorf("svc %s: exit %d, %s", strings.Join(wrong.args, " "), code, errOut)
			}
		}
	})
}

// TestWithoutInstance checks that commands on an instance do not create one.
func TestWithoutInstance(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	for _, args := range [][]string{
		{"backup", "-"}, {"doctor"}, {"migrate", "--post"}, {"admin", "list-users"}, {"admin", "enable-passwords"}, {"admin", "rotate-key"},
		{"admin", "create-user", "alice", "--email", "a@example.org"},
	} {
		code, _, errOut := run(t, []string{"SVC_DATA_DIR=" + dir}, "", args...)
		if _, err := os.Stat(dir); code != 1 || !strings.Contains(errOut, "has no instance") || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v: %d, %s, %v", args, code, errOut, err)
		}
	}
}

func TestDoctorFindsDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := []string{"SVC_DATA_DIR=" + dir}
	copyKey(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "svc.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, _ := run(t, env, "", "doctor")
	if code != 1 || !strings.Contains(out, `FAIL  database`) || !strings.Contains(out, "svc migrate") {
		t.Errorf("an empty database: %d %s", code, out)
	}
	ok(t, env, "", "admin", "create-user", "bob", "--email", "b@example.org")
	ok(t, env, "", "admin", "enroll-two-factor", "bob")
	ok(t, env, "", "doctor")
	copyKey(t, dir)
	code, out, _ = run(t, env, "", "doctor")
	if code != 1 || !strings.Contains(out, "FAIL  key") {
		t.Errorf("another key: %d %s", code, out)
	}
}

// copyKey puts the key of another instance into a data directory.
func copyKey(t *testing.T, dir string) {
	t.Helper()
	other := t.TempDir()
	ok(t, []string{"SVC_DATA_DIR=" + other}, "", "migrate")
	if err := os.Rename(filepath.Join(other, "secret.key"), filepath.Join(dir, "secret.key")); err != nil {
		t.Fatal(err)
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--help"}, {"serve", "--help"}, {"migrate", "--help"}, {"doctor", "--help"}, {"version"}, {"admin", "--help"},
		{"admin", "create-user", "--help"}, {"admin", "create-token", "--help"}, {"admin", "reset-password", "--help"}, {"admin", "rotate-key", "--help"},
		{"config", "--help"}, {"config", "show"}, {"config", "check"}, {"completion", "bash"}, {"completion", "zsh"}, {"completion", "fish"},
	} {
		if out := ok(t, nil, "", args...); len(out) < 20 {
			t.Errorf("svc %v printed %q", args, out)
		}
	}
}

// TestBesideServer changes data on the command line while a server runs; the server
// must not use outdated caches.
func TestBesideServer(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		s := apptest.Start(t, src)
		_, token := s.User(t, "alice")
		s.Check(t, apptest.Call{Do: "GET /user", As: token, Status: 200})
		env := []string{"SVC_DATA_DIR=" + s.Config.DataDir, "SVC_DATABASE_URL=" + src.URL}
		ok(t, env, "", "admin", "block-user", "alice")
		waittest.For(t, "a user whom svc admin blocked is refused", func() bool {
			return s.Send(t, apptest.Call{Do: "GET /user", As: token}).Status == http.StatusForbidden
		})
	})
}

// TestServeRefuses checks the errors of a server that cannot start.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	code, _, errOut := run(t, []string{"SVC_DATA_DIR=" + t.TempDir()}, "", "serve", "--addr", s.Addr())
	if code != 1 || !strings.Contains(errOut, "address already in use") {
		t.Errorf("exit %d: %s", code, errOut)
	}
	code, _, errOut = run(t, []string{"SVC_DATA_DIR=" + s.Config.DataDir}, "", "serve", "--addr", "127.0.0.1:0")
	if code != 1 || !strings.Contains(errOut, "another svc process serves "+s.Config.DataDir) {
		t.Errorf("a second server on the same data: exit %d: %s", code, errOut)
	}
}

// TestConfig checks and shows options of which some are invalid.
func TestConfig(t *testing.T) {
	t.Parallel()
	code, _, errOut := run(t, []string{"SVC_TIER=gold", "SVC_ADR=x"}, "", "config", "check")
	if code != 2 || !strings.Contains(errOut, `SVC_TIER: "gold" is not one of free, premium, ultimate`) || !strings.Contains(errOut, "did you mean SVC_ADDR?") {
		t.Errorf("check: exit %d, %s", code, errOut)
	}
	if code, _, errOut := run(t, []string{"SVC_TIER=gold"}, "", "config", "show"); code != 2 || !strings.Contains(errOut, "SVC_TIER") {
		t.Errorf("show: exit %d, %s", code, errOut)
	}
	env := []string{"SVC_TIER=free", "SVC_ROOT_PASSWORD=correct-horse-battery"}
	var shown []struct{ Key, Value, Source string }
	if err := json.Unmarshal([]byte(ok(t, env, "", "config", "show", "--json")), &shown); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, s := range shown {
		if s.Key == "tier" && s.Value == "free" && s.Source == "SVC_TIER" || s.Key == "root_password" && s.Value == "xxxxx" {
			found++
		}
	}
	if found != 2 {
		t.Errorf("%v", shown)
	}
	if out := ok(t, env, "", "config", "show"); !strings.Contains(out, "SVC_TIER") || strings.Contains(out, "horse") {
		t.Errorf("show: %s", out)
	}
}
