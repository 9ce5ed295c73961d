package servertest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/project"
	"svc/internal/waittest"
)

// TestInterruptedImport interrupts an import and runs it again, also after its refs
// were saved.
func TestInterruptedImport(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"allow_local_requests_from_web_hooks_and_services":true}`})
		_, alice := s.User(t, "alice")
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, Status: 201, JSON: `{"name":"source","visibility":"public","initialize_with_readme":true}`})
		to, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		pass := httputil.NewSingleHostReverseProxy(to)
		var refuse, hang atomic.Bool
		hanging := make(chan struct{})
		source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case refuse.Load():
				http.NotFound(w, r)
			case hang.Load() && r.Method == http.MethodPost:
				w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
				w.(http.Flusher).Flush()
				hanging <- struct{}{}
				<-r.Context().Done()
			default:
				pass.ServeHTTP(w, r)
			}
		}))
		t.Cleanup(source.Close)
		refuse.Store(true)
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, Form: url.Values{"name": {"p"}, "import_url": {source.URL + "/alice/source.git"}}, Status: 201,
			Want: `{"import_status":"scheduled"}`})
		find := func() *project.Project {
			t.Helper()
			p, err := s.Projects.Get(t.Context(), actor.System(), "alice/p")
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		waittest.For(t, "the import to fail", func() bool { return find().Import == project.ImportFailed })
		id := find().ID

		refuse.Store(false)
		hang.Store(true)
		if err := reset(t.Context(), s, id); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, s, id) }()
		waittest.Receive(t, "the request for the refs", hanging)
		s.Table(t, []apptest.Call{
			{Name: "progress", Do: "GET /projects/alice%2Fp/import", As: alice, Status: 200, Want: `{"import_status":"started","progress":{"phase":"connecting"}}`},
			{Name: "no commits meanwhile", Do: "POST /projects/alice%2Fp/repository/files/a", As: alice, Status: 409, JSON: `{"branch":"main","commit_message":"m","content":"x"}`},
			{Name: "no fetch meanwhile", Do: "GET //alice/p.git/info/refs?service=git-upload-pack", Header: map[string]string{"Authorization": basic("alice", alice)}, Status: 503},
		})
		stop()
		if err := waittest.Receive(t, "the end of the run", ended); err == nil {
			t.Error("a run that was stopped counts as done")
		}
		if p := find(); p.Import != project.ImportStarted || p.DefaultBranch != "" {
			t.Fatalf("after the stop: %s, branch %q", p.Import, p.DefaultBranch)
		}

		hang.Store(false)
		for _, what := range []string{"again", "after its refs were saved"} {
			if err := run(t.Context(), s, id); err != nil {
				t.Fatal(what, err)
			}
			if p := find(); p.Import != project.ImportFinished || p.DefaultBranch != "main" {
				t.Fatalf("%s: %s %s, branch %q", what, p.Import, p.ImportError, p.DefaultBranch)
			}
			s.Check(t, apptest.Call{Do: "GET /projects/alice%2Fp/events?action=pushed", As: alice, Status: 200, Want: `[{"push_data":{"ref":"main"}}]`})
			if err := reset(t.Context(), s, id); err != nil {
				t.Fatal(err)
			}
		}
		if strings.Contains(s.Log(), `"level":"ERROR"`) {
			t.Error("errors were logged")
		}
	})
}

// run runs the background job of the current import of a project.
func run(ctx context.Context, s *apptest.Server, projectID int64) error {
	_, i, err := s.Mirrors.Get(ctx, actor.System(), project.RefTo(projectID))
	if err != nil {
		return err
	}
	return s.Mirrors.Run(ctx, projectID, i.Run)
}

// reset puts the last import of a project in the state of an interrupted one.
func reset(ctx context.Context, s *apptest.Server, projectID int64) error {
	if _, err := s.DB.ExecContext(ctx, `UPDATE project_imports SET active = ?, phase = 'receiving' WHERE project_id = ?`, true, projectID); err != nil {
		return err
	}
	_, err := s.DB.ExecContext(ctx, `UPDATE projects SET import_status = 'started', import_error = '' WHERE id = ?`, projectID)
	return err
}

func basic(user, password string) string {
	r, _ := http.NewRequest(http.MethodGet, "http://localhost", nil)
	r.SetBasicAuth(user, password)
	return r.Header.Get("Authorization")
}
