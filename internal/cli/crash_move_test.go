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

	"svc/internal/db/dbtest"
	"svc/internal/git/gittest"
	"svc/internal/repo"
)

// killedMoves has the server end itself without a word at a step of a storage
// move.
func killedMoves() repo.MoveOptions {
	at := os.Getenv("SVC_TEST_KILL_AT")
	return repo.MoveOptions{Quiet: 10 * time.Millisecond, Step: func(name string) {
		if name == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // it does not come back from there
		}
	}}
}

// TestKilledMoves kills the server at each step of a storage move: the next one
// goes on with it, and in the end the repository lies at its new place, whole
// and open for everybody.
func TestKilledMoves(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		data, second := t.TempDir(), t.TempDir()
		env := []string{"SVC_DATA_DIR=" + data, "SVC_DATABASE_URL=" + src.URL, "SVC_STORAGES=second=" + second}
		steps := []string{"start", "copy", "verify", "switch", "leave", "clean", "finish"}
		if src.URL != "" { // a node is believed dead after some pulses only
			steps = []string{"switch"}
		}
		var id int64
		for i, step := range steps {
			at := append(slices.Clip(env), "SVC_TEST_KILL_AT="+step)
			if i > 0 { // it goes on before anybody asks it
				dies(t, server(at), step)
				continue
			}
			address, process := serve(t, at)
			id = makeProject(t, address, "p")
			file(t, address, id, "first")
			status, answer := ask(t.Context(), "POST", fmt.Sprintf("%s/api/v4/projects/%d/repository_storage_moves", address, id), `{"destination_storage_name":"second"}`)
			if status != 201 {
				t.Fatalf("move: %d %s", status, answer)
			}
			killed(t, process.Wait(), step)
		}
		address, process := serve(t, env)
		state := ""
		for range 600 {
			_, answer := ask(t.Context(), "GET", fmt.Sprintf("%s/api/v4/projects/%d/repository_storage_moves", address, id), "")
			var list []struct{ State string }
			if err := json.Unmarshal([]byte(answer), &list); err != nil || len(list) != 1 {
				t.Fatalf("%v: %s", err, answer)
			}
			if state = list[0].State; state == "finished" || state == "failed" {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if state != "finished" {
			t.Errorf("the move is %q", state)
		}
		file(t, address, id, "second")
		path := filepath.Join("projects", fmt.Sprintf("%02x", id%256), fmt.Sprintf("%d.git", id))
		if out, err := gittest.Command(filepath.Join(second, path), "fsck", "--full", "--strict").CombinedOutput(); err != nil {
			t.Errorf("it is broken: %v: %s", err, out)
		}
		if n := gittest.Run(t, filepath.Join(second, path), "rev-list", "--count", "main"); n != "2" {
			t.Errorf("it has %s commits", n)
		}
		if _, err := os.Stat(filepath.Join(data, "repositories", path)); err == nil {
			t.Error("it is at its old place as well")
		}
		stop(t, process)
	})
}

// dies runs a server until it is killed.
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
		t.Fatalf("the server was to be killed at %s: %v", step, err)
	}
}

// file makes a commit.
func file(t *testing.T, address string, project int64, name string) {
	t.Helper()
	status, answer := ask(t.Context(), "POST", fmt.Sprintf("%s/api/v4/projects/%d/repository/files/%s", address, project, name), `{"branch":"main","content":"x","commit_message":"x"}`)
	if status != 201 {
		t.Fatalf("commit %s: %d %s", name, status, answer)
	}
}

// stop has a server end as it should.
func stop(t *testing.T, process *exec.Cmd) {
	t.Helper()
	if err := process.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}
