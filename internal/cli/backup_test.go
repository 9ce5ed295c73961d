package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/config"
	"svc/internal/db/dbtest"
	"svc/internal/git/gittest"
)

// TestBackup backs a server up while it runs, and restores the backup into an
// empty place on each kind of database: the same questions get the same answers
// there.
func TestBackup(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		second := t.TempDir()
		s := apptest.Start(t, src, func(c *config.Config) { c.Storages["second"] = second })
		_, alice := s.User(t, "alice")
		made := func(do, body string) (id int64) {
			t.Helper()
			var thing struct{ ID int64 }
			s.Check(t, apptest.Call{Do: do, As: alice, JSON: body, Status: 201}).JSON(t, &thing)
			return thing.ID
		}
		p := made("POST /projects", `{"path":"p","initialize_with_readme":true,"description":"é <b>"}`)
		g := made("POST /groups", `{"path":"top","name":"Top"}`)
		at := fmt.Sprintf("/projects/%d", p)
		snip := made("POST /snippets", `{"title":"snip","content":"text","file_name":"a.txt","visibility":"public"}`)
		for do, body := range map[string]string{
			"POST " + at + "/repository/branches":             `{"branch":"side","ref":"main"}`,
			"POST " + at + "/repository/tags":                 `{"tag_name":"v1","ref":"main","message":"tagged"}`,
			"POST " + at + "/issues":                          `{"title":"An issue","description":"text","labels":"bug"}`,
			"POST " + at + "/variables":                       `{"key":"SECRET","value":"sealed under the key"}`,
			"POST " + at + "/wikis":                           `{"title":"home","content":"wiki"}`,
			fmt.Sprintf("POST /groups/%d/wikis", g):           `{"title":"home","content":"ours"}`,
			fmt.Sprintf("POST /groups/%d/milestones", g):      `{"title":"m1","due_date":"2030-01-01"}`,
			"POST " + at + "/repository/files/.gitlab-ci.yml": `{"branch":"main","content":"job:\n  script: [\"true\"]\n","commit_message":"ci"}`,
		} {
			s.Check(t, apptest.Call{Name: do, Do: do, As: alice, JSON: body, Status: 201})
		}
		made("POST "+at+"/merge_requests", `{"source_branch":"side","target_branch":"main","title":"A request"}`)
		s.Check(t, apptest.Call{Do: "POST " + at + "/repository_storage_moves", As: apptest.RootToken, JSON: `{"destination_storage_name":"second"}`, Status: 201})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "backup.tar")
		env := func(data, url, second string) []string {
			return []string{"SVC_DATA_DIR=" + data, "SVC_DATABASE_URL=" + url, "SVC_STORAGES=second=" + second, "SVC_EXTERNAL_URL=" + s.URL}
		}
		out := ok(t, env(s.Config.DataDir, src.URL, second), "", "backup", file)
		if !strings.Contains(out, "entries") {
			t.Error(out)
		}
		if code, _, errOut := run(t, env(s.Config.DataDir, src.URL, second), "", "backup", file); code != 1 || !strings.Contains(errOut, "is there already") {
			t.Errorf("over another: %d %s", code, errOut)
		}
		questions := []apptest.Call{
			{Do: "GET /users?per_page=100", As: apptest.RootToken}, {Do: "GET " + at, As: alice}, {Do: "GET " + at + "/issues", As: alice}, {Do: "GET " + at + "/variables/SECRET", As: alice},
			{Do: "GET " + at + "/repository/commits?all=true", As: alice}, {Do: "GET " + at + "/repository/branches", As: alice}, {Do: "GET " + at + "/repository/tags", As: alice},
			{Do: "GET " + at + "/repository/files/README.md/raw", As: alice}, {Do: "GET " + at + "/wikis?with_content=1", As: alice}, {Do: fmt.Sprintf("GET /groups/%d/wikis?with_content=1", g), As: alice},
			{Do: "GET " + at + "/merge_requests/1/changes", As: alice}, {Do: "GET " + at + "/pipelines", As: alice}, {Do: "GET " + at + "/events", As: alice}, {Do: fmt.Sprintf("GET /snippets/%d/raw", snip)},
			{Do: fmt.Sprintf("GET /groups/%d/milestones", g), As: alice}, {Do: "GET /projects?repository_storage=second", As: apptest.RootToken}, {Do: "GET " + at + "/labels", As: alice},
		}
		var want []string
		for _, q := range questions {
			want = append(want, answerOf(t, s, q))
		}
		dbtest.EachEmpty(t, func(t *testing.T, to dbtest.Source) {
			data, other := filepath.Join(t.TempDir(), "data"), t.TempDir()
			out := ok(t, env(data, to.URL, other), "", "restore", file)
			if !strings.Contains(out, "Restored the backup of ") {
				t.Error(out)
			}
			if code, _, errOut := run(t, env(data, to.URL, other), "", "restore", file); code != 1 || !strings.Contains(errOut, "is not empty") {
				t.Errorf("twice: %d %s", code, errOut)
			}
			there := apptest.Start(t, dbtest.Source{URL: to.URL}, func(c *config.Config) {
				c.DataDir, c.ExternalURL = data, s.URL
				c.Storages = map[string]string{"default": filepath.Join(data, "repositories"), "second": other}
			})
			for i, q := range questions {
				if got := answerOf(t, there, q); got != want[i] {
					t.Errorf("%s:\ngot  %s\nwant %s", q.Do, got, want[i])
				}
			}
			ok(t, env(data, to.URL, other), "", "doctor", "--repositories")
			work := gittest.New(t)
			work.Commit(gittest.Commit{Branch: "main", Root: true, Changes: []gittest.Change{{Path: "x", Content: "y"}}})
			gittest.Run(t, work.Path, "push", "-q", strings.Replace(there.URL, "http://", "http://alice:"+alice+"@", 1)+"/alice/p.git", "main:refs/heads/pushed")
		})
	})
}

// answerOf is the status and body of an answer.
func answerOf(t *testing.T, s *apptest.Server, q apptest.Call) string {
	t.Helper()
	a := s.Send(t, q)
	return fmt.Sprintf("%d %s", a.Status, a.Body)
}

// TestRestoreRefuses: what is not whole, or does not fit, leaves nothing.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	from := []string{"SVC_DATA_DIR=" + t.TempDir()}
	good := filepath.Join(t.TempDir(), "good.tar")
	ok(t, from, "", "admin", "create-user", "alice", "--email", "alice@example.org")
	ok(t, from, "", "backup", good)
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	damaged := append([]byte(nil), text...)
	damaged[strings.Index(string(text), "\x1f\x8b")+20] ^= 1 // in the first table
	for name, c := range map[string]struct {
		file []byte
		env  string
		want string
	}{
		"cut off":        {text[:len(text)/2], "", "can not be used"},
		"without an end": {text[:len(text)-4096], "", "can not be used"},
		"damaged":        {damaged, "", "damaged"},
		"no backup":      {[]byte("hello"), "", "no backup"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, data := filepath.Join(t.TempDir(), "bad.tar"), filepath.Join(t.TempDir(), "data")
			if err := os.WriteFile(file, c.file, 0o600); err != nil {
				t.Fatal(err)
			}
			code, _, errOut := run(t, []string{"SVC_DATA_DIR=" + data}, "", "restore", file)
			if code != 1 || !strings.Contains(errOut, c.want) {
				t.Errorf("exit %d: %s", code, errOut)
			}
			if _, err := os.Stat(data); err == nil {
				t.Error("something was made")
			}
		})
	}
	data := filepath.Join(t.TempDir(), "data")
	env := []string{"SVC_DATA_DIR=" + data}
	ok(t, env, "", "restore", good)
	if out := ok(t, env, "", "admin", "list-users"); !strings.Contains(out, "alice") {
		t.Error(out)
	}
	// One that was cut off is not served.
	if err := os.WriteFile(filepath.Join(data, "restore.incomplete"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errOut := run(t, env, "", "admin", "list-users"); code != 1 || !strings.Contains(errOut, "was cut off") {
		t.Errorf("exit %d: %s", code, errOut)
	}
}
