package githttp_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/project"
	"svc/internal/user"
)

// ask is a request of a git client and its expected response.
type ask struct {
	name     string
	login    string
	password string
	path     string // relative to the server URL
	method   string // GET unless there is a body
	header   map[string]string
	body     []byte

	status int
	text   string // part of the body
	want   map[string]string
}

func (a ask) send(t *testing.T, s *apptest.Server) apptest.Answer {
	t.Helper()
	method := a.method
	if method == "" {
		method = http.MethodGet
		if a.body != nil {
			method = http.MethodPost
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+a.path, bytes.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	if a.login != "" || a.password != "" {
		r.SetBasicAuth(a.login, a.password)
	}
	for name, value := range a.header {
		r.Header.Set(name, value)
	}
	return s.Exchange(t, r)
}

func (a ask) check(t *testing.T, s *apptest.Server) {
	t.Helper()
	got := a.send(t, s)
	if got.Status != a.status {
		t.Errorf("%s: status %d, want %d: %.300s", a.path, got.Status, a.status, got.Body)
	}
	if !strings.Contains(string(got.Body), a.text) {
		t.Errorf("%s: want %q in %.300q", a.path, a.text, got.Body)
	}
	for name, value := range a.want {
		if got.Header.Get(name) != value {
			t.Errorf("%s: header %s is %q, want %q", a.path, name, got.Header.Get(name), value)
		}
	}
}

func table(t *testing.T, s *apptest.Server, asks []ask) {
	t.Helper()
	for _, a := range asks {
		name := a.name
		if name == "" {
			name = a.path
		}
		t.Run(name, func(t *testing.T) { a.check(t, s) })
	}
}

const password = "a good password" // of every user that apptest creates

func refs(path, service string) string { return "/" + path + ".git/info/refs?service=" + service }

// newProject creates a project with an initial commit.
func newProject(t *testing.T, s *apptest.Server, token, name, visibility string) {
	t.Helper()
	s.Check(t, apptest.Call{Do: "POST /projects", As: token, Status: 201,
		JSON: fmt.Sprintf(`{"name":%q,"visibility":%q,"initialize_with_readme":true}`, name, visibility)})
}

// TestRoles checks read and write access of each role to projects of each
// visibility.
func TestRoles(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, owner := s.User(t, "olga")
		for _, v := range []string{"private", "internal", "public"} {
			newProject(t, s, owner, v, v)
			newProject(t, s, owner, v+"2", v)
		}
		tokens := map[string]string{"nobody": "", "owner": owner, "admin": apptest.RootToken}
		_, tokens["outsider"] = s.User(t, "otto")
		for level, name := range map[int]string{10: "guest", 15: "planner", 20: "reporter", 30: "developer", 40: "maintainer"} {
			id, token := s.User(t, name)
			tokens[name] = token
			for _, v := range []string{"private", "internal", "public"} {
				s.Check(t, apptest.Call{Do: "POST /projects/olga%2F" + v + "/members", As: owner, Status: 201,
					JSON: fmt.Sprintf(`{"user_id":%d,"access_level":%d}`, id, level)})
			}
		}
		external, auditor := true, true
		id, token := s.User(t, "external")
		tokens["external"] = token
		if _, err := s.Users.Update(t.Context(), actor.System(), id, user.Change{Fields: user.Fields{External: &external}}); err != nil {
			t.Fatal(err)
		}
		id, token = s.User(t, "auditor")
		tokens["auditor"] = token
		if _, err := s.Users.Update(t.Context(), actor.System(), id, user.Change{Fields: user.Fields{Auditor: &auditor}}); err != nil {
			t.Fatal(err)
		}
		deploy, err := s.Projects.CreateDeployToken(t.Context(), actor.System(), project.Place{Ref: "olga/private"},
			project.NewDeployToken{Name: "d", Username: "deployer", Scopes: []string{"read_repository"}})
		if err != nil {
			t.Fatal(err)
		}
		tokens["deploy token"] = deploy.Secret

		for who, want := range map[string][3][2]int{
			//             private     internal    public
			"nobody":       {{401, 401}, {401, 401}, {200, 401}},
			"outsider":     {{404, 404}, {200, 403}, {200, 403}},
			"external":     {{404, 404}, {404, 404}, {200, 403}},
			"guest":        {{403, 403}, {200, 403}, {200, 403}},
			"planner":      {{403, 403}, {200, 403}, {200, 403}},
			"reporter":     {{200, 403}, {200, 403}, {200, 403}},
			"developer":    {{200, 200}, {200, 200}, {200, 200}},
			"maintainer":   {{200, 200}, {200, 200}, {200, 200}},
			"owner":        {{200, 200}, {200, 200}, {200, 200}},
			"auditor":      {{200, 403}, {200, 403}, {200, 403}},
			"admin":        {{200, 200}, {200, 200}, {200, 200}},
			"deploy token": {{200, 403}, {404, 404}, {200, 403}},
		} {
			login := strings.ReplaceAll(who, "deploy token", "deployer")
			if who == "nobody" {
				login = ""
			}
			for i, v := range []string{"private", "internal", "public"} {
				for j, service := range []string{"git-upload-pack", "git-receive-pack"} {
					header := map[string]string{"Content-Type": "application/x-" + service + "-request", "Git-Protocol": "version=2"}
					ask{login: login, password: tokens[who], path: refs("olga/"+v, service), header: header, status: want[i][j]}.check(t, s)
					ask{login: login, password: tokens[who], path: "/olga/" + v + ".git/" + service, header: header, body: []byte("0000"), status: want[i][j]}.check(t, s)
				}
			}
		}
		// A project that does not exist looks like one that the user cannot see.
		table(t, s, []ask{
			{path: refs("olga/none", "git-upload-pack"), status: 401, want: map[string]string{"WWW-Authenticate": `Basic realm="svc", charset="UTF-8"`}},
			{path: refs("olga/none", "git-upload-pack"), login: "otto", password: tokens["outsider"], status: 404, text: "project does not exist"},
			{path: refs("olga/private2", "git-upload-pack"), login: "deployer", password: deploy.Secret, status: 404},
		})
	})
}

// TestCredentials checks every kind of credential that can be sent as a password.
func TestCredentials(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		newProject(t, s, alice, "secret", "private")
		newProject(t, s, alice, "open", "public")
		blockedID, blocked := s.User(t, "blocked")
		if _, err := s.Users.Block(t.Context(), actor.System(), blockedID); err != nil {
			t.Fatal(err)
		}
		secondID, _ := s.User(t, "second")
		if _, err := s.Users.EnrollTwoFactor(t.Context(), actor.System(), secondID, "svc"); err != nil {
			t.Fatal(err)
		}
		second := s.Token(t, secondID, "read_repository")
		givenID, given := s.User(t, "given")
		other := "a password of another"
		if _, err := s.Users.Update(t.Context(), actor.System(), givenID, user.Change{Password: &other}); err != nil {
			t.Fatal(err)
		}
		read, write := refs("alice/secret", "git-upload-pack"), refs("alice/secret", "git-receive-pack")
		open := refs("alice/open", "git-upload-pack")
		asks := []ask{
			{name: "password", login: "alice", password: password, path: read, status: 200},
			{name: "password, to write", login: "alice", password: password, path: write, status: 200},
			{name: "address and password", login: "alice@example.org", password: password, path: read, status: 200},
			{name: "token", login: "alice", password: alice, path: read, status: 200},
			{name: "token with another name", login: "whoever", password: alice, path: read, status: 200},
			{name: "token without a name", password: alice, path: read, status: 200},
			{name: "oauth2", login: "oauth2", password: alice, path: read, status: 200},
			{name: "bearer", header: map[string]string{"Authorization": "Bearer " + alice}, path: read, status: 200},
			{name: "wrong password", login: "alice", password: "wrong", path: read, status: 401, text: "personal access token",
				want: map[string]string{"WWW-Authenticate": `Basic realm="svc", charset="UTF-8"`, "Content-Type": "text/plain; charset=utf-8"}},
			{name: "wrong password where none is needed", login: "alice", password: "wrong", path: open, status: 401},
			{name: "no password", login: "alice", path: read, status: 401},
			{name: "unknown token", login: "oauth2", password: "svcpat-unknown", path: read, status: 401, text: "token is invalid"},
			{name: "other scheme", header: map[string]string{"Authorization": "Digest x"}, path: read, status: 401},
			{name: "job token", login: "svc-ci-token", password: "x", path: open, status: 401, text: "job token"},
			{name: "job token by its public name", login: "gitlab-ci-token", password: "x", path: open, status: 401, text: "job token"},
			{name: "token with the login of job tokens", login: "gitlab-ci-token", password: alice, path: read, status: 200},
			{name: "blocked", login: "blocked", password: blocked, path: open, status: 403, text: "blocked"},
			{name: "blocked, by password", login: "blocked", password: password, path: open, status: 403, text: "blocked"},
			{name: "a password that has to be changed", login: "given", password: other, path: open, status: 403, text: "sign in with a browser"},
			{name: "a token meanwhile", login: "given", password: given, path: open, status: 200},
			{name: "two-factor", login: "second", password: password, path: open, status: 401, text: "personal access token with the scope"},
			{name: "two-factor, by token", login: "second", password: second, path: open, status: 200},
		}
		for scope, want := range map[string][2]int{
			"api": {200, 200}, "read_api": {200, 403}, "read_repository": {200, 403}, "write_repository": {200, 200}, "read_user": {403, 403},
		} {
			token := s.Token(t, aliceID, scope)
			asks = append(asks,
				ask{name: scope + " to read", login: "alice", password: token, path: read, status: want[0]},
				ask{name: scope + " to write", login: "alice", password: token, path: write, status: want[1]})
		}
		table(t, s, asks)
	})
}

// TestActivity checks that fetching counts as activity.
func TestActivity(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, token := s.User(t, "alice")
		newProject(t, s, token, "p", "private")
		s.Clock.Move(48 * time.Hour)
		ask{login: "alice", password: password, path: refs("alice/p", "git-upload-pack"), status: 200}.check(t, s)
		u, err := s.Users.Get(t.Context(), actor.System(), id, false)
		if err != nil {
			t.Fatal(err)
		}
		if want := s.Clock.Now().Format(time.DateOnly); u.LastActivityOn != want {
			t.Errorf("last activity on %s, want %s", u.LastActivityOn, want)
		}
	})
}

// TestGuessing checks that an address that guesses passwords is blocked, and only
// for the guessed login.
func TestGuessing(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		s.User(t, "bob")
		newProject(t, s, alice, "open", "public")
		open := refs("alice/open", "git-upload-pack")
		s.Clock.Stop()
		for range 10 {
			ask{login: "oauth2", password: "svcpat-guess", path: open, status: 401}.check(t, s)
		}
		table(t, s, []ask{
			{name: "one more", login: "oauth2", password: "svcpat-guess", path: open, status: 429, text: "too many", want: map[string]string{"Retry-After": "6"}},
			{name: "a good token", login: "oauth2", password: alice, path: open, status: 200},
			{name: "another login", login: "bob", password: password, path: open, status: 200},
		})
		// Correct passwords are not counted, however often they are sent.
		for range 15 {
			ask{login: "bob", password: password, path: open, status: 200}.check(t, s)
		}
		s.Clock.Move(time.Minute)
		ask{login: "oauth2", password: "svcpat-guess", path: open, status: 401}.check(t, s)
		// Unknown tokens do not lock the account.
		for range 10 {
			ask{login: "bob", password: "svcpat-old", path: open, status: 401}.check(t, s)
		}
		s.Clock.Move(time.Minute)
		ask{login: "bob", password: password, path: open, status: 200}.check(t, s)
	})
}

// TestProtocol checks requests that clients other than git may send.
func TestProtocol(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		newProject(t, s, alice, "open", "public")
		newProject(t, s, alice, "moved", "public")
		s.Check(t, apptest.Call{Do: "PUT /projects/alice%2Fmoved", As: alice, JSON: `{"path":"here"}`, Status: 200})
		fetch := map[string]string{"Content-Type": "application/x-git-upload-pack-request", "Git-Protocol": "version=2"}
		zipped := map[string]string{"Content-Type": "application/x-git-upload-pack-request", "Git-Protocol": "version=2", "Content-Encoding": "gzip"}
		list := []byte("0014command=ls-refs\n00010000")
		noCache := map[string]string{"Cache-Control": "no-cache, max-age=0, must-revalidate", "Pragma": "no-cache"}
		table(t, s, []ask{
			{name: "version 0", path: refs("alice/open", "git-upload-pack"), status: 200, text: "001e# service=git-upload-pack\n0000",
				want: map[string]string{"Content-Type": "application/x-git-upload-pack-advertisement", "Cache-Control": noCache["Cache-Control"]}},
			{name: "version 2", path: refs("alice/open", "git-upload-pack"), header: fetch, status: 200, text: "version 2\n"},
			{name: "without .git", path: "/alice/open/info/refs?service=git-upload-pack", status: 200, text: "refs/heads/main"},
			{name: "HEAD", method: "HEAD", path: refs("alice/open", "git-upload-pack"), status: 200},
			{name: "receive", login: "alice", password: alice, path: refs("alice/open", "git-receive-pack"), status: 200, text: "001f# service=git-receive-pack\n0000",
				want: map[string]string{"Content-Type": "application/x-git-receive-pack-advertisement"}},
			{name: "list", path: "/alice/open.git/git-upload-pack", header: fetch, body: list, status: 200, text: "refs/heads/main",
				want: map[string]string{"Content-Type": "application/x-git-upload-pack-result", "Pragma": "no-cache"}},
			{name: "list without .git", path: "/alice/open/git-upload-pack", header: fetch, body: list, status: 200, text: "refs/heads/main"},
			{name: "list, compressed", path: "/alice/open.git/git-upload-pack", header: zipped, body: zip(t, list), status: 200, text: "refs/heads/main"},
			{name: "not compressed, though it says so", path: "/alice/open.git/git-upload-pack", header: zipped, body: list, status: 400, text: "gzip"},
			{name: "bomb", path: "/alice/open.git/git-upload-pack", header: zipped, body: zip(t, bytes.Repeat([]byte("0014command=ls-refs\n"), 2<<20)), status: 413},
			{name: "other compression", path: "/alice/open.git/git-upload-pack", header: map[string]string{
				"Content-Type": "application/x-git-upload-pack-request", "Content-Encoding": "br"}, body: list, status: 400},
			{name: "no packets", path: "/alice/open.git/git-upload-pack", header: fetch, body: []byte("zzzz"), status: 200, text: "ERR "},
			{name: "form", path: "/alice/open.git/git-upload-pack", body: list, status: 415, header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}},
			{name: "wrong method", method: "PUT", path: "/alice/open.git/git-upload-pack", status: 405, want: map[string]string{"Allow": "POST"}},
			{name: "wrong method of refs", method: "POST", path: refs("alice/open", "git-upload-pack"), status: 405, want: map[string]string{"Allow": "GET, HEAD"}},
			{name: "dumb", path: "/alice/open.git/info/refs", status: 403, text: "smart"},
			{name: "dumb object", path: "/alice/open.git/objects/info/packs", status: 403, text: "smart"},
			{name: "dumb head", path: "/alice/none.git/HEAD", status: 403, text: "smart"},
			{name: "other service", path: refs("alice/open", "git-shell"), status: 403},
			{name: "other file", path: "/alice/open.git/config", status: 404},
			{name: "moved", path: refs("alice/moved", "git-upload-pack"), status: 301, text: "alice/here",
				want: map[string]string{"Location": "/alice/here.git/info/refs?service=git-upload-pack"}},
			{name: "moved, in the middle", path: "/alice/moved.git/git-upload-pack", header: fetch, body: list, status: 404, text: "moved to alice/here"},
			{name: "number", path: "/1.git/info/refs?service=git-upload-pack", status: 404},
			{name: "long path", path: refs(strings.Repeat("a/", 2500)+"b", "git-upload-pack"), status: 401},
			{name: "climbing", path: refs("alice/..%2f..%2fetc/open", "git-upload-pack"), status: 401},
			{name: "NUL", path: refs("alice/op%00en", "git-upload-pack"), status: 401},
			{name: "no UTF-8", path: refs("alice/op%ff", "git-upload-pack"), status: 401},
		})
		counted := s.Send(t, apptest.Call{Do: "GET //-/metrics"})
		for _, line := range []string{
			`svc_git_requests_total{outcome="ok",protocol="http",service="git-upload-pack"}`,
			`svc_git_requests_total{outcome="refused",protocol="http",service="git-upload-pack"}`,
		} {
			if !strings.Contains(string(counted.Body), line) {
				t.Errorf("%s is not counted", line)
			}
		}
	})
}

// TestCopying requests a fork whose repository is still being copied: it does not
// exist yet, and the request must not create an empty one.
func TestCopying(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, Status: 201, JSON: `{"name":"fork"}`})
		if _, err := s.DB.ExecContext(t.Context(), `UPDATE projects SET import_status = 'scheduled' WHERE full_path = 'alice/fork'`); err != nil {
			t.Fatal(err)
		}
		table(t, s, []ask{
			{name: "fetch", login: "alice", password: alice, path: refs("alice/fork", "git-upload-pack"), status: 503, text: "being copied"},
			{name: "push", login: "alice", password: alice, path: refs("alice/fork", "git-receive-pack"), status: 409, text: "being copied"},
		})
		if made, err := filepath.Glob(s.Config.Storages["default"] + "/projects/*/*.git"); err != nil || len(made) > 0 {
			t.Errorf("repositories were made: %v %v", made, err)
		}
	})
}

func zip(t *testing.T, plain []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
