package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
)

// TestDoctorRepositories damages one of three repositories and checks that the
// doctor command reports it.
func TestDoctorRepositories(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		s := apptest.Start(t, src)
		_, token := s.User(t, "alice")
		for _, name := range []string{"whole", "broken"} {
			s.Check(t, apptest.Call{Do: "POST /projects", As: token, JSON: `{"name":"` + name + `","initialize_with_readme":true}`, Status: 201})
		}
		s.Check(t, apptest.Call{Do: "POST /projects", As: token, JSON: `{"name":"empty"}`, Status: 201})
		env := []string{"SVC_DATA_DIR=" + s.Config.DataDir, "SVC_DATABASE_URL=" + src.URL}
		if out := ok(t, env, "", "doctor", "--repositories"); !strings.Contains(out, "3 of 3 are whole") {
			t.Errorf("before the damage:\n%s", out)
		}
		var id int64
		if err := s.DB.QueryRowContext(t.Context(), `SELECT id FROM projects WHERE full_path = 'alice/broken'`).Scan(&id); err != nil {
			t.Fatal(err)
		}
		objects := filepath.Join(s.Config.Storages["default"], "projects", fmt.Sprintf("%02x", id%256), fmt.Sprintf("%d.git", id), "objects")
		dirs, err := filepath.Glob(objects + "/[0-9a-f][0-9a-f]")
		if err != nil || len(dirs) == 0 {
			t.Fatalf("no objects in %s: %v", objects, err)
		}
		if err := os.RemoveAll(dirs[0]); err != nil {
			t.Fatal(err)
		}
		code, out, errOut := run(t, env, "", "doctor", "--repositories")
		if code != 1 || !strings.Contains(out, fmt.Sprintf("FAIL  repository   alice/broken (project %d): ", id)) || !strings.Contains(out, "2 of 3 are whole") {
			t.Errorf("exit %d:\n%s%s", code, out, errOut)
		}
		// Repositories are checked only with --repositories.
		ok(t, env, "", "doctor")
	})
}
