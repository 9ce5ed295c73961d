package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/project"
	"svc/internal/waittest"
)

// TestImportPages imports a repository by the form of a new project, cancels the
// import and retries it.
func TestImportPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		s.User(t, "eve")
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, Status: 201, JSON: `{"name":"source","initialize_with_readme":true}`})
		u, err := s.Users.As(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		place, err := s.Projects.Namespace(t.Context(), u, "alice")
		if err != nil {
			t.Fatal(err)
		}
		to, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		pass := httputil.NewSingleHostReverseProxy(to)
		var hang atomic.Bool
		hang.Store(true)
		source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if hang.Load() && r.Method == http.MethodPost {
				w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				return
			}
			pass.ServeHTTP(w, r)
		}))
		t.Cleanup(source.Close)
		from := source.URL + "/alice/source.git"
		b := newBrowser(t, s).signIn("alice", password)
		b.get("/projects/new").want(200, "Import project from URL")
		namespace := strconv.FormatInt(place.ID, 10)
		create := func(address string) answer {
			return b.submit("/projects/new", "/projects", "name", "p", "namespace_id", namespace, "visibility", "public", "readme", "1",
				"import_url", address, "import_user", "alice", "import_password", alice)
		}
		create(from).want(422, "local network").not(alice)
		create("file:///etc/passwd").want(422, "ssh:// or git://").not(alice)
		create("git@127.0.0.1:alice/source.git").want(422, "local network").not(alice)
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"allow_local_requests_from_web_hooks_and_services":true}`})
		create("ssh://git@"+s.SSHAddr()+"/alice/source.git").want(422, "were detected now: SHA256:", ">ssh-ed25519 AAAA", "Compare them").not(alice)
		create("ssh://git@127.0.0.1:1/a").want(422, "were not found").not(alice)
		create(from).leads("/alice/p")
		state := func() project.ImportStatus {
			p, err := s.Projects.Get(t.Context(), actor.System(), "alice/p")
			if err != nil {
				t.Fatal(err)
			}
			return p.Import
		}
		waittest.For(t, "the import to start", func() bool { return state() == project.ImportStarted })
		b.get("/alice/p").want(200, "Import in progress", "/alice/p/-/import")
		const page = "/alice/p/-/import"
		b.get(page).want(200, "Connecting to the server", "Cancel import", from).not(alice)
		eve := newBrowser(t, s).signIn("eve", password)
		eve.get("/alice/p").want(200, "Import in progress").not("/-/import")
		eve.get(page).want(404)
		eve.submit("/alice/p", page+"/cancel").want(403)
		b.submit(page, page+"/cancel").leads(page)
		b.get(page).want(200, "The import was canceled", "Retry import").not(alice)
		b.get("/alice/p").want(200, "The import failed", "Details and retry")
		b.submit(page, page+"/retry", "import_url", "ftp://example.org/a").want(422, "ssh:// or git://")
		hang.Store(false)
		b.submit(page, page+"/retry", "import_url", from, "import_user", "alice", "import_password", alice).leads(page)
		waittest.For(t, "the import to end", func() bool { return state() == project.ImportFinished })
		b.get(page).want(200, "The import finished", "1 branch, 0 tags")
		b.get("/alice/p").want(200, "README.md")
		b.get("/alice/source/-/import").want(404)
	}, apptest.SSH)
}
