package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/db/dbtest"
	"svc/internal/waittest"
)

// TestRunnerKilled kills a server while its built-in runner runs a job. After the
// next start, the job has failed and its log is complete.
func TestRunnerKilled(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		dir := t.TempDir()
		env := []string{"SVC_DATA_DIR=" + dir, "SVC_DATABASE_URL=" + src.URL, "SVC_RUNNER=builtin", "SVC_EXAMPLE=true"}
		address, process := serve(t, env)
		api := address + "/api/v4/projects/example%2Fhello"
		until := func(what string, is func() bool) {
			t.Helper()
			waittest.For(t, what, is)
		}
		logs := func() string {
			found, err := filepath.Glob(filepath.Join(dir, "runner", "builds", "*", "log"))
			if err != nil || len(found) != 1 {
				return ""
			}
			text, err := os.ReadFile(found[0])
			if err != nil {
				return ""
			}
			return string(text)
		}
		until("the job", func() bool { return strings.Contains(logs(), "packing the comma") })
		if err := process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = process.Wait()
		written := logs()

		address, process = serve(t, env)
		api = address + "/api/v4/projects/example%2Fhello"
		var jobs []struct {
			Name, Status  string
			FailureReason string `json:"failure_reason"`
		}
		until("the end of the job", func() bool {
			_, text := ask(t.Context(), "GET", api+"/jobs?scope=failed", "")
			return json.Unmarshal([]byte(text), &jobs) == nil && len(jobs) == 1
		})
		if jobs[0].Name != "build" || jobs[0].FailureReason != "runner_system_failure" {
			t.Errorf("got %+v", jobs)
		}
		_, text := ask(t.Context(), "GET", api+"/jobs/1/trace", "")
		if !strings.HasPrefix(text, strings.TrimSuffix(written, "\n")) || !strings.Contains(text, "the runner ended while the job ran") {
			t.Errorf("the log is:\n%s\nwant:\n%s", text, written)
		}
		var runners []struct{ Description string }
		_, text = ask(t.Context(), "GET", address+"/api/v4/runners/all", "")
		if err := json.Unmarshal([]byte(text), &runners); err != nil || len(runners) != 1 {
			t.Errorf("runners: %s", text)
		}
		until("the directory", func() bool {
			left, err := os.ReadDir(filepath.Join(dir, "runner", "builds"))
			return err == nil && len(left) == 0
		})
		if err := process.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := process.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
}

func TestRunnerCalledWrongly(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"runner"}, 2, "the runner needs a token"},
		{[]string{"runner", "--runner-token", "x", "--runner-concurrency", "0"}, 2, "is not a number from 1 to 256"},
		{[]string{"runner", "--runner-token", "x", "--runner-url", "ftp://x"}, 2, "does not start with http"},
	} {
		code, _, errOut := run(t, []string{"SVC_DATA_DIR=" + t.TempDir()}, "", tt.args...)
		if code != tt.code || !strings.Contains(errOut, tt.want) {
			t.Errorf("%v: exit %d: %s", tt.args, code, errOut)
		}
	}
}
