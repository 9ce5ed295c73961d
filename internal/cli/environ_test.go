package cli_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestServerForgetsOptions reads the environment of a running server as a job of
// the built-in runner would: its secrets are not there, no matter who asks.
func TestServerForgetsOptions(t *testing.T) {
	t.Parallel()
	_, process := serve(t, []string{"SVC_DATA_DIR=" + t.TempDir(), "SVC_ROOT_PASSWORD=the password of root"})
	defer func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	}()
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", process.Process.Pid))
	if err != nil {
		t.Skipf("the environment cannot be read: %v", err) // only root reads it, or there is no /proc
	}
	if !strings.Contains(string(environ), "PATH="+os.Getenv("PATH")) {
		t.Fatalf("the environment has no PATH: %q", environ)
	}
	for _, secret := range []string{crashToken, "the password of root"} {
		if strings.Contains(string(environ), secret) {
			t.Errorf("%q is in the environment of the server", secret)
		}
	}
}
