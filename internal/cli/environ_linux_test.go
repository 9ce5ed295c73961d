package cli_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// TestServerForgetsOptions reads the environment of a running server like a job of
// the built-in runner could, also as root. It must not contain secrets.
func TestServerForgetsOptions(t *testing.T) {
	t.Parallel()
	_, process := serve(t, []string{"SVC_DATA_DIR=" + t.TempDir(), "SVC_ROOT_PASSWORD=the password of root"})
	defer func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	}()
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", process.Process.Pid))
	if errors.Is(err, fs.ErrPermission) {
		return // only root can read the environment of a server
	}
	if err != nil {
		t.Fatal(err)
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
