package api_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/blob/blobtest"
	"svc/internal/codesearch"
	"svc/internal/db/dbtest"
	"svc/internal/waittest"
)

// indexCode rebuilds the code index of all projects.
func indexCode(t *testing.T, s *apptest.Server) {
	t.Helper()
	if err := s.Code.Rebuild(t.Context(), actor.Actor{ID: 1, Admin: true}); err != nil {
		t.Fatal(err)
	}
	s.Settled(t)
}

// TestCodeSearch searches the files of all projects, of a group and of a project
// with the index, and checks that pushes update it.
func TestCodeSearch(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		top := group(t, s, alice, "top", `,"visibility":"public"`)
		one := newProject(t, s, alice, "one", fmt.Sprintf(`,"namespace_id":%d,"visibility":"public"`, top))
		two := newProject(t, s, alice, "two", `,"visibility":"private"`)
		commit := func(project int64, message, branch string, actions ...string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/repository/commits", project), As: alice, Status: 201,
				JSON: fmt.Sprintf(`{"branch":%q,"commit_message":%q,"actions":[%s]}`, branch, message, strings.Join(actions, ","))})
			s.Settled(t)
		}
		create := func(path, content string) string {
			return fmt.Sprintf(`{"action":"create","file_path":%q,"encoding":"base64","content":%q}`, path, base64.StdEncoding.EncodeToString([]byte(content)))
		}
		commit(one, "first", "main", create("src/main.go", "package main\n\n// a wombat lives here\nfunc main() {}\n"), create("docs/wombat.md", "# About\n"),
			create("vendor/dep/dep.go", "package dep // WOMBAT\n"), create("data.bin", "wombat\x00"), create("big.txt", strings.Repeat("x", 1<<20)+"wombat"))
		commit(two, "first", "main", create("lib/a.rb", "def wombat(x)\n  x + 10\nend\n"))
		paths := func(as, do string) string {
			t.Helper()
			var list []struct {
				Path      string
				ProjectID int64 `json:"project_id"`
			}
			s.Check(t, apptest.Call{Do: "GET " + do, As: as, Status: 200}).JSON(t, &list)
			var got []string
			for _, x := range list {
				got = append(got, fmt.Sprintf("%d:%s", x.ProjectID-one, x.Path))
			}
			return strings.Join(got, " ")
		}
		expect := func(as, do, want string) {
			t.Helper()
			want = strings.ReplaceAll(want, "two:", fmt.Sprintf("%d:", two-one))
			if got := paths(as, do); got != want {
				t.Errorf("%s\n got %s\nwant %s", do, got, want)
			}
		}
		all := func(text string) string { return "/search?scope=blobs&per_page=100&search=" + url.QueryEscape(text) }
		expect(alice, all("WomBat"), "two:lib/a.rb 0:src/main.go 0:vendor/dep/dep.go 0:docs/wombat.md")
		expect(bob, all("wombat"), "0:src/main.go 0:vendor/dep/dep.go 0:docs/wombat.md")
		expect(alice, all("wombat -path:vendor extension:go"), "0:src/main.go")
		expect(alice, all("filename:a.r*"), "two:lib/a.rb")
		expect(alice, all("path:big.txt"), "0:big.txt")
		expect(alice, all("wombat lang:ruby"), "two:lib/a.rb")
		expect(alice, all("wombat -lang:go"), "two:lib/a.rb 0:docs/wombat.md")
		expect(alice, all("Wombat case:yes lang:go"), "")
		expect(alice, all("wombat case:yes lang:ruby"), "two:lib/a.rb")
		expect(alice, all(`def\s+wom.at\(`)+"&regex=true", "two:lib/a.rb")
		expect(alice, all(`^package (main|dep)`)+"&regex=true", "0:src/main.go 0:vendor/dep/dep.go")
		expect(alice, all(`def\s+wom`), "")
		expect(alice, fmt.Sprintf("/groups/%d", top)+all("wombat"), "0:src/main.go 0:vendor/dep/dep.go 0:docs/wombat.md")
		expect(alice, fmt.Sprintf("/projects/%d", two)+all("w[o]mbat")+"&regex=true", "two:lib/a.rb")
		expect(alice, fmt.Sprintf("/projects/%d", one)+all("wombat lang:go"), "0:src/main.go 0:vendor/dep/dep.go")
		expect(alice, all("wombat")+"&per_page=1&page=2", "0:src/main.go")
		s.Table(t, []apptest.Call{
			{Name: "the hit", Do: "GET " + all("lives here"), As: alice, Status: 200, Want: `[{"path":"src/main.go","basename":"src/main","ref":"main","startline":1,
				"data":"package main\n\n// a wombat lives here\nfunc main() {}\n"}]`, WantHeader: map[string]string{"X-Total": "1"}},
			{Name: "context", Do: "GET " + all("lives here") + "&num_context_lines=0", As: alice, Status: 200, Want: `[{"startline":3,"data":"// a wombat lives here\n"}]`},
			{Name: "bad regular expression", Do: "GET " + all("a(b") + "&regex=true", As: alice, Status: 400, Want: `{"message":"400 Bad request - The regular expression is invalid: missing closing ): a(b"}`},
			{Name: "it matches all", Do: "GET " + all("(a|b*)") + "&regex=true", As: alice, Status: 400},
			{Name: "too large", Do: "GET " + all("((a{1000}){1000}){1000}") + "&regex=true", As: alice, Status: 400},
			{Name: "too many repetitions", Do: "GET " + all("womb(?:"+strings.Repeat(".?", 400)+"){1000}z") + "&regex=true", As: alice, Status: 400,
				Want: `{"message":"400 Bad request - The regular expression has too many repetitions"}`},
			{Name: "too long", Do: "GET " + all(strings.Repeat("x", 1001)) + "&regex=true", As: alice, Status: 400},
			{Name: "unknown language", Do: "GET " + all("x lang:klingon"), As: alice, Status: 400, Want: `{"message":"400 Bad request - The language klingon is not known."}`},
			{Name: "a branch", Do: fmt.Sprintf("GET /projects/%d%s&regex=true&ref=other", one, all("x+")), As: alice, Status: 400},
			{Name: "not signed in", Do: "GET " + all("wombat"), Status: 401},
		})
		// A push to the default branch updates the index; a push to another branch
		// does not.
		commit(two, "more", "main", `{"action":"update","file_path":"lib/a.rb","content":"def numbat\n"}`)
		commit(two, "topic", "main", create("lib/b.rb", "numbat too\n"))
		expect(alice, all("wombat lang:ruby"), "")
		expect(alice, all("numbat"), "two:lib/a.rb two:lib/b.rb")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/repository/branches?branch=topic&ref=main", two), As: alice, Status: 201})
		commit(two, "topic", "topic", create("lib/c.rb", "numbat of a topic\n"))
		expect(alice, all("numbat of"), "")
		// Archived projects are excluded.
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/archive", two), As: alice, Status: 201})
		expect(alice, all("numbat"), "")
		expect(alice, all("numbat")+"&include_archived=true", "two:lib/a.rb two:lib/b.rb")
		// Missing shards are rebuilt.
		dir := filepath.Join(s.Config.Storages["default"], "code_index")
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		s.Code.Close()
		expect(alice, all("wombat"), "")
		s.Settled(t)
		expect(bob, all("wombat"), "0:src/main.go 0:vendor/dep/dep.go 0:docs/wombat.md")
		// So are shards that are corrupted while they are open.
		broken, err := filepath.Glob(filepath.Join(dir, "*", fmt.Sprint(one), "*.zoekt"))
		if err != nil || len(broken) != 1 {
			t.Fatal(broken, err)
		}
		if err := os.Truncate(broken[0], 0); err != nil {
			t.Fatal(err)
		}
		expect(bob, all("wombat"), "")
		s.Settled(t)
		expect(bob, all("wombat"), "0:src/main.go 0:vendor/dep/dep.go 0:docs/wombat.md")
		// Old shards are deleted, current ones are not.
		commit(one, "again", "main", create("new.txt", "a wombat again\n"))
		s.Clock.Move(3 * time.Hour)
		if err := s.Code.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect(bob, all("wombat again"), "0:new.txt")
		shards := func() []string {
			list, err := filepath.Glob(filepath.Join(dir, "*", fmt.Sprint(one), "*"))
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		if n := len(shards()); n != 1 {
			t.Errorf("%d files are left", n)
		}
		// The shards of a deleted project are deleted.
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("DELETE /projects/%d", one), As: root, Status: 202},
			{Do: fmt.Sprintf("DELETE /projects/%d?permanently_remove=true&full_path=%s", one, deletedPath(t, s, one)), As: root, Status: 202},
		})
		waittest.For(t, "the files to be removed", func() bool { return len(shards()) == 0 })
		expect(bob, all("wombat"), "")
	})
}

// deletedPath returns the path of a project that is marked for deletion.
func deletedPath(t *testing.T, s *apptest.Server, id int64) string {
	t.Helper()
	var p struct {
		Path string `json:"path_with_namespace"`
	}
	raw := s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d", id), As: root, Status: 200})
	if err := json.Unmarshal(raw.Body, &p); err != nil {
		t.Fatal(err)
	}
	return url.QueryEscape(p.Path)
}

// TestCodeSearchBucket searches on nodes without a common directory, which fetch the
// index from object storage.
func TestCodeSearchBucket(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		a := apptest.Start(t, src, apptest.Bucket(blobtest.S3(t)), apptest.InBucket)
		nodes := []*apptest.Server{a}
		if src.URL != "" {
			nodes = append(nodes, apptest.Start(t, src, apptest.Beside(t, a)))
		}
		_, alice := a.User(t, "alice")
		id := newProject(t, a, alice, "one", "")
		commit := func(action, content string) {
			t.Helper()
			a.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/repository/commits", id), As: alice, Status: 201, JSON: fmt.Sprintf(
				`{"branch":"main","commit_message":"m","actions":[{"action":%q,"file_path":"a.txt","content":%q}]}`, action, content)})
			a.Settled(t)
		}
		expect := func(text string, hits int) {
			t.Helper()
			for i, s := range nodes {
				var list []struct{ Path string }
				s.Check(t, apptest.Call{Do: "GET /search?scope=blobs&search=" + text, As: alice, Status: 200}).JSON(t, &list)
				if len(list) != hits {
					t.Errorf("node %d finds %d of %s, want %d", i, len(list), text, hits)
				}
			}
		}
		indexed := func() (at int64) {
			t.Helper()
			if err := a.DB.QueryRowContext(t.Context(), "SELECT indexed_at FROM code_indexes WHERE project_id = ?", id).Scan(&at); err != nil {
				t.Fatal(err)
			}
			return at
		}
		copies := func(s *apptest.Server) []string {
			t.Helper()
			list, err := filepath.Glob(filepath.Join(s.Config.DataDir, "code_index", "*", fmt.Sprint(id), "*.zoekt"))
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		stored := func() (keys []string) {
			t.Helper()
			for info, err := range a.Blobs.List(t.Context(), codesearch.Prefix) {
				if err != nil {
					t.Fatal(err)
				}
				keys = append(keys, info.Key)
			}
			return keys
		}
		commit("create", "a wombat lives here")
		expect("wombat", 1)
		at := indexed()

		// Local copies that are corrupted while they are open are fetched again.
		for _, s := range nodes {
			list := copies(s)
			if len(list) != 1 {
				t.Fatalf("the node has the copies %v", list)
			}
			if err := os.Truncate(list[0], 0); err != nil {
				t.Fatal(err)
			}
		}
		expect("wombat", 1)
		if again := indexed(); again != at {
			t.Error("the project was indexed again")
		}

		// Shards that are missing in object storage are rebuilt.
		for _, s := range nodes {
			for _, path := range copies(s) {
				if err := os.Truncate(path, 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, key := range stored() {
			if err := a.Blobs.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
		a.Check(t, apptest.Call{Do: "GET /search?scope=blobs&search=wombat", As: alice, Status: 200, Want: `[]`})
		a.Settled(t)
		expect("wombat", 1)

		// Replaced shards are deleted, the current one is not.
		commit("update", "a numbat lives here")
		expect("numbat", 1)
		if n := len(stored()); n != 2 {
			t.Errorf("%d objects, want the replaced one too", n)
		}
		for _, s := range nodes {
			s.Clock.Move(3 * time.Hour)
			if err := s.Code.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := len(copies(s)); n != 1 {
				t.Errorf("%d copies after the sweep", n)
			}
		}
		if n := len(stored()); n != 1 {
			t.Errorf("%d objects after the sweep", n)
		}
		expect("numbat", 1)
		a.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("DELETE /projects/%d", id), As: root, Status: 202},
			{Do: fmt.Sprintf("DELETE /projects/%d?permanently_remove=true&full_path=%s", id, deletedPath(t, a, id)), As: root, Status: 202},
		})
		waittest.For(t, "the objects to be removed", func() bool { return len(stored()) == 0 })
	})
}
