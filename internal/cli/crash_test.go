package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"svc/internal/cli"
	"svc/internal/db/dbtest"
	"svc/internal/waittest"
)

// TestMain runs the test binary as the server if it is started as such, so that
// tests have a process to kill.
func TestMain(m *testing.M) {
	if os.Getenv("SVC_TEST_SERVE") != "" {
		os.Exit(cli.MainWith(quickly(), []string{"serve"}, os.Environ(), os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

const crashToken = "svcpat-token-of-the-crash-test"

// server returns the command of a server with an environment.
func server(env []string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append([]string{"SVC_SSH_ADDR=off"}, env...)
	cmd.Env = append(cmd.Env, "SVC_TEST_SERVE=1", "SVC_ADDR=127.0.0.1:0", "SVC_LOG_LEVEL=error", "SVC_ROOT_TOKEN="+crashToken, "PATH="+os.Getenv("PATH"))
	return cmd
}

// serve starts a server and returns its address.
func serve(t *testing.T, env []string) (address string, process *exec.Cmd) {
	t.Helper()
	return serveWith(t, server(env))
}

// serveWith starts the command of a server and returns its address.
func serveWith(t *testing.T, cmd *exec.Cmd) (address string, process *exec.Cmd) {
	t.Helper()
	return startWith(t, cmd, "svc listens on ")[0], cmd
}

// startWith starts a server and returns the addresses that it prints after each of
// the texts. As a service manager does, it starts a server again that did not get a
// connection to the database in time, on a busy machine.
func startWith(t *testing.T, cmd *exec.Cmd, texts ...string) []string {
	t.Helper()
	again := exec.Cmd{Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir, SysProcAttr: cmd.SysProcAttr}
	for try := 1; ; try++ {
		addresses, errOut := tryStart(t, cmd, texts)
		if len(addresses) == len(texts) {
			return addresses
		}
		if try == 10 || !strings.Contains(errOut, "The database is not available.") {
			t.Fatalf("the server did not start: %s", errOut)
		}
		*cmd = again
	}
}

// tryStart starts a server, and returns the addresses or what it printed before it ended.
func tryStart(t *testing.T, cmd *exec.Cmd, texts []string) (addresses []string, said string) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errOut strings.Builder
	cmd.Stderr = &errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // for failed tests; others have stopped it
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), texts[len(addresses)]); ok {
			addresses = append(addresses, strings.Fields(rest)[0])
		}
		if len(addresses) == len(texts) {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return addresses, ""
		}
	}
	_ = cmd.Wait()
	return nil, errOut.String()
}

// ask sends a request as root; a status of 0 means that there was no response.
func ask(ctx context.Context, method, address, body string) (status int, answer string) {
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return 0, ""
	}
	r.Header.Set("PRIVATE-TOKEN", crashToken)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, ""
	}
	return res.StatusCode, string(text)
}

// TestKilled kills the server while users are created and deleted. After the next
// start, acknowledged changes must exist, and the background jobs of deletions must
// finish.
func TestKilled(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		env := []string{"SVC_DATA_DIR=" + t.TempDir(), "SVC_DATABASE_URL=" + src.URL}
		var mu sync.Mutex
		made, deleted, unknown := map[int64]bool{}, map[int64]bool{}, map[int64]bool{}
		for round := range 4 {
			address, process := serve(t, env)
			api := address + "/api/v4"
			ctx, cancel := context.WithCancel(t.Context())
			var writers sync.WaitGroup
			for w := range 4 {
				writers.Go(func() {
					for i := 0; ctx.Err() == nil; i++ {
						name := fmt.Sprintf("u%d-%d-%d", round, w, i)
						status, answer := ask(ctx, "POST", api+"/users", `{"email":"`+name+`@example.org","name":"x","username":"`+name+`","force_random_password":true}`)
						if status != http.StatusCreated {
							return
						}
						var u struct{ ID int64 }
						if json.Unmarshal([]byte(answer), &u) != nil {
							return
						}
						mu.Lock()
						made[u.ID] = true
						mu.Unlock()
						if i%3 != 0 {
							continue
						}
						if status, _ := ask(ctx, "DELETE", fmt.Sprintf("%s/users/%d", api, u.ID), ""); status == http.StatusNoContent {
							mu.Lock()
							deleted[u.ID] = true
							mu.Unlock()
						} else {
							mu.Lock()
							unknown[u.ID] = true
							mu.Unlock()
						}
					}
				})
			}
			// Kill the server while requests are running.
			waittest.For(t, "enough users are created", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(made) >= (round+1)*4
			})
			if err := process.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = process.Wait()
			cancel()
			writers.Wait()
		}
		t.Logf("%d users created, %d of them deleted", len(made), len(deleted))
		address, process := serve(t, env)
		for id := range made {
			if unknown[id] {
				continue // the server was killed before it responded
			}
			want := http.StatusOK
			if deleted[id] {
				want = http.StatusNotFound
			}
			if status, answer := ask(t.Context(), "GET", fmt.Sprintf("%s/api/v4/users/%d", address, id), ""); status != want {
				t.Errorf("user %d: %d, want %d: %s", id, status, want, answer)
			}
		}
		d := source(src, env).Open(t)
		waittest.For(t, "all deletions are finished", func() bool { // another node is considered dead after some missing heartbeats
			var left int
			if err := d.QueryRowContext(t.Context(), `SELECT count(*) FROM users WHERE deleted_at IS NOT NULL`).Scan(&left); err != nil {
				t.Fatal(err)
			}
			return left == 0
		})
		if err := process.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := process.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
}

// source returns the database of a server.
func source(src dbtest.Source, env []string) dbtest.Source {
	if src.URL != "" {
		return src
	}
	return dbtest.Source{Path: strings.TrimPrefix(env[0], "SVC_DATA_DIR=") + "/svc.db"}
}
