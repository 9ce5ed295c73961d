package git

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svc/internal/git/gittest"
	"svc/internal/git/refstore"
	"svc/internal/waittest"
)

func newEngine(t testing.TB, l Limits) *Engine {
	t.Helper()
	e, err := New(Deps{Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// open returns a new repository as a handle of the engine and as a test helper.
func open(t testing.TB) (Repo, *gittest.Repo) {
	t.Helper()
	g := gittest.New(t)
	return newEngine(t, Limits{}).Repo(g.Path), g
}

func TestInit(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Limits{})
	path := filepath.Join(t.TempDir(), "a", "b", "c.git")
	r, err := e.Init(t.Context(), path, "trunk")
	if err != nil {
		t.Fatal(err)
	}
	g := gittest.At(t, path)
	if got := g.Git("symbolic-ref", "HEAD"); got != "refs/heads/trunk" {
		t.Error(got)
	}
	g.Git("fsck", "--strict")
	for _, s := range settings() {
		if got := g.Git("config", "--file", "config", "--get", s.key); got != s.value {
			t.Errorf("%s is %q", s.key, got)
		}
	}
	g.Commit(gittest.Commit{Branch: "trunk", Changes: []gittest.Change{{Path: "x", Content: "y"}}})
	if _, _, err := r.Resolve(t.Context(), "HEAD"); err != nil {
		t.Error(err)
	}
	if _, err := e.Init(t.Context(), path, "main"); !errors.Is(err, ErrExists) {
		t.Errorf("a second time: %v", err)
	}
	for _, branch := range []string{"", "-x", "a..b", "HEAD", "x.lock"} {
		if _, err := e.Init(t.Context(), path+"2", branch); !errors.Is(err, ErrBadRef) {
			t.Errorf("branch %q: %v", branch, err)
		}
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestSettingsAreKnown checks that git accepts the settings with a fixed set of values.
func TestSettingsAreKnown(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "x", Content: "y"}}})
	var said strings.Builder
	c := command{work: writing, args: []string{"repack", "-adq"}, says: &said}
	if _, err := r.output(t.Context(), c); err != nil || said.String() != "" {
		t.Errorf("%v %q", err, said.String())
	}
	c = command{args: []string{"config", "--get", "core.fsync"}}
	if out, err := r.output(t.Context(), c); err != nil || strings.TrimSpace(string(out)) != "objects,derived-metadata,reference" {
		t.Errorf("%q %v", out, err)
	}
}

func TestEnvironmentIsClean(t *testing.T) {
	// Not parallel: it changes the environment of the process.
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tname = Mallory\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("GIT_OBJECT_DIRECTORY", "/nonexistent")
	r, _ := open2(t)
	out, err := r.output(t.Context(), command{args: []string{"config", "--get", "user.name"}, ok: []int{1}})
	if err != nil || len(out) > 0 {
		t.Errorf("%q %v", out, err)
	}
	out, err = r.output(t.Context(), command{args: []string{"rev-parse", "--git-path", "objects"}})
	if err != nil || strings.Contains(string(out), "nonexistent") {
		t.Errorf("%q %v", out, err)
	}
}

// open2 is open for a test that changes the environment of the helper.
func open2(t *testing.T) (Repo, *Engine) {
	t.Helper()
	e := newEngine(t, Limits{})
	r, err := e.Init(t.Context(), filepath.Join(t.TempDir(), "r.git"), "main")
	if err != nil {
		t.Fatal(err)
	}
	return r, e
}

func TestErrorsAreTyped(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "x", Content: "y"}}})
	empty := r.engine.Repo(t.TempDir())
	gone := r.engine.Repo(filepath.Join(t.TempDir(), "none"))
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name string
		repo Repo
		ctx  context.Context
		args []string
		want error
	}{
		{"revision", r, t.Context(), []string{"log", "nowhere", "--"}, ErrNotFound},
		{"object", r, t.Context(), []string{"cat-file", "-p", string(ZeroOID)}, ErrNotFound},
		{"directory", empty, t.Context(), []string{"log"}, ErrNoRepository},
		{"no directory", gone, t.Context(), []string{"log"}, ErrNoRepository},
		{"option", r, t.Context(), []string{"log", "--nonsense"}, ErrCommand},
		{"canceled", r, canceled, []string{"log"}, context.Canceled},
	} {
		_, err := c.repo.output(c.ctx, command{args: c.args})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestCorruptObject(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	good := g.Object("blob", "whole")
	id := g.Object("blob", strings.Repeat("a story ", 1000))
	file := filepath.Join(g.Path, "objects", id[:2], id[2:])
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Object(t.Context(), OID(id)); err == nil {
		t.Error("read a broken object")
	}
	if o, err := r.Object(t.Context(), OID(good)); err != nil || string(o.Content) != "whole" {
		t.Errorf("the next one: %v", err)
	}
}

// sleepy is a repository whose git command runs until it is killed with its child process.
func sleepy(t *testing.T, l Limits) (Repo, command, string) {
	t.Helper()
	e := newEngine(t, l)
	pidFile := filepath.Join(t.TempDir(), "pid")
	c := command{args: []string{"-c", "alias.nap=!sleep 1000 & echo $! >" + pidFile + "; echo ready; wait", "nap"}}
	return e.Repo(gittest.New(t).Path), c, pidFile
}

// wantGone waits until a process has ended.
func wantGone(t *testing.T, pidFile string) {
	t.Helper()
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	waittest.For(t, "the child of git ends", func() bool {
		// kill -0 succeeds for a dead child that was not waited for.
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(text)) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}

func TestTimeLimitKillsTheGroup(t *testing.T) {
	t.Parallel()
	for limit := 300 * time.Millisecond; ; limit *= 4 {
		r, c, pid := sleepy(t, Limits{Read: limit})
		if _, err := r.output(t.Context(), c); !errors.Is(err, ErrTimeout) {
			t.Error(err)
		}
		if _, err := os.Stat(pid); err == nil {
			wantGone(t, pid)
			return
		}
		// On a busy machine it may be killed before it has a child.
	}
}

func TestCallerCancels(t *testing.T) {
	t.Parallel()
	r, c, pid := sleepy(t, Limits{})
	ctx, cancel := context.WithCancel(t.Context())
	err := r.run(ctx, c, func(out io.Reader) error {
		line := make([]byte, 5)
		_, err := io.ReadFull(out, line)
		cancel()
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	wantGone(t, pid)
}

func TestErrEnoughKillsProcesses(t *testing.T) {
	t.Parallel()
	r, c, pid := sleepy(t, Limits{})
	err := r.run(t.Context(), c, func(out io.Reader) error {
		if _, err := io.ReadFull(out, make([]byte, 5)); err != nil {
			return err
		}
		return errEnough
	})
	if err != nil {
		t.Error(err)
	}
	wantGone(t, pid)
}

func TestTooManyProcesses(t *testing.T) {
	t.Parallel()
	r, c, _ := sleepy(t, Limits{Commands: 1, Wait: 50 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	running, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = r.run(ctx, c, func(out io.Reader) error {
			close(running)
			_, err := io.Copy(io.Discard, out)
			return err
		})
	}()
	<-running
	if _, err := r.output(t.Context(), command{args: []string{"version"}}); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
	// Transfers have their own slots.
	if _, err := r.output(t.Context(), command{work: transfer, args: []string{"version"}}); err != nil {
		t.Error(err)
	}
	cancel()
	<-done
	if _, err := r.output(t.Context(), command{args: []string{"version"}}); err != nil {
		t.Error(err)
	}
}

func TestKilledByOthers(t *testing.T) {
	t.Parallel()
	r, _ := open(t)
	c := command{args: []string{"-c", "alias.die=!kill -9 $PPID; sleep 1", "die"}}
	if _, err := r.output(t.Context(), c); !errors.Is(err, ErrKilled) {
		t.Error(err)
	}
}

func TestStderrIsBounded(t *testing.T) {
	t.Parallel()
	r, _ := open(t)
	c := command{args: []string{"-c", "alias.shout=!head -c 300000 /dev/zero | tr '\\0' x >&2; echo the end >&2; exit 3", "shout"}}
	_, err := r.output(t.Context(), c)
	var e *Error
	if !errors.As(err, &e) || e.Exit != 3 || len(e.Stderr) > tailSize || !strings.HasSuffix(e.Stderr, "the end\n") {
		t.Errorf("%.200v", err)
	}
}

func TestCheckRef(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"refs/heads/main": true, "refs/tags/v1.0": true, "refs/heads/a/b-c": true, "refs/heads/ü": true, "refs/x": true,
		"refs/heads/a@b": true, "refs/tags/@": true, "refs/heads/x.locked": true,
		"": false, "main": false, "heads/main": false, "refs/heads/": false, "refs/heads/-x": false, "refs/heads/a/-b": false,
		"refs/heads/..": false, "refs/heads/a..b": false, "refs/heads/a\x00b": false, "refs/heads/a\nb": false, "refs/heads/a\x7f": false,
		"refs/heads/a.lock": false, "refs/heads/a.lock/b": false, "refs/heads/.a": false, "refs/heads/a.": false,
		"refs/heads/a b": false, "refs/heads/a~1": false, "refs/heads/a^": false, "refs/heads/a:b": false, "refs/heads/a?": false,
		"refs/heads/*": false, "refs/heads/[a]": false, `refs/heads/a\b`: false, "refs/heads/a@{1}": false, "refs/heads//a": false,
		"refs/heads/HEAD": false, "refs/heads/@": false, "refs/../config": false, "/refs/heads/x": false,
		"refs/heads/" + strings.Repeat("a", 4096): false, "refs/heads/" + strings.Repeat("a", 250): false,
		"refs/heads/" + strings.Repeat("a/", 1000) + "a": false, "refs/heads/" + strings.Repeat("a", 240): true,
	} {
		err := CheckRef(name)
		if (err == nil) != ok || err != nil && !errors.Is(err, ErrBadRef) {
			t.Errorf("%.60q: %v", name, err)
		}
	}
}

// FuzzRefFormat compares our rules for ref names with those of git.
func FuzzRefFormat(f *testing.F) {
	for _, s := range []string{"refs/heads/main", "a/b.lock", "a/.b", "a/b..c", "a/b\x7f", "a/b@{", "@", "a/@", "a//b", "/a/b", "a/b/", "a/b.", "a/ b", "a/\\b", "ü/ä", "a/.lock", "a.lock/b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if strings.ContainsRune(name, 0) || len(name) > 2000 || strings.HasPrefix(name, "-") {
			return // cannot be an argument of a program, or is an option
		}
		want := exec.Command("git", "check-ref-format", name).Run() == nil
		if got := refstore.WellFormed(name); got != want {
			t.Errorf("%q: %v, git says %v", name, got, want)
		}
	})
}
