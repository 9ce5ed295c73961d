package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"svc/internal/app/apptest"
)

// TestImportElsewhere imports from sources that refer to another server in the local
// network, which is not allowed: by redirects of packs, by the URLs of LFS objects
// and by redirects of these.
func TestImportElsewhere(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		pointer, _ := putLFS(t, s, bob, "bob", "some large content")
		s.Check(t, apptest.Call{Do: "POST /projects/bob%2Fsource/repository/files/a.bin", As: bob, Status: 201, JSON: `{"branch":"main","commit_message":"m","content":` + pointer + `}`})
		var reached, asked atomic.Int32
		inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
		t.Cleanup(inner.Close)
		objectsAt := func(to func(r *http.Request) string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				var batch struct{ Objects []map[string]any }
				if err := json.NewDecoder(r.Body).Decode(&batch); err != nil {
					t.Error(err)
				}
				asked.Add(1)
				for _, o := range batch.Objects {
					o["actions"] = map[string]any{"download": map[string]any{"href": to(r)}}
				}
				w.Header().Set("Content-Type", "application/vnd.git-lfs+json")
				if err := json.NewEncoder(w).Encode(batch); err != nil {
					t.Error(err)
				}
			}
		}
		away := func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			http.Redirect(w, r, inner.URL+"/x", http.StatusTemporaryRedirect)
		}
		const repository = "/bob/source.git"
		sources := map[string]string{
			"pack": oddSource(t, s, map[string]http.HandlerFunc{repository + "/git-upload-pack": away}),
			"href": oddSource(t, s, map[string]http.HandlerFunc{repository + "/info/lfs/objects/batch": objectsAt(func(*http.Request) string { return inner.URL + "/object" })}),
			"object": oddSource(t, s, map[string]http.HandlerFunc{
				repository + "/info/lfs/objects/batch": objectsAt(func(r *http.Request) string { return "http://" + r.Host + "/moved" }), "/moved": away,
			}),
		}
		var allowed []string
		for _, source := range sources {
			allowed = append(allowed, quoted(strings.TrimPrefix(source, "http://")))
		}
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"outbound_local_requests_whitelist":[` + strings.Join(allowed, ",") + `]}`})
		for name, source := range sources {
			want := map[string]string{"pack": "unexpected redirect", "href": "local network", "object": "local network"}[name]
			before := asked.Load()
			state := importTester{s, alice}.importProject(t, name, strings.Replace(source, "http://", "http://bob:"+bob+"@", 1)+repository)
			if state.Status != "failed" || !strings.Contains(state.Error, want) {
				t.Errorf("%s, by its URL: %+v", name, state)
			}
			id := bulkImport(t, s, alice, source, bob, map[string]any{"source_type": "project_entity", "source_full_path": "bob/source", "destination_slug": name + "-bulk", "destination_namespace": "alice"})
			end, relation := "finished", "lfs_objects"
			if name == "pack" {
				end, relation = "failed", "project"
			}
			checkReport(t, bulkEnded(t, s, alice, id, end)[0], [2]string{relation, want})
			if asked.Load() < before+2 {
				t.Errorf("%s was not asked for twice", name)
			}
		}
		pull := fmt.Sprintf(`{"enabled":true,"url":%q,"auth_user":"bob","auth_password":%q}`, sources["href"]+repository, bob)
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, Form: url.Values{"name": {"mirror"}}, Status: 201})
		s.Check(t, apptest.Call{Do: "PUT /projects/alice%2Fmirror/mirror/pull", As: alice, JSON: pull, Status: 200})
		s.Check(t, apptest.Call{Do: "POST /projects/alice%2Fmirror/mirror/pull", As: alice, Status: 202})
		settled(t, s)
		s.Check(t, apptest.Call{Do: "GET /projects/alice%2Fmirror/mirror/pull", As: alice, Status: 200, Want: `{"update_status":"failed","last_error":"The URL leads to an address of the local network, which is not allowed."}`})
		if reached.Load() != 0 {
			t.Errorf("%d requests reached an address that is not allowed", reached.Load())
		}
	})
}
