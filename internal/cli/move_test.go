package cli_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/db/dbtest"
	"svc/internal/waittest"
)

// TestMoveRepositories moves repositories on the command line beside a running server.
func TestMoveRepositories(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		env := []string{"SVC_DATA_DIR=" + t.TempDir(), "SVC_STORAGES=second=" + t.TempDir()}
		if src.URL != "" {
			env = append(env, "SVC_DATABASE_URL="+src.URL)
		}
		address, process := serve(t, env)
		for _, name := range []string{"one", "two"} {
			firstCommit(t, address, makeProject(t, address, name))
		}
		move := func(want string, args ...string) {
			t.Helper()
			if out := ok(t, env, "", append([]string{"admin", "move-repositories"}, args...)...); !strings.Contains(out, want) {
				t.Errorf("move-repositories %s prints %q", strings.Join(args, " "), out)
			}
		}
		waitFor := func(project int, storage string) {
			t.Helper()
			waittest.For(t, fmt.Sprintf("project %d on the storage %s", project, storage), func() bool {
				_, moves := ask(t.Context(), "GET", fmt.Sprintf("%s/api/v4/projects/%d/repository_storage_moves?per_page=1", address, project), "")
				_, p := ask(t.Context(), "GET", fmt.Sprintf("%s/api/v4/projects/%d", address, project), "")
				return strings.Contains(moves, `"state":"finished"`) && strings.Contains(p, `"repository_storage":"`+storage+`"`)
			})
		}
		move("root/one will be moved from default to second.", "root/one", "--to", "second")
		waitFor(1, "second")
		move("All repositories of the storage default will be moved.", "--from", "default", "--to", "second")
		waitFor(2, "second")
		for _, wrong := range []struct {
			args []string
			text string
		}{
			{nil, "either --from or at least one project"},
			{[]string{"root/one", "--from", "second"}, "either --from or at least one project"},
			{[]string{"root/none"}, "root/none: find project: Project not found"},
			{[]string{"root/one", "--to", "second"}, "is the storage that the repository is on"},
			{[]string{"--from", "third"}, "is not included in the list"},
		} {
			code, _, errOut := run(t, env, "", append([]string{"admin", "move-repositories"}, wrong.args...)...)
			if code == 0 || !strings.Contains(errOut, wrong.text) {
				t.Errorf("move-repositories %s: exit %d, %s", strings.Join(wrong.args, " "), code, errOut)
			}
		}
		end(t, process)
	})
}
