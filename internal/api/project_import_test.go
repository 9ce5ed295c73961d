package api_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
	"svc/internal/lfs"
	"svc/internal/project"
	"svc/internal/waittest"
)

// importTester runs imports on a server.
type importTester struct {
	*apptest.Server
	token string
}

type importState struct {
	Status  string `json:"import_status"`
	Error   string `json:"import_error"`
	RunID   string `json:"correlation_id"`
	Default string `json:"default_branch"`
}

// allowImports allows imports from the servers of the test.
func allowImports(t *testing.T, s *apptest.Server) {
	t.Helper()
	s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"allow_local_requests_from_web_hooks_and_services":true}`})
}

// start creates a project from a URL.
func (i importTester) start(t *testing.T, name, from string) {
	t.Helper()
	i.Check(t, apptest.Call{Do: "POST /projects", As: i.token, Form: url.Values{"name": {name}, "import_url": {from}}, Status: 201, Want: `{"import_type":"git"}`})
}

// ended waits until an import has ended and returns its state.
func (i importTester) ended(t *testing.T, path string) importState {
	t.Helper()
	var state importState
	waittest.For(t, "the import of "+path, func() bool {
		answer := i.Send(t, apptest.Call{Do: "GET /projects/" + url.PathEscape(path) + "/import", As: i.token})
		if err := json.Unmarshal(answer.Body, &state); err != nil {
			t.Fatalf("%s: %v", answer.Body, err)
		}
		return state.Status == "finished" || state.Status == "failed"
	})
	return state
}

// importProject calls start and ended.
func (i importTester) importProject(t *testing.T, name, from string) importState {
	t.Helper()
	i.start(t, name, from)
	return i.ended(t, "alice/"+name)
}

// gitServer serves the repositories of a directory with git http-backend, to the
// user "me" with the password, if not empty.
func gitServer(t *testing.T, dir, password string, version0 bool) *httptest.Server {
	t.Helper()
	program, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(program)), "git-http-backend"),
		Env:  append(gittest.Env(), "GIT_PROJECT_ROOT="+dir, "GIT_HTTP_EXPORT_ALL=1", "PATH="+os.Getenv("PATH")),
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, given, _ := r.BasicAuth(); password != "" && (user != "me" || given != password) {
			http.Error(w, "who are you, "+user+":"+given, http.StatusUnauthorized)
			return
		}
		if version0 {
			r.Header.Del("Git-Protocol")
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// TestImportFromGit imports repositories that git serves.
func TestImportFromGit(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		allowImports(t, s)
		_, alice := s.User(t, "alice")
		i := importTester{s, alice}
		dir := t.TempDir()
		gittest.Run(t, dir, "init", "-q", "--bare", "--initial-branch=trunk", "a.git")
		r := gittest.At(t, filepath.Join(dir, "a.git"))
		tree := r.Git("hash-object", "-t", "tree", "-w", "/dev/null")
		first := r.Git("commit-tree", "-m", "first", tree)
		second := r.Git("commit-tree", "-p", first, "-m", "second", tree)
		hidden := r.Git("commit-tree", "-m", "hidden", tree)
		for ref, id := range map[string]string{
			"refs/heads/trunk": second, "refs/heads/main": first, "refs/tags/v1": first, "refs/merge-requests/1/head": hidden, "refs/pull/1/head": hidden,
			"refs/keep-around/x": hidden, "refs/heads/" + strings.Repeat("ab", 20): first, "refs/tags/HEAD": first, // names that cannot be pushed either
		} {
			r.Git("update-ref", ref, id)
		}
		r.Git("tag", "-a", "-m", "annotated", "v2", second)
		gittest.Run(t, dir, "init", "-q", "--bare", "empty.git")
		const password = "s3cret-of-the-source"
		for n, version0 := range []bool{false, true} {
			from := gitServer(t, dir, password, version0)
			host := strings.TrimPrefix(from.URL, "http://")
			name := fmt.Sprintf("p%d", n)
			if state := i.importProject(t, name, "http://me:"+password+"@"+host+"/a.git"); state.Status != "finished" || state.RunID == "" {
				t.Fatalf("%+v", state)
			}
			at := "/projects/alice%2F" + name
			s.Table(t, []apptest.Call{
				{Do: "GET " + at, As: alice, Status: 200, Want: `{"default_branch":"trunk","import_status":"finished","import_error":null,"import_url":"http://` + host + `/a.git","empty_repo":false}`, Not: []string{password}},
				{Do: "GET " + at + "/import", As: alice, Status: 200, Want: `{"stats":{"fetched":{"branch":2,"tag":2,"lfs_object":0},"imported":{"branch":2,"tag":2}},"failed_relations":[],"progress":null}`, Not: []string{password}},
				{Do: "GET " + at + "/repository/branches", As: alice, Status: 200, Want: `[{"name":"main"},{"name":"trunk","default":true,"protected":true}]`},
				{Do: "GET " + at + "/repository/tags?order_by=name&sort=asc", As: alice, Status: 200, Want: `[{"name":"v1"},{"name":"v2"}]`},
				{Do: "GET " + at + "/repository/commits/" + hidden, As: alice, Status: 404},
				{Do: "GET " + at + "/repository/commits/" + second, As: alice, Status: 200},
				{Do: "GET " + at + "/pipelines", As: alice, Status: 200, Want: `[]`},
				{Do: "GET " + at + "/events?action=pushed", As: alice, Status: 200, Want: `[{"author_username":"alice","push_data":{"ref_count":4}}]`},
			})
			if state := i.importProject(t, "empty"+name, "http://me:"+password+"@"+host+"/empty.git"); state.Status != "finished" {
				t.Errorf("empty: %+v", state)
			}
			for what, address := range map[string]string{"wrong": "http://me:wrong-password@" + host + "/a.git", "none": "http://" + host + "/a.git", "absent": "http://me:" + password + "@" + host + "/none.git"} {
				state := i.importProject(t, what+name, address)
				if state.Status != "failed" || !strings.Contains(state.Error, "HTTP 40") || strings.Contains(state.Error, "password@") || strings.Contains(state.Error, host) {
					t.Errorf("%s: %+v", what, state)
				}
			}
		}
		if log := s.Log(); strings.Contains(log, password) || strings.Contains(log, "wrong-password") {
			t.Error("a password is in the log")
		}
		var kept int
		if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM project_imports WHERE credentials <> ''`).Scan(&kept); err != nil || kept != 0 {
			t.Errorf("%d sealed passwords are kept: %v", kept, err)
		}
	})
}

// TestImportLFS imports a project of the same server with its LFS objects.
func TestImportLFS(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		allowImports(t, s)
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		i := importTester{s, alice}
		pointer, object := putLFS(t, s, bob, "bob", "some large content")
		s.Check(t, apptest.Call{Do: "POST /projects/bob%2Fsource/repository/files/a.bin", As: bob, Status: 201, JSON: `{"branch":"main","commit_message":"m","content":` + pointer + `}`})
		from := strings.Replace(s.URL, "http://", "http://bob:"+bob+"@", 1) + "/bob/source.git"
		if state := i.importProject(t, "p", from); state.Status != "finished" {
			t.Fatalf("%+v", state)
		}
		s.Table(t, []apptest.Call{
			{Do: "GET /projects/alice%2Fp/import", As: alice, Status: 200, Want: `{"stats":{"fetched":{"lfs_object":1},"imported":{"lfs_object":1}}}`},
			{Do: "GET /projects/alice%2Fp/repository/files/a.bin/raw?ref=main&lfs=true", As: alice, Status: 200, Text: object},
			{Name: "without a token", Do: "POST /projects", As: alice, Form: url.Values{"name": {"q"}, "import_url": {s.URL + "/bob/source.git"}}, Status: 201},
		})
		if state := i.ended(t, "alice/q"); state.Status != "failed" {
			t.Errorf("a private project without a token: %+v", state)
		}
	})
}

// TestImportRefused checks that URLs of forbidden addresses are refused.
func TestImportRefused(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		for _, from := range []string{
			"file:///etc/passwd", "/etc", "ext::sh -c touch% /tmp/x", "-oProxyCommand=x", "--upload-pack=x", "ftp://example.org/a", "ssh://git@127.0.0.1/a", "git@localhost:a", "git://127.0.0.1/a",
			"https://example.org/a\nb", "https://example.org/a%0ab", "http://127.0.0.1/a", "http://localhost/a", "http://[::1]/a", "http://[::ffff:127.0.0.1]/a", "http://0.0.0.0/a",
			"http://[::127.0.0.1]/a", "http://[fec0::1]/a", "http://169.254.169.254/latest/meta-data", "http://10.0.0.1/a", "http://u:p@127.0.0.1:1/a",
		} {
			s.Check(t, apptest.Call{Name: from, Do: "POST /projects", As: alice, Form: url.Values{"name": {"p"}, "import_url": {from}}, Status: 400, Want: `{"message":{"import_url":["<any>"]}}`})
		}
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, Form: url.Values{"name": {"p"}, "import_url": {"https://example.org/a"}, "initialize_with_readme": {"true"}}, Status: 400})
		s.Table(t, []apptest.Call{
			{Do: "POST /projects", As: alice, Form: url.Values{"name": {"p"}, "import_url": {"git@example.org:a/b.git"}}, Status: 400, Want: `{"message":{"import_host_keys":["can't be blank for an ssh:// URL"]}}`},
			{Do: "POST /projects", As: alice, Form: url.Values{"name": {"p"}, "import_url": {"ssh://example.org/a"}, "import_host_keys[]": {"no key"}}, Status: 400, Want: `{"message":{"import_host_keys":["<any>"]}}`},
			{Do: "POST /projects", As: alice, Form: url.Values{"name": {"p"}, "import_url": {"https://example.org/a"}, "import_auth_method": {"ssh_public_key"}}, Status: 400, Want: `{"message":{"import_auth_method":["<any>"]}}`},
		})
		s.Check(t, apptest.Call{Do: "GET /projects/alice%2Fp", As: alice, Status: 404})
		// Names are resolved when they are dialed. Decimal numbers are names.
		i := importTester{s, alice}
		for n, host := range []string{"2130706433", "0x7f000001", "0177.0.0.1", "127.1", "[64:ff9b::7f00:1]"} {
			answer := s.Send(t, apptest.Call{Do: "POST /projects", As: alice, Form: url.Values{"name": {fmt.Sprintf("n%d", n)}, "import_url": {"http://" + host + ":1/a"}}})
			if answer.Status == 201 {
				if state := i.ended(t, fmt.Sprintf("alice/n%d", n)); state.Status != "failed" {
					t.Errorf("%s: %+v", host, state)
				}
			}
		}
	})
}

// TestImportHostile imports from servers that misbehave.
func TestImportHostile(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		i := importTester{s, alice}
		var reached atomic.Int32
		inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reached.Add(1) }))
		t.Cleanup(inner.Close)
		const advertisement = "application/x-git-upload-pack-advertisement"
		id := strings.Repeat("1", 40)
		source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			name, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
			w.Header().Set("Content-Type", advertisement)
			switch name {
			case "redirect":
				http.Redirect(w, r, inner.URL+"/x/info/refs?"+r.URL.RawQuery, http.StatusFound)
			case "redirect-file":
				w.Header().Set("Location", "file:///etc/passwd")
				w.WriteHeader(http.StatusFound)
			case "round":
				http.Redirect(w, r, "/round/info/refs?"+r.URL.RawQuery, http.StatusFound)
			case "elsewhere":
				http.Redirect(w, r, "/sign-in", http.StatusFound)
			case "page":
				w.Header().Set("Content-Type", "text/html")
				_, _ = w.Write([]byte("<html>"))
			case "many": // endless refs
				_, _ = w.Write([]byte("001e# service=git-upload-pack\n0000"))
				for n := 0; r.Context().Err() == nil; n++ {
					line := fmt.Sprintf("%s refs/heads/branch-%d\n", id, n)
					if _, err := fmt.Fprintf(w, "%04x%s", len(line)+4, line); err != nil {
						return
					}
				}
			case "noise": // other endless refs
				for n := 0; r.Context().Err() == nil; n++ {
					line := fmt.Sprintf("%s refs/pull/%d/head\n", id, n)
					if _, err := fmt.Fprintf(w, "%04x%s", len(line)+4, line); err != nil {
						return
					}
				}
			case "pack":
				if strings.HasSuffix(rest, "git-upload-pack") {
					w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
					_, _ = w.Write([]byte("0008NAK\n0014\x01not a pack at all0000"))
					return
				}
				line := id + " refs/heads/main\x00side-band-64k\n"
				fmt.Fprintf(w, "%04x%s0000", len(line)+4, line)
			case "secret": // echoes the credentials
				user, password, _ := r.BasicAuth()
				line := "ERR you are " + user + ":" + password
				fmt.Fprintf(w, "%04x%s0000", len(line)+4, line)
			}
		}))
		t.Cleanup(source.Close)
		_, port, _ := net.SplitHostPort(strings.TrimPrefix(source.URL, "http://"))
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200,
			JSON: `{"outbound_local_requests_whitelist":["127.0.0.1:` + port + `"]}`})
		for name, want := range map[string]string{
			"redirect": "local network", "redirect-file": "not allowed", "round": "too often", "elsewhere": "not a Git repository", "page": "no Git repository",
			"many": "more than 20000", "noise": "list of refs is too long", "pack": "damaged or not valid", "secret": "reported an error",
		} {
			state := i.importProject(t, name, "http://someone:hunter2pass@127.0.0.1:"+port+"/"+name)
			if state.Status != "failed" || !strings.Contains(state.Error, want) || strings.Contains(state.Error, "hunter2pass") {
				t.Errorf("%s: %+v", name, state)
			}
			s.Check(t, apptest.Call{Do: "GET /projects/alice%2F" + name, As: alice, Status: 200, Want: `{"empty_repo":true,"import_status":"failed"}`, Not: []string{"hunter2pass"}})
		}
		if reached.Load() != 0 {
			t.Error("a redirect reached an address that is not allowed")
		}
		if strings.Contains(s.Log(), "hunter2pass") {
			t.Error("a password is in the log")
		}
	})
}

// TestImportSilent imports from a server that stops sending. It uses a separate
// server with a short timeout, with which other imports would fail on a busy
// machine.
func TestImportSilent(t *testing.T) {
	t.Parallel()
	apptest.EachWith(t, apptest.Options{RemoteStall: time.Second}, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = w.Write([]byte("001e"))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}))
		t.Cleanup(source.Close)
		allowImports(t, s)
		if state := (importTester{s, alice}).importProject(t, "p", source.URL+"/p"); state.Status != "failed" || !strings.Contains(state.Error, "stopped sending") {
			t.Errorf("%+v", state)
		}
	})
}

// putLFS creates a project named source with an LFS object, and returns its pointer
// as JSON and its content.
func putLFS(t *testing.T, s *apptest.Server, token, user, content string) (pointer, object string) {
	t.Helper()
	s.Check(t, apptest.Call{Do: "POST /projects", As: token, Status: 201, JSON: `{"name":"source","initialize_with_readme":true}`})
	p, err := s.Projects.Require(t.Context(), actor.System(), project.Ref(user+"/source"), project.NoAccess)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(content))
	o := lfs.Pointer{OID: hex.EncodeToString(sum[:]), Size: int64(len(content))}
	if err := s.LFS.Put(t.Context(), p, o, strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", o.OID, o.Size))
	if err != nil {
		t.Fatal(err)
	}
	return string(text), content
}
