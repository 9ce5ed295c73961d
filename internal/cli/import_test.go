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

// TestImport imports a group from another server with the command svc import.
func TestImport(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		from, to := apptest.Start(t, dbtest.SQLite(t)), apptest.Start(t, src)
		const root = apptest.RootToken
		var team struct{ ID int64 }
		from.Check(t, apptest.Call{Do: "POST /groups", As: root, JSON: `{"name":"Team","path":"team"}`, Status: 201}).JSON(t, &team)
		from.Table(t, []apptest.Call{
			{Do: "POST /groups/team/labels", As: root, JSON: `{"name":"bug","color":"#ff0000"}`, Status: 201},
			{Do: "POST /projects", As: root, JSON: fmt.Sprintf(`{"name":"App","path":"app","namespace_id":%d,"initialize_with_readme":true}`, team.ID), Status: 201},
			{Do: "POST /projects/team%2Fapp/issues", As: root, JSON: `{"title":"First"}`, Status: 201},
			{Do: "POST /projects/team%2Fapp/variables", As: root, JSON: `{"key":"PASSWORD","value":"hidden"}`, Status: 201},
		})
		to.Check(t, apptest.Call{Do: "PUT /application/settings", As: root, JSON: `{"allow_local_requests_from_web_hooks_and_services":true}`, Status: 200})
		token := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(token, []byte(root+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"import", "--url", from.URL, "--token-file", token, "--server", to.URL, "--server-token-file", token, "--group", "team"}
		out := ok(t, nil, "", append(args, "--dry-run")...)
		for _, want := range []string{"group    team: 1 labels", "project  team/app: 1 issues, 0 merge requests, 1 labels", "1 variables"} {
			if !strings.Contains(out, want) {
				t.Errorf("the dry run does not have %q:\n%s", want, out)
			}
		}
		to.Check(t, apptest.Call{Do: "GET /groups/team", As: root, Status: 404})
		out = ok(t, nil, "", args...)
		for _, want := range []string{"was started", "group team: finished as team", "project team/app: finished as team/app", "variables PASSWORD: "} {
			if !strings.Contains(out, want) {
				t.Errorf("the output does not have %q:\n%s", want, out)
			}
		}
		if strings.Contains(out, "hidden") || strings.Contains(out, root) {
			t.Errorf("the output has secrets:\n%s", out)
		}
		to.Check(t, apptest.Call{Do: "GET /projects/team%2Fapp/issues", As: root, Status: 200, Want: `[{"title":"First"}]`})
		if code, out, errOut := run(t, nil, "", append(args[:len(args)-2:len(args)-2], "--project", "team/none", "--to", "root")...); code != 1 || !strings.Contains(out, "HTTP 404") || !strings.Contains(errOut, "1 of 1") {
			t.Errorf("a missing project: %d\n%s%s", code, out, errOut)
		}
		if code, _, errOut := run(t, nil, "", args...); code != 1 || !strings.Contains(errOut, "has already been taken") {
			t.Errorf("an existing group: %d, %s", code, errOut)
		}
		for _, wrong := range [][]string{
			{"import"}, {"import", "--url", "ftp://x"}, {"import", "--url", from.URL}, {"import", "--url", from.URL, "--token-file", token},
			{"import", "--url", from.URL, "--token-file", token, "--project", "a/b"}, {"import", "--url", from.URL, "--token-file", token, "--group", "a"},
		} {
			if code, _, errOut := run(t, nil, "", wrong...); code != 2 {
				t.Errorf("%v: exit %d, %s", wrong, code, errOut)
			}
		}
	})
}
