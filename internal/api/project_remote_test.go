package api_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/blob"
	"svc/internal/blob/blobtest"
	"svc/internal/git/gittest"
	"svc/internal/transfer"
	"svc/internal/waittest"
)

// smallExport returns the export file of a new project with an issue.
func smallExport(t *testing.T, s *apptest.Server, as string) []byte {
	t.Helper()
	var made struct{ ID int64 }
	s.Check(t, apptest.Call{Do: "POST /projects", As: as, JSON: `{"name":"Small"}`, Status: 201}).JSON(t, &made)
	s.Repository(t, made.ID, gittest.Commit{Changes: []gittest.Change{{Path: "README.md", Content: "# Small\n"}}})
	s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/issues", made.ID), As: as, JSON: `{"title":"First"}`, Status: 201})
	return exportedProject(t, s, as, fmt.Sprint(made.ID))
}

// remoteImport starts an import from a URL and returns the ID of the project.
func remoteImport(t *testing.T, s *apptest.Server, as, path, from string) int64 {
	t.Helper()
	var made struct{ ID int64 }
	s.Check(t, apptest.Call{
		Do: "POST /projects/remote-import", As: as, Form: url.Values{"path": {path}, "url": {from}, "override_params[description]": {"From elsewhere"}}, Status: 201,
		Want: fmt.Sprintf(`{"path":%q,"import_status":"scheduled","import_type":"gitlab_project","import_error":null,"failed_relations":[]}`, path),
	}).JSON(t, &made)
	return made.ID
}

type remoteState struct {
	Status string `json:"import_status"`
	Error  string `json:"import_error"`
}

// remoteEnded makes all attempts of an import from a URL, and returns how it ended.
func remoteEnded(t *testing.T, s *apptest.Server, as string, id int64) (state remoteState) {
	t.Helper()
	i, err := s.Transfer.ProjectImportOf(t.Context(), actor.Actor{ID: 1, Admin: true}, id)
	if err != nil {
		t.Fatal(err)
	}
	waittest.For(t, "the import to end", func() bool {
		settled(t, s)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/import", id), As: as, Status: 200}).JSON(t, &state)
		if state.Status == "finished" || state.Status == "failed" {
			return true
		}
		_ = s.Transfer.RunRemoteImport(t.Context(), transfer.RemoteImportWork{ImportID: i.ID}) // the next attempt is due later
		return false
	})
	return state
}

// sealedRows returns the stored secrets of imports and exports.
func sealedRows(t *testing.T, s *apptest.Server) (found string) {
	t.Helper()
	for _, query := range []string{`SELECT source FROM project_file_imports`, `SELECT upload FROM project_exports`} {
		rows, err := s.DB.QueryContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				t.Fatal(err)
			}
			found += text
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// importFiles returns the number of stored files of imports.
func importFiles(t *testing.T, s *apptest.Server) (n int) {
	t.Helper()
	for _, err := range s.Blobs.List(t.Context(), "transfer/imports/") {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func TestRemoteImport(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		file := smallExport(t, s, alice)
		allowImports(t, s)
		var mu sync.Mutex
		broken := 2 // the first answers of /broken
		served := func(w http.ResponseWriter, kind string, size int64, body []byte) {
			w.Header().Set("Content-Type", kind)
			if size >= 0 {
				w.Header().Set("Content-Length", fmt.Sprint(size))
			}
			w.WriteHeader(200)
			_, _ = w.Write(body)
			_ = http.NewResponseController(w).Flush()
		}
		source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			size := int64(len(file))
			switch r.URL.Path {
			case "/good":
				if r.URL.Query().Get("token") != "hunter2token" {
					w.WriteHeader(403)
					return
				}
				served(w, "application/gzip", size, file)
			case "/broken":
				mu.Lock()
				broken--
				now := broken >= 0
				mu.Unlock()
				if now {
					served(w, "application/gzip", size, file[:len(file)/2])
					return
				}
				served(w, "application/x-gzip", size, file)
			case "/short":
				served(w, "application/gzip", size, file[:len(file)/2])
			case "/type":
				served(w, "text/html; charset=utf-8", size, file)
			case "/endless":
				w.Header().Set("Content-Type", "application/gzip")
				_ = http.NewResponseController(w).Flush()
				_, _ = io.Copy(w, rand.Reader)
			case "/large":
				served(w, "application/gzip", 11<<30, file)
			case "/two":
				served(w, "application/gzip", 2<<20, bytes.Repeat([]byte("x"), 2<<20))
			case "/none":
				served(w, "application/gzip", 0, nil)
			case "/text":
				served(w, "application/gzip", 4, []byte("text"))
			case "/moved":
				http.Redirect(w, r, "/good?token=hunter2token", http.StatusFound)
			case "/down":
				w.WriteHeader(503)
			default:
				w.WriteHeader(404)
			}
		}))
		t.Cleanup(source.Close)

		id := remoteImport(t, s, alice, "good", source.URL+"/good?token=hunter2token")
		settled(t, s)
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("GET /projects/%d/import", id), As: alice, Status: 200, Want: `{"import_status":"finished","path_with_namespace":"alice/good"}`},
			{Do: fmt.Sprintf("GET /projects/%d", id), As: alice, Status: 200, Want: `{"description":"From elsewhere","visibility":"private"}`},
			{Do: fmt.Sprintf("GET /projects/%d/issues", id), As: alice, Status: 200, Want: `[{"title":"First"}]`},
			{Do: fmt.Sprintf("GET /projects/%d/repository/files/README.md?ref=main", id), As: alice, Status: 200},
			{Do: "GET /audit_events?entity_type=User&per_page=1", As: apptest.RootToken, Status: 200, Want: fmt.Sprintf(
				`[{"event_type":"project_import_created","details":{"custom_message":"Project import from %s started","target_details":"alice/good"}}]`, strings.TrimPrefix(source.URL, "http://"))},
		})
		if state := remoteEnded(t, s, alice, remoteImport(t, s, alice, "broken", source.URL+"/broken")); state.Status != "finished" {
			t.Errorf("after broken connections: %+v", state)
		}
		for path, want := range map[string]string{
			"short": "closed the connection before the file was complete", "type": "Content-Type", "endless": "Content-Length", "large": "more than 10240 MiB", "none": "empty",
			"text": "not compressed with gzip", "moved": "redirects to another address (HTTP 302)", "down": "HTTP 503", "absent": "HTTP 404", "good?token=wrong": "HTTP 403",
		} {
			name, _, _ := strings.Cut(path, "?")
			state := remoteEnded(t, s, alice, remoteImport(t, s, alice, "x"+name, source.URL+"/"+path))
			if state.Status != "failed" || !strings.Contains(state.Error, want) || strings.Contains(state.Error, "127.0.0.1") {
				t.Errorf("%s: %+v, want %s", path, state, want)
			}
			s.Check(t, apptest.Call{Do: "GET /projects/alice%2Fx" + name, As: alice, Status: 404})
		}
		if n := importFiles(t, s); n != 0 {
			t.Errorf("%d files are left", n)
		}
		if left := sealedRows(t, s); left != "" {
			t.Errorf("secrets are left: %s", left)
		}
		if strings.Contains(s.Log(), "hunter2token") {
			t.Error("a secret is in the log")
		}

		at := source.URL + "/good"
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"max_import_size":1}`})
		if state := remoteEnded(t, s, alice, remoteImport(t, s, alice, "two", source.URL+"/two")); !strings.Contains(state.Error, "more than 1 MiB") {
			t.Errorf("above the limit of the instance: %+v", state)
		}
		var team struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /groups", As: apptest.RootToken, JSON: `{"name":"team","path":"team","visibility":"public","project_creation_level":"maintainer"}`, Status: 201}).JSON(t, &team)
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("POST /groups/%d/members", team.ID), As: apptest.RootToken, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, bobID), Status: 201},
			{Name: "a Developer", Do: "POST /projects/remote-import", As: bob, Form: url.Values{"path": {"y"}, "url": {at}, "namespace": {"team"}}, Status: 403},
			{Do: "POST /projects/remote-import", Form: url.Values{"path": {"y"}, "url": {at}}, Status: 401},
			{Do: "POST /projects/remote-import", As: alice, Form: url.Values{"path": {"y"}}, Status: 400, Want: `{"error":"url is missing"}`},
			{Do: "POST /projects/remote-import", As: alice, Form: url.Values{"url": {at}}, Status: 400, Want: `{"error":"path is missing"}`},
			{Do: "POST /projects/remote-import", As: alice, Form: url.Values{"path": {"good"}, "url": {at}}, Status: 400},
			{Do: "POST /projects/remote-import", As: alice, Form: url.Values{"path": {"y"}, "url": {at}, "overwrite": {"true"}}, Status: 400},
			{Do: "POST /projects/remote-import", As: alice, Form: url.Values{"path": {"y"}, "url": {at}, "override_params[nothing]": {"x"}}, Status: 400},
			{Do: "POST /projects/remote-import", As: alice, Form: url.Values{"path": {"y"}, "url": {at}, "namespace": {"bob"}}, Status: 404},
			{Do: "POST /projects/remote-import", As: bob, Form: url.Values{"path": {"y"}, "url": {"ftp://example.org/x"}}, Status: 400, Want: `{"message":{"url":["must be a URL that starts with http:// or https://"]}}`},
			{Do: "POST /projects/remote-import", As: bob, Form: url.Values{"path": {"y"}, "url": {"file:///etc/passwd"}}, Status: 400},
			{Do: "POST /projects/remote-import", As: bob, Form: url.Values{"path": {"y"}, "url": {"http://example.org/a b"}}, Status: 400},
			{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"allow_local_requests_from_web_hooks_and_services":false,"max_import_size":0}`},
			{Do: "POST /projects/remote-import", As: bob, Form: url.Values{"path": {"y"}, "url": {at}}, Status: 400, Want: `{"message":{"url":["is blocked: requests to the local network are not allowed"]}}`},
			{Do: "POST /projects/remote-import", As: bob, Form: url.Values{"path": {"y"}, "url": {"http://localhost/x"}}, Status: 400},
			{Do: "POST /projects/remote-import", As: bob, Form: url.Values{"path": {"y"}, "url": {"http://[::ffff:169.254.169.254]/x"}}, Status: 400},
		})
	})
}

// TestRemoteImportSlow imports from servers that stop sending, and cancels an import
// that waits for one.
func TestRemoteImportSlow(t *testing.T) {
	t.Parallel()
	apptest.EachWith(t, apptest.Options{RemoteStall: time.Second}, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		allowImports(t, s)
		waiting := make(chan struct{}, 100)
		source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/body" {
				w.Header().Set("Content-Type", "application/gzip")
				w.Header().Set("Content-Length", "1000")
				_, _ = w.Write([]byte("x"))
				_ = http.NewResponseController(w).Flush()
			}
			waiting <- struct{}{}
			<-r.Context().Done()
		}))
		t.Cleanup(source.Close)
		for _, path := range []string{"body", "header"} {
			state := remoteEnded(t, s, alice, remoteImport(t, s, alice, path, source.URL+"/"+path))
			if state.Status != "failed" || !strings.Contains(state.Error, "stopped sending data") {
				t.Errorf("%s: %+v", path, state)
			}
		}
		for len(waiting) > 0 {
			<-waiting
		}
		id := remoteImport(t, s, alice, "canceled", source.URL+"/body")
		<-waiting
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/import", id), As: alice, Status: 200, Want: `{"import_status":"started","progress":{"phase":"fetching","percent":0}}`})
		if left := sealedRows(t, s); left == "" || strings.Contains(left, "127.0.0.1") {
			t.Errorf("the URL is stored as %q", left)
		}
		admin := actor.Actor{ID: 1, Admin: true}
		i, err := s.Transfer.ProjectImportOf(t.Context(), admin, id)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Transfer.CancelProjectImport(t.Context(), admin, i.ID); err != nil {
			t.Fatal(err)
		}
		if state := remoteEnded(t, s, alice, id); state.Error != "The import was canceled." {
			t.Errorf("canceled: %+v", state)
		}
		if n, left := importFiles(t, s), sealedRows(t, s); n != 0 || left != "" {
			t.Errorf("%d files and %q are left", n, left)
		}
	})
}

func TestRemoteImportS3(t *testing.T) {
	t.Parallel()
	address := blobtest.S3(t)
	store, err := blob.Open(t.Context(), address, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	has := u.Query()
	prefix := has.Get("prefix")
	if prefix != "" {
		prefix += "/"
	}
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.Transfer.S3Endpoint = has.Get("endpoint")
		_, alice := s.User(t, "alice")
		file := smallExport(t, s, alice)
		key := "remote/" + s.URL[strings.LastIndex(s.URL, ":")+1:] + "/export.tar.gz"
		if _, err := store.Put(context.WithoutCancel(t.Context()), key, bytes.NewReader(file), blob.Options{}); err != nil {
			t.Fatal(err)
		}
		with := func(path string, changes ...string) url.Values {
			v := url.Values{"path": {path}, "region": {"us-east-1"}, "bucket_name": {u.Host}, "file_key": {prefix + key}, "access_key_id": {has.Get("access_key")}, "secret_access_key": {has.Get("secret_key")}}
			for n := 0; n < len(changes); n += 2 {
				v.Set(changes[n], changes[n+1])
			}
			return v
		}
		start := func(form url.Values) int64 {
			var made struct{ ID int64 }
			s.Check(t, apptest.Call{Do: "POST /projects/remote-import-s3", As: alice, Form: form, Status: 201, Want: `{"import_status":"scheduled","import_error":null}`}).JSON(t, &made)
			return made.ID
		}
		if state := remoteEnded(t, s, alice, start(with("blocked"))); state.Status != "failed" || !strings.Contains(state.Error, "local network") {
			t.Errorf("a server in the local network: %+v", state)
		}
		allowImports(t, s)
		id := start(with("good", "name", "Good one"))
		if state := remoteEnded(t, s, alice, id); state.Status != "finished" {
			t.Errorf("%+v", state)
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d", id), As: alice, Status: 200, Want: `{"name":"Good one","path_with_namespace":"alice/good"}`})
		for path, c := range map[string]struct{ name, value, want string }{
			"key": {"file_key", "none.tar.gz", "no such file"}, "bucket": {"bucket_name", "none-such-bucket", "no such bucket"}, "secret": {"secret_access_key", "hunter2secret", "refused the access key"},
			"id": {"access_key_id", "nobody", "or not for this access key"},
		} {
			if state := remoteEnded(t, s, alice, start(with("x"+path, c.name, c.value))); state.Status != "failed" || !strings.Contains(state.Error, c.want) {
				t.Errorf("%s: %+v, want %s", path, state, c.want)
			}
		}
		for _, c := range [][2]string{
			{"region", "x.example.org/"}, {"region", "a#"}, {"region", ""}, {"bucket_name", "a/b"}, {"bucket_name", "A"}, {"bucket_name", "a..b"}, {"bucket_name", "x@y"}, {"file_key", ""}, {"file_key", "a\nb"},
			{"file_key", strings.Repeat("k", 1025)}, {"access_key_id", "a b"}, {"secret_access_key", "a\tb"},
		} {
			s.Check(t, apptest.Call{Do: "POST /projects/remote-import-s3", As: alice, Form: with("y", c[0], c[1]), Status: 400})
		}
		s.Check(t, apptest.Call{Do: "POST /projects/remote-import-s3", Form: with("y"), Status: 401})
		for _, secret := range []string{"hunter2secret", has.Get("secret_key")} {
			if strings.Contains(s.Log(), secret) {
				t.Error("a secret is in the log")
			}
		}
		if n, left := importFiles(t, s), sealedRows(t, s); n != 0 || left != "" {
			t.Errorf("%d files and %q are left", n, left)
		}
	})
}

func TestExportUpload(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		var mu sync.Mutex
		got := map[string][]byte{}
		requests := map[string]int{}
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			defer mu.Unlock()
			requests[r.URL.Path]++
			switch {
			case r.URL.Path == "/denied":
				w.WriteHeader(403)
			case r.URL.Path == "/moved":
				http.Redirect(w, r, "/stolen", http.StatusTemporaryRedirect)
			case r.URL.Path == "/down", r.URL.Path == "/weak" && requests["/weak"] < 3:
				w.WriteHeader(503)
			default:
				if r.Header.Get("Content-Type") != "application/gzip" || r.ContentLength != int64(len(body)) {
					w.WriteHeader(400)
					return
				}
				got[r.Method+" "+r.URL.String()] = body
			}
		}))
		t.Cleanup(receiver.Close)
		var made struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"name":"app","initialize_with_readme":true,"visibility":"public"}`, Status: 201}).JSON(t, &made)
		at := fmt.Sprintf("/projects/%d/export", made.ID)
		ended := func(want string) (state struct {
			Status string  `json:"export_status"`
			Error  *string `json:"error"`
		}) {
			t.Helper()
			waittest.For(t, "the export to end", func() bool {
				settled(t, s)
				s.Check(t, apptest.Call{Do: "GET " + at, As: alice, Status: 200}).JSON(t, &state)
				if state.Status == want {
					return true
				}
				all, err := s.Transfer.ProjectExports(t.Context(), actor.Actor{ID: 1, Admin: true}, "alice/app")
				if err != nil {
					t.Fatal(err)
				}
				_ = s.Transfer.RunProjectUpload(t.Context(), transfer.ProjectUploadWork{ExportID: all.Last.ID}) // the next attempt is due later
				return false
			})
			return state
		}
		blocked := `{"message":{"upload[url]":["is blocked: requests to the local network are not allowed"]}}`
		s.Table(t, []apptest.Call{
			{Do: "POST " + at, As: alice, JSON: fmt.Sprintf(`{"upload":{"url":%q}}`, receiver.URL), Status: 400, Want: blocked},
			{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"allow_local_requests_from_web_hooks_and_services":true}`},
			{Do: "POST " + at, As: alice, JSON: `{"upload":{"http_method":"PUT"}}`, Status: 400},
			{Do: "POST " + at, As: alice, JSON: `{"upload":{"url":"ftp://example.org/x"}}`, Status: 400},
			{Do: "POST " + at, As: alice, JSON: fmt.Sprintf(`{"upload":{"url":%q,"http_method":"DELETE"}}`, receiver.URL), Status: 400},
			{Do: "POST " + at, As: bob, JSON: fmt.Sprintf(`{"upload":{"url":%q}}`, receiver.URL), Status: 403},
			{Do: "POST " + at, JSON: fmt.Sprintf(`{"upload":{"url":%q}}`, receiver.URL), Status: 401},
			{Do: "POST " + at, As: alice, Form: url.Values{"upload[url]": {receiver.URL + "/put?sig=hunter2sig"}}, Status: 202, Want: `{"message":"202 Accepted"}`},
		})
		ended("finished")
		s.Check(t, apptest.Call{Do: "POST " + at, As: alice, JSON: fmt.Sprintf(`{"upload":{"url":%q,"http_method":"POST"}}`, receiver.URL+"/weak"), Status: 202})
		ended("finished")
		file := s.Check(t, apptest.Call{Do: "GET " + at + "/download", As: alice, Status: 200}).Body
		mu.Lock()
		if n := requests["/weak"]; n < 3 {
			t.Errorf("%d attempts", n)
		}
		if !bytes.Equal(got["POST /weak"], file) || len(got["PUT /put?sig=hunter2sig"]) == 0 {
			t.Error("the file was not uploaded")
		}
		mu.Unlock()
		for path, want := range map[string]string{"/denied": "HTTP 403", "/moved": "HTTP 307", "/down": "HTTP 503"} {
			s.Check(t, apptest.Call{Do: "POST " + at, As: alice, JSON: fmt.Sprintf(`{"upload":{"url":%q}}`, receiver.URL+path), Status: 202})
			if state := ended("failed"); state.Error == nil || !strings.Contains(*state.Error, want) || !strings.HasPrefix(*state.Error, "The file could not be uploaded. ") {
				t.Errorf("%s: %v", path, state)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if requests["/down"] < 5 || requests["/denied"] != 1 || requests["/stolen"] != 0 {
			t.Errorf("the requests are %v", requests)
		}
		if left := sealedRows(t, s); left != "" {
			t.Errorf("secrets are left: %s", left)
		}
		if strings.Contains(s.Log(), "hunter2sig") {
			t.Error("a secret is in the log")
		}
	})
}
