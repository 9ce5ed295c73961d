package api_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/waittest"
)

// oddSource starts a source that forwards requests to a server, except for some
// paths of its API.
func oddSource(t testing.TB, s *apptest.Server, answers map[string]http.HandlerFunc) string {
	t.Helper()
	to, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(to)
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer := answers[strings.TrimPrefix(r.URL.Path, "/api/v4")]; answer != nil {
			answer(w, r)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(source.Close)
	return source.URL
}

func answer(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func refuse(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// checkReport checks that the report of an entity contains entries with these
// relations and texts.
func checkReport(t *testing.T, e bulkEntity, want ...[2]string) {
	t.Helper()
	for _, w := range want {
		found := false
		for _, f := range e.Failures {
			found = found || f.Relation == w[0] && strings.Contains(f.Title+" "+f.Message, w[1])
		}
		if !found {
			t.Errorf("the report of %s has no entry %q: %+v", e.Source, w, e.Failures)
		}
	}
}

// TestBulkImportOdd imports a group and a project with objects that are not allowed
// on this instance or that the source does not show. They are reported, and the rest
// is imported.
func TestBulkImportOdd(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		allowImports(t, s)
		top := group(t, s, alice, "top", "")
		sub := group(t, s, alice, "sub", fmt.Sprintf(`,"parent_id":%d`, top))
		below := group(t, s, alice, "below", fmt.Sprintf(`,"parent_id":%d`, sub))
		fine := group(t, s, alice, "zfine", fmt.Sprintf(`,"parent_id":%d`, top))
		var made struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"name":"app","namespace_id":%d,"initialize_with_readme":true}`, top), Status: 201}).JSON(t, &made)
		at := fmt.Sprintf("/projects/%d", made.ID)
		group(t, s, alice, "pub", `,"visibility":"public"`)
		calls := []apptest.Call{
			{Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"name":"off","namespace_id":%d,"repository_access_level":"disabled","merge_requests_access_level":"disabled","builds_access_level":"disabled"}`, top), Status: 201},
			{Do: "POST /projects/top%2Foff/issues", As: alice, JSON: `{"title":"Only an issue"}`, Status: 201},
			{Do: "POST " + at + "/repository/commits", As: alice, JSON: `{"branch":"topic","start_branch":"main","commit_message":"m","actions":[{"action":"create","file_path":"b","content":"b\n"}]}`, Status: 201},
			{Do: "POST " + at + "/merge_requests", As: alice, JSON: `{"title":"A change","source_branch":"topic","target_branch":"main"}`, Status: 201},
		}
		s.Table(t, calls)
		settled(t, s)
		issue := func(iid int, fields string) string {
			return fmt.Sprintf(`{"iid":%d,"project_id":%d,"state":"opened","created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:05Z"%s}`, iid, made.ID, fields)
		}
		note := func(id int, body string) string {
			return fmt.Sprintf(`{"id":%d,"body":%q,"created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:05Z","author":{"id":4711,"username":"stranger","name":"A Stranger"}}`, id, body)
		}
		source := oddSource(t, s, map[string]http.HandlerFunc{
			fmt.Sprintf("/groups/%d/members", top):           answer(`[{"id":77,"username":"eve","access_level":30,"expires_at":"2026-99-99","created_at":"2026-01-02T03:04:05Z"}]`),
			fmt.Sprintf("/groups/%d/descendant_groups", top): answer(fmt.Sprintf(`[{"id":%d,"name":"Sub","full_path":"top/sub.atom"},{"id":%d,"name":"Below","full_path":"top/sub.atom/below"},{"id":%d,"name":"Fine","full_path":"top/zfine"}]`, sub, below, fine)),
			at + "/labels": answer(`[{"name":"good","color":"#ff0000"},{"name":"one, two","color":"#ff0000"},{"name":"bad color","color":"red-ish"},{"name":"good ","color":"#00ff00"}]`),
			at + "/issues": answer(`[` + strings.Join([]string{
				issue(1, `,"title":"Fine","labels":["good"],"author":{"id":4711,"username":"stranger","name":"A Stranger"}`),
				issue(2, fmt.Sprintf(`,"title":%q`, strings.Repeat("long ", 100))),
				issue(3, `,"title":"Secret comments"`),
				issue(4, `,"title":"Missing comments"`),
				issue(5, fmt.Sprintf(`,"title":"Huge","description":%q`, strings.Repeat("a", 9<<20))),
				fmt.Sprintf(`{"iid":6,"project_id":%d,"title":"At the end of time","state":"opened","created_at":"9999-12-31T23:59:59-12:00"}`, made.ID),
				issue(7, `,"title":"An odd answer"`),
			}, ",") + `]`),
			at + "/issues/1/discussions":                   answer(`[{"id":"a1","notes":[` + note(1, "A comment") + `,` + note(2, strings.Repeat("b", 2<<20)) + `]}]`),
			at + "/issues/3/discussions":                   refuse(http.StatusForbidden),
			at + "/issues/4/discussions":                   refuse(http.StatusNotFound),
			at + "/issues/7/award_emoji":                   answer(`{"message":"this is not a list"}`),
			at + "/issues/7/resource_weight_events":        refuse(http.StatusNotFound), // as sources of older versions
			at + "/merge_requests/1/approvals":             answer(`["this is not an object"]`),
			at + "/merge_requests/1/resource_label_events": refuse(http.StatusForbidden),
		})
		id := bulkImport(t, s, alice, source, alice, map[string]any{"source_type": "group_entity", "source_full_path": "top", "destination_slug": "copy", "destination_namespace": ""})
		list := bulkEnded(t, s, alice, id, "finished")
		if len(list) != 3 || list[0].Status != "finished" || list[1].Status != "finished" || list[2].Status != "finished" {
			t.Fatalf("the entities are %+v", list)
		}
		checkReport(t, list[2], [2]string{"repository", "disabled at the source"})
		s.Check(t, apptest.Call{Do: "GET /projects/copy%2Foff/issues", As: alice, Status: 200, Want: `[{"title":"Only an issue"}]`})
		// A private group stays private in a public one.
		below = bulkImport(t, s, alice, s.URL, alice, map[string]any{"source_type": "group_entity", "source_full_path": "top/zfine", "destination_slug": "fine", "destination_namespace": "pub"})
		bulkEnded(t, s, alice, below, "finished")
		s.Check(t, apptest.Call{Do: "GET /groups/pub%2Ffine", As: alice, Status: 200, Want: `{"visibility":"private"}`})
		mixed := group(t, s, alice, "mixed", `,"visibility":"public"`)
		group(t, s, alice, "secret", fmt.Sprintf(`,"parent_id":%d,"visibility":"private"`, mixed))
		below = bulkImport(t, s, alice, s.URL, alice, map[string]any{"source_type": "group_entity", "source_full_path": "mixed", "destination_slug": "mixed", "destination_namespace": "pub"})
		bulkEnded(t, s, alice, below, "finished")
		s.Check(t, apptest.Call{Do: "GET /groups/pub%2Fmixed%2Fsecret", As: alice, Status: 200, Want: `{"visibility":"private"}`})
		checkReport(t, list[0], [2]string{"groups", "sub.atom"}, [2]string{"groups", "sub.atom/below"}, [2]string{"member", "eve"})
		checkReport(t, list[1], [2]string{"labels", "one, two"}, [2]string{"labels", "bad color"}, [2]string{"labels", "good"},
			[2]string{"issues", "#2 long"}, [2]string{"issues", "Huge It has more than 8 MiB"}, [2]string{"notes", "Secret comments The access token has no permission for this (HTTP 403)"},
			[2]string{"notes", "Missing comments The source does not have this, or not for this access token (HTTP 404)"}, [2]string{"notes", "a note on #1"},
			[2]string{"award_emoji", "An odd answer"}, [2]string{"approvals", "A change"}, [2]string{"resource_events", "A change"})
		for _, f := range list[1].Failures {
			if f.Relation == "resource_events" && strings.Contains(f.Title, "An odd answer") {
				t.Errorf("a list that the source does not have is reported: %+v", f)
			}
		}
		s.Table(t, []apptest.Call{
			{Do: "GET /groups/copy%2Fzfine", As: alice, Status: 200},
			{Do: "GET /groups/copy%2Fsub.atom", As: alice, Status: 404},
			{Do: "GET /projects/copy%2Fapp/labels", As: alice, Status: 200, Want: `[{"name":"good","color":"#ff0000"}]`},
			{Do: "GET /projects/copy%2Fapp/issues?sort=asc", As: alice, Status: 200, Want: `[{"iid":1,"title":"Fine","labels":["good"],"author":{"username":"ghost"}},{"iid":3},{"iid":4},{"iid":7},{"iid":6,"title":"At the end of time"}]`},
			{Do: "GET /projects/copy%2Fapp/merge_requests", As: alice, Status: 200, Want: `[{"iid":1,"title":"A change"}]`},
		})
		notes := s.Send(t, apptest.Call{Do: "GET /projects/copy%2Fapp/issues/1/notes", As: alice})
		if !strings.Contains(string(notes.Body), `A comment"`) || strings.Contains(string(notes.Body), "bbb") {
			t.Errorf("the notes are %.1000s", notes.Body)
		}
	})
}

// TestBulkImportEndless imports from a source with more objects than allowed.
func TestBulkImportEndless(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.Transfer.Limits.Names = 30
		_, alice := s.User(t, "alice")
		allowImports(t, s)
		var made struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"name":"from","initialize_with_readme":true}`, Status: 201}).JSON(t, &made)
		at := fmt.Sprintf("/projects/%d", made.ID)
		hundred := func(item string) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				var items []string
				for n := range 100 {
					items = append(items, strings.ReplaceAll(item, "NUMBER", fmt.Sprint(n+1)))
				}
				_, _ = io.WriteString(w, "["+strings.Join(items, ",")+"]")
			}
		}
		source := oddSource(t, s, map[string]http.HandlerFunc{
			at + "/labels":         hundred(`{"name":"label NUMBER","color":"#ff0000"}`),
			at + "/milestones":     hundred(`{"iid":NUMBER,"title":"m NUMBER","state":"active"}`),
			at + "/protected_tags": hundred(`{"name":"v-NUMBER","create_access_levels":[{"access_level":40}]}`),
			at + "/releases":       hundred(`{"tag_name":"v-NUMBER","name":"x"}`),
			at + "/variables":      hundred(`{"key":"KEY_NUMBER"}`),
			at + "/issues":         hundred(fmt.Sprintf(`{"iid":NUMBER,"project_id":%d,"title":"issue NUMBER","state":"opened","author":{"id":100NUMBER,"username":"user-NUMBER"}}`, made.ID)),
		})
		id := bulkImport(t, s, alice, source, alice, map[string]any{"source_type": "project_entity", "source_full_path": "alice/from", "destination_slug": "copy", "destination_namespace": "alice"})
		list := bulkEnded(t, s, alice, id, "finished")
		for _, relation := range []string{"labels", "milestones", "protected_tags", "releases"} {
			checkReport(t, list[0], [2]string{relation, "more than 30"})
			if n := list[0].Stats[relation]; n.Source != 100 || n.Fetched != 30 {
				t.Errorf("%s: %+v", relation, n)
			}
		}
		checkReport(t, list[0], [2]string{"users", "names more than 30 users"})
		// The entity has the first failures and their number; the list of failures
		// is paginated.
		entity := fmt.Sprintf("/bulk_imports/%d/entities", id)
		var one struct {
			Failures []any
			Count    int `json:"failures_count"`
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET %s/%d", entity, list[0].ID), As: alice, Status: 200}).JSON(t, &one)
		if len(one.Failures) != 100 || one.Count <= 100 {
			t.Errorf("the entity has %d of %d entries", len(one.Failures), one.Count)
		}
		var many []struct{ Failures []any }
		s.Check(t, apptest.Call{Do: "GET " + entity, As: alice, Status: 200}).JSON(t, &many)
		if len(many[0].Failures) != 20 {
			t.Errorf("the list has %d entries of an entity", len(many[0].Failures))
		}
		seen := map[string]bool{}
		for page := 1; ; page++ {
			var entries []map[string]any
			a := s.Check(t, apptest.Call{Do: fmt.Sprintf("GET %s/%d/failures?per_page=50&page=%d", entity, list[0].ID, page), As: alice, Status: 200})
			a.JSON(t, &entries)
			for _, e := range entries {
				seen[fmt.Sprint(e)] = true
			}
			if len(entries) < 50 {
				break
			}
		}
		if len(seen) != one.Count {
			t.Errorf("the pages have %d of %d entries", len(seen), one.Count)
		}
		s.Check(t, apptest.Call{Do: "GET /projects/alice%2Fcopy/issues_statistics", As: alice, Status: 200, Want: `{"statistics":{"counts":{"all":100}}}`})
	})
}

// TestBulkImportsShareWorkers starts as many imports of one user as there are
// workers, from sources that do not respond or do not send LFS objects, and checks
// that the import of another user does not wait for them. Export files do not wait for
// LFS objects at all, and the connections of canceled imports are closed.
func TestBulkImportsShareWorkers(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		_, carol := s.User(t, "carol")
		allowImports(t, s)
		s.Transfer.Limits.Stall = time.Hour
		pointer, _ := putLFS(t, s, bob, "bob", "some large content")
		s.Check(t, apptest.Call{Do: "POST /projects/bob%2Fsource/repository/files/a.bin", As: bob, Status: 201, JSON: `{"branch":"main","commit_message":"m","content":` + pointer + `}`})
		over := make(chan struct{})
		var open atomic.Int64
		silent := func(_ http.ResponseWriter, r *http.Request) {
			open.Add(1)
			defer open.Add(-1)
			_, _ = io.Copy(io.Discard, r.Body) // else the end of the connection is not noticed
			select {
			case <-over:
			case <-r.Context().Done():
			}
		}
		source := oddSource(t, s, map[string]http.HandlerFunc{"/projects/silent/p": silent, "/bob/source.git/info/lfs/objects/batch": silent})
		t.Cleanup(func() { close(over) })
		start := func(as, url, from, to string, n int) int64 {
			t.Helper()
			var entities []map[string]any
			for i := range n {
				entities = append(entities, map[string]any{"source_type": "project_entity", "source_full_path": from, "destination_slug": fmt.Sprintf("%s-%d", strings.ReplaceAll(from, "/", "-"), i), "destination_namespace": to})
			}
			return bulkImport(t, s, as, url, bob, entities...)
		}
		importing := func(as string, id int64) (n int) {
			t.Helper()
			var list []struct{ Phase string }
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /bulk_imports/%d/entities", id), As: as, Status: 200}).JSON(t, &list)
			for _, e := range list {
				if e.Phase == "importing" {
					n++
				}
			}
			return n
		}
		started := func(id int64) (n int) {
			t.Helper()
			var list []bulkEntity
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /bulk_imports/%d/entities?status=started", id), As: alice, Status: 200}).JSON(t, &list)
			return len(list)
		}
		stuck := start(alice, source, "silent/p", "alice", 6)
		waittest.For(t, "two imports of alice to start", func() bool { return started(stuck) == 2 })
		bulkEnded(t, s, bob, start(bob, s.URL, "bob/source", "bob", 1), "finished")
		if n := started(stuck); n != 2 {
			t.Errorf("%d imports of alice are under way, want 2", n)
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /bulk_imports/%d/cancel", stuck), As: alice, Status: 200, Want: `{"status":"canceled"}`})

		stuck = start(alice, source, "bob/source", "alice", 6)
		waittest.For(t, "the files of alice to be made", func() bool { return importing(alice, stuck) == 6 })
		var fine struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: bob, JSON: `{"name":"fine","initialize_with_readme":true}`, Status: 201}).JSON(t, &fine)
		bulkEnded(t, s, bob, start(bob, s.URL, "bob/fine", "bob", 1), "finished")
		more := start(carol, source, "bob/source", "carol", 2)
		waittest.For(t, "all imports that fetch LFS objects to wait", func() bool { return importing(carol, more) == 2 && open.Load() == 4 })
		s.Check(t, apptest.Call{Do: "POST /projects/bob%2Ffine/export", As: bob, Status: 202})
		waittest.For(t, "the export to end", func() bool {
			var now struct {
				Status string `json:"export_status"`
			}
			s.Check(t, apptest.Call{Do: "GET /projects/bob%2Ffine/export", As: bob, Status: 200}).JSON(t, &now)
			return now.Status == "finished"
		})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /bulk_imports/%d/cancel", more), As: carol, Status: 200, Want: `{"status":"canceled"}`})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /bulk_imports/%d/cancel", stuck), As: alice, Status: 200, Want: `{"status":"canceled"}`})
		waittest.For(t, "the connections to be closed", func() bool { return open.Load() == 0 })
		s.Check(t, apptest.Call{Name: "nothing is left of them", Do: "GET /projects?owned=true", As: alice, Status: 200, Want: `[]`})
	})
}
