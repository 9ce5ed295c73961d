package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"svc/internal/app"
	"svc/internal/db/dbtest"
	"svc/internal/git/gittest"
	"svc/internal/repo/storagemove"
	"svc/internal/waittest"
)

// quickly returns the options of a server with short waits for storage moves and
// heartbeats, which kills itself at a step of a storage move.
func quickly() app.Options {
	at := os.Getenv("SVC_TEST_KILL_AT")
	if dir := os.Getenv("SVC_TEST_MIGRATIONS"); dir != "" {
		return app.Options{Migrations: os.DirFS(dir)}
	}
	if at == "" {
		return app.Options{}
	}
	return app.Options{Pulse: 200 * time.Millisecond, Moves: storagemove.Options{Quiet: 10 * time.Millisecond, Step: func(name string) {
		if name == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // wait for the signal
		}
	}}}
}

// TestKilledMoves kills the server at each step of a storage move. The next start
// continues the move; in the end the repository is in one storage, complete and
// writable.
func TestKilledMoves(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		data, second, third := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(third, nil, 0o600); err != nil { // a storage that cannot be written
			t.Fatal(err)
		}
		env := []string{"SVC_DATA_DIR=" + data, "SVC_DATABASE_URL=" + src.URL, "SVC_STORAGES=second=" + second + ",third=" + third}
		until := func(step string) []string { return append(slices.Clip(env), "SVC_TEST_KILL_AT="+step) }
		address, process := serve(t, until("start"))
		id := makeProject(t, address, "p")
		file(t, address, id, "first")
		move(t, address, id, "second")
		killed(t, process.Wait(), "start")
		for _, step := range []string{"copy", "verify", "switch", "leave", "clean", "finish"} { // the move continues at the start of the server
			dies(t, server(until(step)), step)
		}
		address, process = serve(t, until("fail"))
		ends(t, address, id, "finished")
		file(t, address, id, "second")
		path := filepath.Join("projects", fmt.Sprintf("%02x", id%256), fmt.Sprintf("%d.git", id))
		if _, err := os.Stat(filepath.Join(data, "repositories", path)); err == nil {
			t.Error("the repository still exists in the old storage")
		}
		move(t, address, id, "third")
		killed(t, process.Wait(), "fail")
		address, process = serve(t, until("none"))
		ends(t, address, id, "failed")
		file(t, address, id, "third")
		if out, err := gittest.Command(filepath.Join(second, path), "fsck", "--full", "--strict").CombinedOutput(); err != nil {
			t.Errorf("the repository is damaged: %v: %s", err, out)
		}
		if n := gittest.Run(t, filepath.Join(second, path), "rev-list", "--count", "main"); n != "3" {
			t.Errorf("the repository has %s commits", n)
		}
		for _, root := range []string{filepath.Join(data, "repositories"), second} {
			if left, err := filepath.Glob(filepath.Join(root, "projects", "*", "*+*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
		}
		stop(t, process)
	})
}

func move(t *testing.T, address string, project int64, to string) {
	t.Helper()
	status, answer := ask(t.Context(), "POST", fmt.Sprintf("%s/api/v4/projects/%d/repository_storage_moves", address, project), `{"destination_storage_name":"`+to+`"}`)
	if status != 201 && status != 0 { // the server may be killed before it responds
		t.Fatalf("move: %d %s", status, answer)
	}
}

// ends waits until the newest storage move of a project has ended.
func ends(t *testing.T, address string, project int64, want string) {
	t.Helper()
	waittest.For(t, "the move is "+want, func() bool {
		_, answer := ask(t.Context(), "GET", fmt.Sprintf("%s/api/v4/projects/%d/repository_storage_moves", address, project), "")
		var list []struct{ State string }
		if err := json.Unmarshal([]byte(answer), &list); err != nil || len(list) == 0 {
			t.Fatalf("%v: %s", err, answer)
		}
		switch list[0].State {
		case want:
			return true
		case "finished", "failed", "cleanup failed":
			t.Fatalf("want the move %s: %s", want, answer)
		}
		return false
	})
}

// dies waits for a server that kills itself at a step.
func dies(t *testing.T, process *exec.Cmd, step string) {
	t.Helper()
	late := time.AfterFunc(time.Minute, func() { _ = process.Process.Signal(os.Interrupt) })
	defer late.Stop()
	killed(t, process.Run(), step)
}

func killed(t *testing.T, err error, step string) {
	t.Helper()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the server was not killed at %s: %v", step, err)
	}
}

// file creates a commit.
func file(t *testing.T, address string, project int64, name string) {
	t.Helper()
	status, answer := ask(t.Context(), "POST", fmt.Sprintf("%s/api/v4/projects/%d/repository/files/%s", address, project, name), `{"branch":"main","content":"x","commit_message":"x"}`)
	if status != 201 {
		t.Fatalf("commit %s: %d %s", name, status, answer)
	}
}

// stop stops a server with SIGTERM.
func stop(t *testing.T, process *exec.Cmd) {
	t.Helper()
	if err := process.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}
