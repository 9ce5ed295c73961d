package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/app"
	"svc/internal/app/apptest"
	"svc/internal/config"
	"svc/internal/db/dbtest"
	"svc/internal/git/gittest"
)

// TestBackupWithoutLaterPushes pushes after the snapshot of the database, and before the
// repositories are added: the restored repositories are as the database knows them.
func TestBackupWithoutLaterPushes(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		from := place{url: src.URL, blobs: bucket(t, src), second: secondOf(t, src)}
		s := apptest.Start(t, src, from.configure)
		id, alice := s.User(t, "alice")
		do := func(status int, do, body string) (answer struct{ ID any }) {
			t.Helper()
			a := s.Check(t, apptest.Call{Do: do, As: alice, JSON: body, Status: status})
			if status == 201 {
				a.JSON(t, &answer)
			}
			return answer
		}
		project := int64(do(201, "POST /projects", `{"path":"p","initialize_with_readme":true}`).ID.(float64))
		at := fmt.Sprintf("/projects/%d", project)
		commit := func(branch, file string) {
			t.Helper()
			do(201, "POST "+at+"/repository/commits", fmt.Sprintf(`{"branch":%q,"commit_message":%q,"actions":[{"action":"create","file_path":%q,"content":"x"}]}`, branch, file, file))
		}
		for _, branch := range []string{"moved", "deleted", "replaced", "back"} {
			do(201, "POST "+at+"/repository/branches", fmt.Sprintf(`{"branch":%q,"ref":"main"}`, branch))
			commit(branch, "before-"+branch)
		}
		do(201, "POST "+at+"/repository/tags", `{"tag_name":"old","ref":"main"}`)
		do(201, "POST "+at+"/wikis", `{"title":"home","content":"before"}`)
		// Another project is in the second storage, which on PostgreSQL has refs in the
		// database.
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, JSON: `{"repository_storages_weighted":{"second":100}}`, Status: 200})
		other := fmt.Sprintf("/projects/%.0f", do(201, "POST /projects", `{"path":"q","initialize_with_readme":true}`).ID)
		do(201, "POST "+other+"/repository/branches", `{"branch":"deleted","ref":"main"}`)
		do(201, "POST "+other+"/wikis", `{"title":"home","content":"before"}`)
		state := func(s *apptest.Server) (text string) {
			t.Helper()
			for _, what := range []string{"/repository/branches?per_page=100", "/repository/tags", "/wikis?with_content=1"} {
				text += answerOf(t, s, apptest.Call{Do: "GET " + at + what, As: alice}) + "\n"
				text += answerOf(t, s, apptest.Call{Do: "GET " + other + what, As: alice}) + "\n"
			}
			return text
		}
		want := state(s)
		// A node was killed after it had moved a ref; the push is recorded after the snapshot.
		dir := filepath.Join(s.Config.Storages["default"], "projects", fmt.Sprintf("%02x", project%256), fmt.Sprintf("%d.git", project))
		tip := gittest.Run(t, dir, "rev-parse", "refs/heads/main")
		who, err := json.Marshal(map[string]any{"ID": id, "Username": "alice"})
		if err == nil {
			_, err = s.DB.ExecContext(t.Context(), `INSERT INTO pushes (project_id, actor, push, created_at) VALUES (?, ?, ?, ?)`, project, string(who),
				fmt.Sprintf(`{"Changes":[{"Ref":"refs/heads/unrecorded","Old":"0000000000000000000000000000000000000000","New":%q}],"Mark":"MARK"}`, tip), s.Clock.Now())
		}
		if err != nil {
			t.Fatal(err)
		}
		gittest.Run(t, dir, "-c", "core.logAllRefUpdates=always", "update-ref", "-m", "push MARK", "refs/heads/unrecorded", tip)

		file := filepath.Join(t.TempDir(), "backup.tar")
		out, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		later := func() {
			do(201, "POST "+at+"/repository/branches", `{"branch":"created","ref":"main"}`)
			commit("moved", "after")
			commit("moved", "after again")
			do(204, "DELETE "+at+"/repository/branches/deleted", "")
			do(204, "DELETE "+at+"/repository/branches/replaced", "")
			do(201, "POST "+at+"/repository/branches", `{"branch":"replaced","ref":"moved"}`)
			do(204, "DELETE "+at+"/repository/branches/back", "")
			do(201, "POST "+at+"/repository/branches", `{"branch":"back","ref":"main"}`)
			commit("back", "before-back")
			do(204, "DELETE "+at+"/repository/tags/old", "")
			do(201, "POST "+at+"/repository/tags", `{"tag_name":"new","ref":"main"}`)
			do(200, "PUT "+at+"/wikis/home", `{"content":"after"}`)
			do(201, "POST "+other+"/repository/commits", `{"branch":"main","commit_message":"x","actions":[{"action":"create","file_path":"x","content":"x"}]}`)
			do(204, "DELETE "+other+"/repository/branches/deleted", "")
			do(201, "POST "+other+"/repository/branches", `{"branch":"deleted","ref":"main"}`)
			do(200, "PUT "+other+"/wikis/home", `{"content":"after"}`)
			if err := s.Repos.Recover(t.Context()); err != nil {
				t.Error(err)
			}
		}
		done := false
		_, err = s.Backup(t.Context(), app.BackupOptions{Out: out, Temp: t.TempDir(), Progress: func(format string, _ ...any) {
			if strings.HasPrefix(format, "repositories: ") && !done {
				done = true
				later()
			}
		}})
		if err != nil || !done {
			t.Fatal(done, err)
		}
		dbtest.EachEmpty(t, func(t *testing.T, src dbtest.Source) {
			to := place{filepath.Join(t.TempDir(), "data"), src.URL, bucket(t, src), secondOf(t, src), s.URL}
			ok(t, to.env(), "", "restore", file)
			there := apptest.Start(t, dbtest.Source{URL: to.url}, func(c *config.Config) {
				c.DataDir, c.ExternalURL = to.data, s.URL
				c.Storages = map[string]string{"default": filepath.Join(to.data, "repositories")}
				to.configure(c)
			})
			if err := there.Repos.Recover(t.Context()); err != nil {
				t.Error(err)
			}
			if got := state(there); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	})
}
