package api_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
	"svc/internal/git"
	"svc/internal/git/gittest"
	"svc/internal/waittest"
)

// finished waits until all moves have ended.
func finished(t *testing.T, s *apptest.Server) {
	t.Helper()
	waittest.For(t, "all moves are over", func() bool {
		return rows(t, s, `SELECT count(*) FROM storage_moves WHERE state IN ('initial', 'scheduled', 'started', 'replicated')`) == 0
	})
}

// bare returns the paths of the repositories on a storage.
func bare(t *testing.T, s *apptest.Server, storage string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.Config.Storages[storage], "*s", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range found {
		found[i] = strings.TrimPrefix(found[i], s.Config.Storages[storage]+"/")
	}
	return found
}

// TestStorageMoves moves a repository of each kind: during the move it can be read
// and not written, and afterwards it is on the other storage and complete.
func TestStorageMoves(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		stops, goes := make(chan string), make(chan bool)
		var gated atomic.Bool
		gated.Store(true)
		s.Moves.Step = func(name string) {
			if (name == "switch" || name == "clean") && gated.Load() {
				stops <- name
				<-goes
			}
		}
		root := apptest.RootToken
		_, alice := s.User(t, "alice")
		p := newProject(t, s, alice, "p", `,"initialize_with_readme":true`)
		g := group(t, s, alice, "top", "")
		at := fmt.Sprintf("/projects/%d", p)
		s.Check(t, apptest.Call{Do: "POST " + at + "/wikis", As: alice, JSON: `{"title":"home","content":"wiki"}`, Status: 201})
		s.Check(t, apptest.Call{Do: "POST " + at + "/repository/branches", As: alice, JSON: `{"branch":"side","ref":"main"}`, Status: 201})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/wikis", g), As: alice, JSON: `{"title":"home","content":"ours"}`, Status: 201})
		snip := made(t, s, alice, "POST /snippets", `{"title":"snip","content":"snippet","file_name":"a.txt","visibility":"private"}`)
		moves := at + "/repository_storage_moves"
		s.Table(t, []apptest.Call{
			{Name: "none yet", Do: "GET " + moves, As: root, Status: 200, Want: `[]`},
			{Name: "for administrators", Do: "POST " + moves, As: alice, Status: 403},
			{Name: "no such storage", Do: "POST " + moves, As: root, JSON: `{"destination_storage_name":"x"}`, Status: 400, Want: `{"message":{"destination_storage_name":["is not included in the list"]}}`},
			{Name: "the same storage", Do: "POST " + moves, As: root, JSON: `{"destination_storage_name":"default"}`, Status: 400,
				Want: `{"message":{"destination_storage_name":["is the storage that the repository is on"]}}`},
			{Name: "the same under another name", Do: "POST " + moves, As: root, JSON: `{"destination_storage_name":"same"}`, Status: 400,
				Want: `{"message":{"destination_storage_name":["is the storage that the repository is on"]}}`},
			{Name: "no such project", Do: "POST /projects/999999/repository_storage_moves", As: root, Status: 404},
			{Name: "all of no storage", Do: "POST /project_repository_storage_moves", As: root, JSON: `{"source_storage_name":"x"}`, Status: 400, Want: `{"message":{"source_storage_name":["is not included in the list"]}}`},
			{Name: "all of nothing", Do: "POST /project_repository_storage_moves", As: root, JSON: `{}`, Status: 400, Want: `{"error":"source_storage_name is missing"}`},
			{Name: "all to the same", Do: "POST /project_repository_storage_moves", As: root, JSON: `{"source_storage_name":"default","destination_storage_name":"default"}`, Status: 400},
		})
		var begun struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST " + moves, As: root, Status: 201,
			Want: fmt.Sprintf(`{"state":"scheduled","source_storage_name":"default","destination_storage_name":"second","error_message":null,
				"project":{"id":%d,"name":"p","path_with_namespace":"alice/p","name_with_namespace":"alice / p"}}`, p)}).JSON(t, &begun)
		id := begun.ID
		<-stops
		work := gittest.New(t)
		work.Commit(gittest.Commit{Branch: "main", Root: true, Changes: []gittest.Change{{Path: "x", Content: "y"}}})
		remote := strings.Replace(s.URL, "http://", "http://alice:"+alice+"@", 1) + "/alice/p"
		refused := func() {
			t.Helper()
			for _, to := range []string{remote + ".git", remote + ".wiki.git"} {
				out, err := gittest.Command(work.Path, "push", to, "main:refs/heads/other").CombinedOutput()
				if err == nil || !strings.Contains(string(out), "it is being moved to another storage") {
					t.Errorf("a push to %s: %v\n%s", to, err, out)
				}
			}
		}
		refused()
		s.Table(t, []apptest.Call{
			{Name: "twice", Do: "POST " + moves, As: root, Status: 400, Want: `{"message":{"project":["is read-only"]}}`},
			{Name: "no commit", Do: "POST " + at + "/repository/files/a.txt", As: alice, JSON: `{"branch":"main","content":"x","commit_message":"x"}`, Status: 403},
			{Name: "no branch", Do: "POST " + at + "/repository/branches", As: alice, JSON: `{"branch":"x","ref":"main"}`, Status: 403},
			{Name: "no page", Do: "POST " + at + "/wikis", As: alice, JSON: `{"title":"x","content":"x"}`, Status: 403},
			{Name: "no default branch", Do: "PUT " + at, As: alice, JSON: `{"default_branch":"main"}`, Status: 200},
			{Name: "no other default branch", Do: "PUT " + at, As: alice, JSON: `{"default_branch":"side"}`, Status: 503},
			{Name: "reads", Do: "GET " + at + "/repository/files/README.md/raw", As: alice, Status: 200},
			{Name: "reads the wiki", Do: "GET " + at + "/wikis/home", As: alice, Status: 200},
			{Name: "an issue", Do: "POST " + at + "/issues", As: alice, JSON: `{"title":"x"}`, Status: 201},
			{Name: "under way", Do: fmt.Sprintf("GET %s/%d", moves, id), As: root, Status: 200, Want: `{"state":"started"}`},
		})
		gittest.Run(t, work.Path, "fetch", "-q", remote+".git", "main")
		goes <- true
		<-stops
		// On the new storage it stays read-only until the old copy is removed.
		refused()
		s.Table(t, []apptest.Call{
			{Name: "not yet over", Do: fmt.Sprintf("GET %s/%d", moves, id), As: root, Status: 200, Want: `{"state":"replicated"}`},
			{Name: "still no commit", Do: "POST " + at + "/repository/files/a.txt", As: alice, JSON: `{"branch":"main","content":"x","commit_message":"x"}`, Status: 403},
			{Name: "still reads", Do: "GET " + at + "/repository/files/README.md/raw", As: alice, Status: 200},
		})
		gated.Store(false)
		goes <- true
		finished(t, s)
		s.Table(t, []apptest.Call{
			{Name: "over", Do: fmt.Sprintf("GET /project_repository_storage_moves/%d", id), As: root, Status: 200, Want: `{"state":"finished","error_message":null}`},
			{Name: "on the other", Do: "GET /projects?repository_storage=second", As: root, Status: 200, Want: fmt.Sprintf(`[{"id":%d}]`, p)},
			{Name: "nothing is left", Do: "GET /projects?repository_storage=default", As: root, Status: 200, Want: `[]`},
			{Name: "reads there", Do: "GET " + at + "/repository/files/README.md/raw", As: alice, Status: 200},
			{Name: "reads the wiki there", Do: "GET " + at + "/wikis/home", As: alice, Status: 200, Want: `{"content":"wiki"}`},
			{Name: "writes there", Do: "POST " + at + "/repository/files/a.txt", As: alice, JSON: `{"branch":"main","content":"x","commit_message":"x"}`, Status: 201},
			{Name: "of another project", Do: fmt.Sprintf("GET /snippets/%d/repository_storage_moves/%d", snip, id), As: root, Status: 404},
			{Name: "audit", Do: fmt.Sprintf("GET %s/audit_events?per_page=2", at), As: root, Status: 200,
				Want: `[{"details":{"change":"repository storage","from":"default","to":"second","author_class":"System"}},{"details":{"change":"repository storage","to":"second"},"author_id":1}]`},
			{Name: "a snippet", Do: fmt.Sprintf("POST /snippets/%d/repository_storage_moves", snip), As: root, JSON: `{"destination_storage_name":"second"}`, Status: 201,
				Want: fmt.Sprintf(`{"state":"scheduled","snippet":{"id":%d,"title":"snip"}}`, snip), Not: []string{"\"project\"", "\"group\""}},
			{Name: "a group", Do: "POST /groups/top/repository_storage_moves", As: root, Status: 201, Want: fmt.Sprintf(`{"group":{"id":%d,"name":"TOP","web_url":"%s/groups/top"}}`, g, s.URL)},
		})
		gittest.Run(t, work.Path, "push", "-q", remote+".git", "main:refs/heads/other")
		finished(t, s)
		s.Table(t, []apptest.Call{
			{Name: "snippets", Do: "GET /snippet_repository_storage_moves", As: root, Status: 200, Want: `[{"state":"finished","destination_storage_name":"second"}]`},
			{Name: "groups", Do: fmt.Sprintf("GET /groups/%d/repository_storage_moves", g), As: root, Status: 200, Want: `[{"state":"finished"}]`},
			{Name: "the snippet", Do: fmt.Sprintf("GET /snippets/%d/raw", snip), As: alice, Status: 200},
			{Name: "where it is", Do: fmt.Sprintf("GET /snippets/%d", snip), As: root, Status: 200, Want: `{"repository_storage":"second"}`},
			{Name: "a change of it", Do: fmt.Sprintf("PUT /snippets/%d", snip), As: alice, JSON: `{"content":"new"}`, Status: 200},
			{Name: "the group's wiki", Do: fmt.Sprintf("GET /groups/%d/wikis/home", g), As: alice, Status: 200, Want: `{"content":"ours"}`},
		})
		if left := bare(t, s, "default"); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
		if there := bare(t, s, "second"); len(there) != 4 {
			t.Errorf("on the other: %v", there)
		}
		// All repositories of a kind at once, and one by its project.
		s.Table(t, []apptest.Call{
			{Name: "by the project", Do: "PUT " + at, As: root, JSON: `{"repository_storage":"default"}`, Status: 200},
			{Name: "all groups", Do: "POST /group_repository_storage_moves", As: root, JSON: `{"source_storage_name":"second","destination_storage_name":"default"}`, Status: 202, Want: `{"message":"202 Accepted"}`},
			{Name: "all snippets", Do: "POST /snippet_repository_storage_moves", As: root, JSON: `{"source_storage_name":"second"}`, Status: 202},
			{Name: "all projects", Do: "POST /project_repository_storage_moves", As: root, JSON: `{"source_storage_name":"second","destination_storage_name":"default"}`, Status: 202},
		})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		finished(t, s)
		if left := bare(t, s, "second"); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
		s.Check(t, apptest.Call{Do: "GET " + moves, As: root, Status: 200, Want: `[{"state":"finished","source_storage_name":"second"},{"state":"finished","source_storage_name":"default"}]`})
		if log := s.Log(); !strings.Contains(log, `"msg":"storage move"`) || !strings.Contains(log, `"state":"replicated"`) {
			t.Error("the log does not tell of it")
		}
	}, apptest.Storages)
}

// TestStorageMoveFails checks that a repository that cannot be moved stays on its
// storage and can be written.
func TestStorageMoveFails(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		p := newProject(t, s, alice, "p", `,"initialize_with_readme":true`)
		at := fmt.Sprintf("/projects/%d", p)
		commit := func(name string) {
			t.Helper()
			s.Check(t, apptest.Call{Name: name, Do: "POST " + at + "/repository/files/" + name, As: alice, JSON: `{"branch":"main","content":"x","commit_message":"x"}`, Status: 201})
		}
		move := func(want string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "POST " + at + "/repository_storage_moves", As: apptest.RootToken, JSON: `{"destination_storage_name":"second"}`, Status: 201})
			finished(t, s)
			s.Check(t, apptest.Call{Name: want, Do: "GET " + at + "/repository_storage_moves?per_page=1", As: apptest.RootToken, Status: 200, Want: want})
		}
		// The directory of the storage is a file.
		if err := os.WriteFile(s.Config.Storages["second"], nil, 0o600); err != nil {
			t.Fatal(err)
		}
		move(`[{"state":"failed","error_message":"<any>"}]`)
		commit("a")
		if err := os.Remove(s.Config.Storages["second"]); err != nil {
			t.Fatal(err)
		}
		// The copy is damaged before it is verified.
		s.Moves.Step = func(name string) {
			if name == "verify" {
				packs, _ := filepath.Glob(filepath.Join(s.Config.Storages["second"], "projects", "*", "*", "objects", "[0-9a-f][0-9a-f]"))
				_ = os.RemoveAll(packs[0])
			}
		}
		move(`[{"state":"failed","error_message":"<any>"}]`)
		commit("b")
		if left := bare(t, s, "second"); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
		// Remains of an earlier copy do not prevent a move; a failure to remove the
		// old copy is reported.
		there := filepath.Join(s.Config.Storages["second"], "projects", fmt.Sprintf("%02x", p%256), fmt.Sprintf("%d.git", p))
		if err := os.MkdirAll(filepath.Join(there, "old"), 0o700); err != nil {
			t.Fatal(err)
		}
		s.Moves.Step = func(name string) {
			if name == "clean" { // the directory is not accessible any more
				dir := filepath.Join(s.Config.Storages["default"], "projects", fmt.Sprintf("%02x", p%256))
				_ = os.Rename(dir, dir+"-away")
				_ = os.WriteFile(dir, nil, 0o600)
			}
		}
		move(`[{"state":"cleanup failed","error_message":"<any>"}]`)
		commit("c")
	}, apptest.Storages)
}

// TestStorageMoveOfDeleted checks that an object that is deleted permanently during
// a move leaves no files on either storage.
func TestStorageMoveOfDeleted(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		root := apptest.RootToken
		s.Check(t, apptest.Call{Do: "PUT /application/settings?deletion_adjourned_period=0", As: root, Status: 200})
		p := newProject(t, s, root, "p", `,"initialize_with_readme":true`)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/wikis", p), As: root, JSON: `{"title":"home","content":"wiki"}`, Status: 201})
		snip := made(t, s, root, "POST /snippets", `{"title":"snip","content":"snippet","file_name":"a.txt","visibility":"private"}`)
		stops, goes := make(chan bool), make(chan bool)
		s.Moves.Step = func(name string) {
			if name == "switch" {
				stops <- true
				<-goes
			}
		}
		for _, one := range []struct{ table, at string }{{"projects", fmt.Sprintf("/projects/%d", p)}, {"snippets", fmt.Sprintf("/snippets/%d", snip)}} {
			var begun struct{ ID int64 }
			s.Check(t, apptest.Call{Do: "POST " + one.at + "/repository_storage_moves", As: root, JSON: `{"destination_storage_name":"second"}`, Status: 201}).JSON(t, &begun)
			<-stops
			s.Send(t, apptest.Call{Do: "DELETE " + one.at, As: root})
			waittest.For(t, "the row is gone", func() bool { return rows(t, s, "SELECT count(*) FROM "+one.table) == 0 })
			goes <- true
			finished(t, s)
			if n := rows(t, s, "SELECT count(*) FROM storage_moves WHERE state = 'failed' AND error = 'it was deleted' AND id = "+fmt.Sprint(begun.ID)); n != 1 {
				t.Errorf("%s: the move did not fail", one.table)
			}
			waittest.For(t, "the old storage is empty", func() bool {
				return len(bare(t, s, "default")) == 0 || one.table == "projects" && len(bare(t, s, "default")) == 1
			})
			if left := bare(t, s, "second"); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		}
	}, apptest.Storages)
}

func rows(t *testing.T, s *apptest.Server, query string) (n int) {
	t.Helper()
	if err := s.DB.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestStorageMoveSlowReader checks that the old copy is kept while a client reads
// it, and that the new one can be written.
func TestStorageMoveSlowReader(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.Moves.Patience = 10 * time.Millisecond
		root := apptest.RootToken
		p := newProject(t, s, root, "p", `,"initialize_with_readme":true`)
		at := fmt.Sprintf("/projects/%d", p)
		old := filepath.Join(s.Config.Storages["default"], bare(t, s, "default")[0])
		in, more := io.Pipe() // a client that sends nothing
		var reads sync.WaitGroup
		reads.Go(func() { _ = s.Git.Repo(old).UploadPack(t.Context(), in, io.Discard, git.ServeOptions{}) })
		s.Check(t, apptest.Call{Do: "POST " + at + "/repository_storage_moves", As: root, JSON: `{"destination_storage_name":"second"}`, Status: 201})
		waittest.For(t, "the project can be written to on the other storage", func() bool {
			return rows(t, s, "SELECT count(*) FROM projects WHERE storage = 'second' AND NOT read_only") == 1
		})
		s.Table(t, []apptest.Call{
			{Name: "not over", Do: "GET " + at + "/repository_storage_moves", As: root, Status: 200, Want: `[{"state":"replicated"}]`},
			{Name: "writes", Do: "POST " + at + "/repository/files/a.txt", As: root, JSON: `{"branch":"main","content":"x","commit_message":"x"}`, Status: 201},
			{Name: "no other move", Do: "POST " + at + "/repository_storage_moves", As: root, JSON: `{"destination_storage_name":"default"}`, Status: 400, Want: `{"message":{"project":["is being moved already"]}}`},
		})
		if _, err := os.Stat(old); err != nil {
			t.Error("the old place was taken away from one who reads it")
		}
		more.Close()
		reads.Wait()
		finished(t, s)
		if left := bare(t, s, "default"); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	}, apptest.Storages)
}

// TestStorageMoveBesideOthers moves a repository back and forth while two nodes read
// it: no read fails, and no node can write during a move.
func TestStorageMoveBesideOthers(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		a := apptest.Start(t, src, apptest.Storages)
		b := a
		if src.URL != "" { // the embedded database allows only one node
			b = apptest.Start(t, src, apptest.Beside(t, a))
		}
		stops, goes := make(chan bool), make(chan bool)
		for _, s := range []*apptest.Server{a, b} {
			s.Moves.Quiet = time.Second // on a busy machine, a reader may be delayed before it opens the files
			s.Moves.Step = func(name string) {
				if name == "switch" {
					stops <- true
					<-goes
				}
			}
		}
		_, alice := a.User(t, "alice")
		p := newProject(t, a, alice, "p", `,"initialize_with_readme":true`)
		at := fmt.Sprintf("/projects/%d", p)
		write := func(s *apptest.Server, name string) int {
			return s.Send(t, apptest.Call{Do: "POST " + at + "/repository/files/" + name, As: alice, JSON: `{"branch":"main","content":"x","commit_message":"x"}`}).Status
		}
		over := make(chan bool)
		var readers sync.WaitGroup
		reads := make([]int, 4)
		for i, read := range []func() error{
			func() error { return fetched(t, b, at+"/repository/files/README.md/raw", alice) },
			func() error { return fetched(t, a, at+"/repository/archive.tar.gz", alice) },
			func() error { return cloned(t, b, alice) },
			func() error { return fetched(t, b, at+"/repository/commits?ref_name=main", alice) },
		} {
			readers.Go(func() {
				for {
					select {
					case <-over:
						return
					default:
						waittest.Pause()
					}
					if err := read(); err != nil {
						t.Errorf("reader %d, after %d reads: %v", i, reads[i], err)
						return
					}
					reads[i]++
				}
			})
		}
		for turn, to := range []string{"second", "default", "second"} {
			a.Check(t, apptest.Call{Do: "POST " + at + "/repository_storage_moves", As: apptest.RootToken, JSON: `{"destination_storage_name":"` + to + `"}`, Status: 201})
			<-stops
			for _, s := range []*apptest.Server{a, b} {
				if status := write(s, "never"); status != 403 && status != 503 { // from the node's cache, or from the row
					t.Errorf("a write while it goes: %d", status)
				}
			}
			goes <- true
			finished(t, a)
			for i, s := range []*apptest.Server{a, b} {
				waittest.For(t, "a node writes again", func() bool { return write(s, fmt.Sprintf("%d-%d", turn, i)) == 201 }) // notified late
			}
		}
		close(over)
		readers.Wait()
		for i, n := range reads {
			if n < 3 {
				t.Errorf("reader %d has read %d times only", i, n)
			}
		}
		if left := bare(t, a, "default"); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
		there := gittest.At(t, filepath.Join(a.Config.Storages["second"], bare(t, a, "second")[0]))
		there.Git("fsck", "--strict", "--full")
	})
}

// fetched reads a whole response.
func fetched(t *testing.T, s *apptest.Server, path, token string) error {
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/api/v4"+path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Private-Token", token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != 200 {
		err = fmt.Errorf("%s: %s", res.Status, text)
	}
	return err
}

func cloned(t *testing.T, s *apptest.Server, token string) error {
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		return err
	}
	out, err := gittest.Command(dir, "clone", "-q", strings.Replace(s.URL, "http://", "http://alice:"+token+"@", 1)+"/alice/p.git", ".").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
