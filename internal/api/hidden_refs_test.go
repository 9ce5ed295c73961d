package api_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/ci"
	"svc/internal/oauth"
	"svc/internal/project"
)

// hiddenReads are the requests that take a revision and return code or history.
// {rev} is the revision, {at} the project.
var hiddenReads = []string{
	"GET {at}/repository/tree?ref={rev}",
	"GET {at}/repository/files/hidden.txt?ref={rev}",
	"GET {at}/repository/files/hidden.txt/raw?ref={rev}",
	"GET {at}/repository/files/hidden.txt/blame?ref={rev}",
	"GET {at}/repository/archive.tar?sha={rev}",
	"GET {at}/repository/archive.zip?sha={rev}",
	"GET {at}/repository/compare?from=main&to={rev}",
	"GET {at}/repository/compare?from={rev}&to=main&straight=true",
	"GET {at}/repository/commits?ref_name={rev}",
	"GET {at}/repository/commits?ref_name=main..{rev}",
	"GET {at}/repository/commits/{rev}",
	"GET {at}/repository/commits/{rev}/diff",
	"GET {at}/repository/commits/{rev}/comments",
	"GET {at}/repository/commits/{rev}/statuses",
	"GET {at}/repository/commits/{rev}/refs",
	"GET {at}/repository/commits/{rev}/sequence",
	"GET {at}/repository/commits/{rev}/signature",
	"GET {at}/repository/commits/{rev}/merge_requests",
	"GET {at}/repository/merge_base?refs[]={rev}&refs[]=main",
	"GET {at}/repository/contributors?ref={rev}",
	"GET {at}/repository/changelog?version=1.0.0&from=main&to={rev}",
	"GET {at}/ci/lint?content_ref={rev}",
	"GET //{page}/-/tree/{rev}",
	"GET //{page}/-/blob/{rev}/hidden.txt",
	"GET //{page}/-/raw/{rev}/hidden.txt",
	"GET //{page}/-/blame/{rev}/hidden.txt",
	"GET //{page}/-/commits/{rev}",
	"GET //{page}/-/commit/{rev}",
	"GET //{page}/-/archive/{rev}/code.tar",
	"GET //{page}/-/compare/main...{rev}",
}

// hidden is a public project whose merge requests are visible to members only. The
// source branch of one merge request is deleted, so that its commits are only
// reachable from merge request refs.
type hidden struct {
	t                       *testing.T
	s                       *apptest.Server
	id                      int64
	page                    string
	earlier                 string // a head that was replaced by a force push
	head, blob, tree        string
	ids                     map[string]int64
	tokens                  map[string]string
	keptNames, requestNames []string
}

const hiddenText = "the text that only members may read"

func newHidden(t *testing.T, s *apptest.Server) *hidden {
	t.Helper()
	h := &hidden{t: t, s: s, ids: map[string]int64{}, tokens: map[string]string{"anonymous": ""}}
	_, owner := s.User(t, "owner")
	h.tokens["owner"], h.page = owner, "owner/code"
	h.id = code(t, s, owner, "code", `,"visibility":"public","merge_requests_access_level":"private"`)
	for name, level := range map[string]project.Level{"outsider": 0, "guest": project.Guest, "reporter": project.Reporter, "developer": project.Developer} {
		h.ids[name], h.tokens[name] = s.User(t, name)
		if level > 0 {
			enlist(t, s, h.id, h.ids[name], level)
		}
	}
	developer := h.tokens["developer"]
	h.earlier = commitTo(t, s, developer, h.id, "work", "hidden.txt", hiddenText+" first\n", "Hidden work, first")
	requested(t, s, developer, h.id, "work", "")
	s.Settled(t)
	// Another commit is force-pushed to the branch, and the branch is deleted.
	s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/repository/commits", h.id), As: developer, Status: 201,
		JSON: fmt.Sprintf(`{"branch":"work","start_branch":"main","force":true,"commit_message":"Hidden work","actions":[{"action":"create","file_path":"hidden.txt","content":%q}]}`, hiddenText+"\n")})
	s.Settled(t)
	r := s.Repository(t, h.id)
	h.head = r.Tip("refs/heads/work")
	h.blob, h.tree = r.Git("rev-parse", h.head+":hidden.txt"), r.Git("rev-parse", h.head+"^{tree}")
	s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /projects/%d/repository/branches/work", h.id), As: developer, Status: 204})
	s.Settled(t)
	if got := r.Tip("refs/merge-requests/1/head"); got != h.head {
		t.Fatalf("the merge request is at %q, want %q", got, h.head)
	}
	h.requestNames = []string{"refs/merge-requests/1/head", "merge-requests/1/head"}
	h.keptNames = []string{"refs/svc/keep/" + h.head, "svc/keep/" + h.head}
	return h
}

// revisions returns the forms in which callers can write the hidden commit.
func (h *hidden) revisions() []string {
	short := h.head[:4]
	for n := 4; h.ambiguous(short); n++ {
		short = h.head[:n]
	}
	return []string{h.head, strings.ToUpper(h.head), short, h.head[:12], h.head + "^{commit}", h.head + "~0", h.earlier}
}

func (h *hidden) ambiguous(short string) bool {
	out := h.s.Repository(h.t, h.id).Git("rev-parse", "--disambiguate="+short)
	return strings.Count(out, "\n") > 0
}

func (h *hidden) call(read, rev string) string {
	return strings.NewReplacer("{at}", fmt.Sprintf("/projects/%d", h.id), "{page}", h.page, "{rev}", url.PathEscape(rev)).Replace(read)
}

// TestMergeRequestCodeLeak reads the code of a members-only merge request as each
// kind of user, by every kind of revision.
func TestMergeRequestCodeLeak(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		h := newHidden(t, s)
		bearer := func(token string) map[string]string { return map[string]string{"Authorization": "Bearer " + token} }
		for _, who := range []struct {
			name  string
			token string
			head  map[string]string
			sees  bool
		}{
			{name: "anonymous"},
			{name: "outsider", token: h.tokens["outsider"]},
			{name: "guest", token: h.tokens["guest"]},
			{name: "outsider by OAuth", head: bearer(oauthToken(t, s, h.ids["outsider"], "outsider", "read_api"))},
			{name: "read_repository", token: s.Token(t, h.ids["outsider"], "read_repository")},
			{name: "reporter", token: h.tokens["reporter"], sees: true},
			{name: "developer", token: h.tokens["developer"], sees: true},
			{name: "reporter by OAuth", head: bearer(oauthToken(t, s, h.ids["reporter"], "reporter", "read_api")), sees: true},
			{name: "administrator", token: root, sees: true},
		} {
			for _, read := range hiddenReads {
				if strings.HasPrefix(read, "GET //") && who.name != "anonymous" {
					continue // pages only accept sessions
				}
				for _, rev := range append(h.requestNames, h.revisions()...) {
					got := s.Send(t, apptest.Call{Do: h.call(read, rev), As: who.token, Header: who.head})
					if who.sees {
						if got.Status != 200 && !strings.HasSuffix(read, "/signature") && !strings.Contains(read, "/changelog") && !(rev == h.earlier && strings.Contains(read, "files")) {
							t.Errorf("%s, %s at %s: status %d: %.200s", who.name, read, rev, got.Status, got.Body)
						}
						continue
					}
					shown := bytes.Contains(got.Body, []byte(hiddenText)) || bytes.Contains(got.Body, []byte("Hidden work")) || bytes.Contains(got.Body, []byte(`"hidden.txt"`))
					if list := strings.Contains(read, "commits?ref_name"); shown || got.Status == 200 && !list || list && got.Status == 200 && string(got.Body) != "[]" {
						t.Errorf("%s, %s at %s: status %d: %.200s", who.name, read, rev, got.Status, got.Body)
					}
				}
			}
			// Internal refs are hidden from all users.
			for _, rev := range h.keptNames {
				s.Check(t, apptest.Call{Name: who.name, Do: h.call("GET {at}/repository/files/hidden.txt/raw?ref={rev}", rev), As: who.token, Header: who.head, Status: map[bool]int{true: 403, false: 404}[who.name == "read_repository"], Not: []string{hiddenText}})
			}
			// Files and directories by their object IDs.
			for _, read := range []string{"GET {at}/repository/blobs/{rev}", "GET {at}/repository/blobs/{rev}/raw"} {
				got := s.Send(t, apptest.Call{Do: h.call(read, h.blob), As: who.token, Header: who.head})
				if who.sees != (got.Status == 200) {
					t.Errorf("%s, %s: status %d: %.200s", who.name, read, got.Status, got.Body)
				}
			}
		}
		// Visible objects can still be read, by a short ID and by the ID of a blob.
		r := s.Repository(t, h.id)
		main := r.Tip("refs/heads/main")
		s.Table(t, []apptest.Call{
			{Do: h.call("GET {at}/repository/commits/{rev}", main), Status: 200},
			{Do: h.call("GET {at}/repository/commits/{rev}", main[:10]), Status: 200},
			{Do: h.call("GET {at}/repository/blobs/{rev}/raw", r.Git("rev-parse", "main:a.txt")), Status: 200},
			{Do: h.call("GET {at}/repository/commits/{rev}", "main~0"), Status: 200},
			{Name: "a search of the history", Do: h.call("GET {at}/repository/commits/{rev}", "main^{/first}"), Status: 404},
			{Name: "the reflog", Do: h.call("GET {at}/repository/commits/{rev}", "main@{0}"), Status: 404},
			{Name: "a path", Do: h.call("GET {at}/repository/blobs/{rev}/raw", "main:a.txt"), Status: 404},
		})
		h.checkWrites()
		h.checkTokensOfProjects()
	}, apptest.SSH)
}

// checkWrites checks that Developers cannot copy the code if merge requests are
// disabled, so that no one can read them.
func (h *hidden) checkWrites() {
	h.t.Helper()
	at, developer := fmt.Sprintf("/projects/%d", h.id), h.tokens["developer"]
	h.s.Check(h.t, apptest.Call{Do: "PUT " + at, As: h.tokens["owner"], JSON: `{"merge_requests_access_level":"disabled"}`, Status: 200})
	for _, rev := range append(h.revisions(), h.requestNames...) {
		for _, c := range []apptest.Call{
			{Do: "POST " + at + "/repository/branches", JSON: fmt.Sprintf(`{"branch":"stolen","ref":%q}`, rev), Status: 400},
			{Do: "POST " + at + "/repository/tags", JSON: fmt.Sprintf(`{"tag_name":"stolen","ref":%q}`, rev), Status: 400},
			{Do: h.call("POST {at}/repository/commits/{rev}/cherry_pick", rev), JSON: `{"branch":"main"}`, Status: 404},
			{Do: h.call("POST {at}/repository/commits/{rev}/revert", rev), JSON: `{"branch":"main"}`, Status: 404},
			{Do: h.call("POST {at}/repository/commits/{rev}/comments", rev), JSON: `{"note":"x"}`, Status: 404},
			{Do: h.call("POST {at}/statuses/{rev}", rev), JSON: `{"state":"success"}`, Status: 404},
			{Do: "POST " + at + "/repository/commits", Status: 400,
				JSON: fmt.Sprintf(`{"branch":"stolen","start_sha":%q,"commit_message":"x","actions":[{"action":"create","file_path":"b","content":"b"}]}`, rev)},
			{Do: "POST " + at + "/pipeline", JSON: fmt.Sprintf(`{"ref":%q}`, rev), Status: 400},
		} {
			c.As = developer
			h.s.Check(h.t, c)
		}
	}
	h.s.Check(h.t, apptest.Call{Do: "PUT " + at, As: h.tokens["owner"], JSON: `{"merge_requests_access_level":"private"}`, Status: 200})
}

// checkTokensOfProjects fetches with git, with each credential and protocol version.
func (h *hidden) checkTokensOfProjects() {
	t, s := h.t, h.s
	t.Helper()
	at := fmt.Sprintf("/projects/%d", h.id)
	var deploy struct{ Username, Token string }
	s.Check(t, apptest.Call{Do: "POST " + at + "/deploy_tokens", As: h.tokens["owner"], JSON: `{"name":"d","scopes":["read_repository"]}`, Status: 201}).JSON(t, &deploy)
	outsidersJob := h.jobToken("outsider")
	// Neither token is valid for the API.
	s.Check(t, apptest.Call{Do: h.call("GET {at}/repository/commits/{rev}", h.head), As: deploy.Token, Status: 401})
	s.Check(t, apptest.Call{Do: h.call("GET {at}/repository/commits/{rev}", h.head), Header: map[string]string{"JOB-TOKEN": outsidersJob}, Status: 401})
	key := filepath.Join(t.TempDir(), "key")
	public := writeSSHKey(t, key)
	s.Check(t, apptest.Call{Do: "POST " + at + "/deploy_keys", As: h.tokens["owner"], JSON: fmt.Sprintf(`{"title":"k","key":%q}`, public), Status: 201})
	web := s.URL + "/" + h.page + ".git"
	// Git only sends a password after a 401 response.
	basic := func(user, password string) string {
		return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	for _, who := range []struct {
		name, url, header string
		sees              bool
	}{
		{name: "anonymous", url: web},
		{name: "outsider", url: web, header: basic("outsider", h.tokens["outsider"])},
		{name: "guest", url: web, header: basic("guest", h.tokens["guest"])},
		{name: "OAuth of an outsider", url: web, header: basic("oauth2", oauthToken(t, s, h.ids["outsider"], "outsider", "read_repository"))},
		{name: "deploy token", url: web, header: basic(deploy.Username, deploy.Token)},
		{name: "deploy key", url: "ssh://git@" + s.SSHAddr() + "/" + h.page + ".git"},
		{name: "job of an outsider", url: web, header: basic("gitlab-ci-token", outsidersJob)},
		{name: "reporter", url: web, header: basic("reporter", h.tokens["reporter"]), sees: true},
		{name: "developer", url: web, header: basic("developer", h.tokens["developer"]), sees: true},
		{name: "OAuth of a reporter", url: web, header: basic("oauth2", oauthToken(t, s, h.ids["reporter"], "reporter", "read_repository")), sees: true},
	} {
		for _, version := range []string{"0", "2"} {
			git := func(args ...string) (string, error) {
				dir := t.TempDir()
				c := exec.CommandContext(t.Context(), "git", append([]string{"-c", "protocol.version=" + version, "-c", "http.extraHeader=" + who.header}, args...)...)
				c.Dir = dir
				c.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_GLOBAL=/dev/null", "HOME="+dir, "GIT_DIR="+filepath.Join(dir, "r.git"),
					"GIT_SSH_COMMAND=ssh -F none -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -i "+key)
				if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", "--bare", filepath.Join(dir, "r.git")).CombinedOutput(); err != nil {
					t.Fatal(err, string(out))
				}
				out, err := c.CombinedOutput()
				return string(out), err
			}
			if out, err := git("fetch", "-q", who.url, "refs/heads/main"); err != nil {
				t.Errorf("%s, version %s: main: %v %s", who.name, version, err, out)
			}
			out, err := git("ls-remote", who.url)
			if listed := strings.Contains(out, "refs/merge-requests/1/head"); err != nil || listed != who.sees || strings.Contains(out, "refs/svc/") {
				t.Errorf("%s, version %s: refs: %v %s", who.name, version, err, out)
			}
			for _, want := range []string{"refs/merge-requests/1/head", h.head} {
				if out, err := git("fetch", "-q", who.url, want); (err == nil) != who.sees {
					t.Errorf("%s, version %s: fetch of %s: %v %s", who.name, version, want, err, out)
				}
			}
			if who.sees {
				continue
			}
			for _, want := range []string{h.earlier, h.tree, h.blob, "refs/svc/keep/" + h.head} {
				if out, err := git("fetch", "-q", who.url, want); err == nil {
					t.Errorf("%s, version %s: fetch of %s: %s", who.name, version, want, out)
				}
			}
		}
	}
}

// jobToken returns the token of a job that a user runs in their own project.
func (h *hidden) jobToken(who string) string {
	h.t.Helper()
	b := &bench{t: h.t, s: h.s, owner: h.tokens[who]}
	b.project = b.newProject("jobs", "a: {script: [x]}")
	b.runner = newRunner(h.t, h.s, root, `{"runner_type":"instance_type","run_untagged":true}`)
	if _, _, err := h.s.CI.CreatePipeline(h.t.Context(), actorOf(h.t, h.s, b.owner), project.RefTo(b.project), ci.NewPipeline{Ref: "main"}); err != nil {
		h.t.Fatal(err)
	}
	return b.run().Token
}

// oauthToken returns an OAuth access token of a user.
func oauthToken(t *testing.T, s *apptest.Server, id int64, name, scope string) string {
	t.Helper()
	const callback = "https://app.example/cb"
	app, err := s.OAuth.Create(t.Context(), actor.System(), oauth.NewApplication{Name: "App", RedirectURIs: callback, Confidential: true, Scopes: []string{scope}})
	if err != nil {
		t.Fatal(err)
	}
	by := actor.Actor{ID: id, Username: name, Name: name}
	r, err := s.OAuth.Begin(t.Context(), url.Values{"client_id": {app.UID}, "redirect_uri": {callback}, "response_type": {"code"}, "scope": {scope}})
	if err != nil {
		t.Fatal(err)
	}
	to, err := s.OAuth.Approve(t.Context(), by, s.Clock.Now(), r)
	if err != nil {
		t.Fatal(err)
	}
	back, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := s.OAuth.Exchange(t.Context(), oauth.TokenRequest{
		GrantType: "authorization_code", ClientID: app.UID, ClientSecret: app.Secret, Code: back.Query().Get("code"), RedirectURI: callback,
	})
	if err != nil {
		t.Fatal(err)
	}
	return tokens.AccessToken
}

// writeSSHKey writes a private key and returns the public key.
func writeSSHKey(t *testing.T, path string) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	made, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(made)))
}
