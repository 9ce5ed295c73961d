package servertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/project"
	"svc/internal/waittest"
)

// TestImportsShareWorkers checks that an import does not wait for as many imports of
// another user as there are workers, whose server sends nothing.
func TestImportsShareWorkers(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"allow_local_requests_from_web_hooks_and_services":true}`})
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, Status: 201, JSON: `{"name":"source","visibility":"public","initialize_with_readme":true}`})
		to, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		pass := httputil.NewSingleHostReverseProxy(to)
		over := make(chan struct{})
		source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/silent/") {
				<-over
				return
			}
			pass.ServeHTTP(w, r)
		}))
		t.Cleanup(source.Close)
		t.Cleanup(func() { close(over) })
		start := func(as, name, path string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "POST /projects", As: as, Form: url.Values{"name": {name}, "import_url": {source.URL + path}}, Status: 201})
		}
		status := func(path string) project.ImportStatus {
			t.Helper()
			p, err := s.Projects.Get(t.Context(), actor.System(), project.Ref(path))
			if err != nil {
				t.Fatal(err)
			}
			return p.Import
		}
		started := func() (n int) {
			for i := range 6 {
				if status(fmt.Sprintf("alice/p%d", i)) == project.ImportStarted {
					n++
				}
			}
			return n
		}
		for i := range 6 {
			start(alice, fmt.Sprintf("p%d", i), "/silent/x.git")
		}
		waittest.For(t, "two imports of alice to start", func() bool { return started() == 2 })
		start(bob, "p", "/alice/source.git")
		waittest.For(t, "the import of bob to finish", func() bool { return status("bob/p") == project.ImportFinished })
		if n := started(); n != 2 {
			t.Errorf("%d imports of alice are under way, want 2", n)
		}
	})
}
