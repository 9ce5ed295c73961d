package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"svc/internal/waittest"
)

// sh returns a program that runs lines in a shell, and its output.
func sh(t testing.TB, dir, lines string) (program, *bytes.Buffer) {
	t.Helper()
	s, err := findShell()
	if err != nil {
		t.Fatal(err)
	}
	out := &bytes.Buffer{}
	mark := random(8)
	return program{
		path: s.path, args: []string{"-c", lines}, dir: dir, env: append(os.Environ(), markName+"="+mark), out: out, mark: mark, kill: 300 * time.Millisecond,
	}, out
}

func TestProcess(t *testing.T) {
	t.Parallel()
	tests := []struct {
		lines string
		code  int
		out   string
	}{
		{"echo out; echo err >&2", 0, "out\nerr\n"},
		{"exit 3", 3, ""},
		{"kill -9 $$", 137, ""},
		{"cat; echo end", 0, "end\n"}, // standard input is empty
		{"nothing-of-this-name 2>/dev/null", 127, ""},
	}
	for _, tt := range tests {
		p, out := sh(t, t.TempDir(), tt.lines)
		err := p.run(t.Context())
		exit, failed := errors.AsType[*exitError](err)
		if failed != (tt.code != 0) || failed && exit.code != tt.code || out.String() != tt.out {
			t.Errorf("%s: %v, %q", tt.lines, err, out)
		}
	}
}

// TestProcessGroup checks that no process of a program is left, both when it is
// interrupted and when it exits.
func TestProcessGroup(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, lines string
		broken      bool
		away        bool // the child leaves the process group
	}{
		{name: "children", lines: `sleep 300 & echo $! > child; wait`, broken: true},
		{name: "deaf children", lines: `sh -c 'trap "" TERM; echo $$ > child; while :; do sleep 1; done' & wait`, broken: true},
		{name: "a deaf shell", lines: `trap "" TERM; echo $$ > child; while :; do sleep 1; done`, broken: true},
		{name: "a session of its own", lines: `setsid sh -c 'echo $$ > child; sleep 300' & wait`, broken: true, away: true},
		{name: "what is left behind", lines: `sleep 300 & echo $! > child`},
		{name: "what is left behind in a session of its own", away: true,
			lines: `setsid sh -c 'echo $$ > child; sleep 300' & until test -s child; do sleep 0.01; done`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p, _ := sh(t, dir, tt.lines)
			if !tt.away { // killing the process group is enough
				p.mark, p.env = "", os.Environ()
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			done := make(chan error, 1)
			go func() { done <- p.run(ctx) }()
			pid := 0
			waittest.For(t, "the child has begun", func() bool {
				text, _ := os.ReadFile(filepath.Join(dir, "child"))
				pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
				return pid != 0
			})
			if tt.broken {
				cancel(errCanceled)
			}
			if err := <-done; tt.broken != errors.Is(err, errCanceled) {
				t.Errorf("got %v", err)
			}
			waittest.For(t, fmt.Sprintf("process %d is gone", pid), func() bool { return !Alive(pid) })
		})
	}
}

func TestScript(t *testing.T) {
	t.Parallel()
	found, err := findShell()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []shell{found, {"sh", "/bin/sh"}} {
		dir := t.TempDir()
		lines := []string{"x='it''s'", "", "cd /", `echo "$x $PWD"`, "echo one\\\n  two", "false | true", "echo next; false", "echo never"}
		if s.name == "bash" {
			lines = append(lines[:5], lines[6:]...) // bash runs with pipefail
		}
		path := filepath.Join(t.TempDir(), "script.sh")
		if err := os.WriteFile(path, []byte(s.script(lines, false)), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		p := program{path: s.path, args: []string{path}, dir: dir, env: append(os.Environ(), "CI_PROJECT_DIR="+dir), out: &out, kill: time.Second}
		if err := p.run(t.Context()); err == nil || err.Error() != "exit status 1" {
			t.Errorf("%s: %v", s.name, err)
		}
		for _, want := range []string{green("$ x='it''s'") + "\n", "\nits /\n", green(`$ echo one\ # collapsed multi-line command`) + "\none two\n", "next\n"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in:\n%s", s.name, want, &out)
			}
		}
		if strings.Contains(out.String(), "never") {
			t.Errorf("%s: it went on:\n%s", s.name, &out)
		}
	}
}
