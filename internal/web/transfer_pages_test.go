package web_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"svc/internal/app/apptest"
)

// upload submits a form whose last field is a file, if there is one.
func (b *browser) upload(t *testing.T, action, token, file string, pairs ...string) answer {
	t.Helper()
	name := "export.tar.gz"
	if file == "" {
		name = ""
	}
	return b.uploadAs(t, action, token, name, file, pairs...)
}

// uploadAs submits a form whose last field is a file with a name.
func (b *browser) uploadAs(t *testing.T, action, token, name, file string, pairs ...string) answer {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	_ = form.WriteField("authenticity_token", token)
	for i := 0; i < len(pairs); i += 2 {
		_ = form.WriteField(pairs[i], pairs[i+1])
	}
	w, err := form.CreateFormFile("file", name)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, file)
	_ = form.Close()
	r, err := http.NewRequestWithContext(t.Context(), "POST", b.s.URL+action, &body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	return b.send(r)
}

// TestTransferPages exports a group on pages and imports the file.
func TestTransferPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, token := s.User(t, "ada")
		s.User(t, "bob")
		s.Check(t, apptest.Call{Do: "POST /groups", As: token, JSON: `{"name":"G","path":"g","visibility":"public"}`, Status: 201})
		s.Check(t, apptest.Call{Do: "POST /groups/g/labels", As: token, JSON: `{"name":"bug","color":"red"}`, Status: 201})
		ada, bob, guest := newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("bob", password), newBrowser(t, s)
		const at, form, file = "/groups/g/-/settings/export", "/groups/new/import", "/groups/g/-/download_export"
		settle := func() {
			t.Helper()
			if err := s.Queue.Idle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		ada.get("/groups/g/-/settings/general").want(200, at)
		ada.get(at).want(200, "Export group").not("Download", "data-again")
		ada.get(file).want(404)
		bob.get(at).want(403)
		bob.get(file).want(403)
		guest.get(at).want(303)
		bob.post(at, nil).want(422)
		bob.submit("/groups/new", at).want(403)
		ada.submit(at, at).leads(at)
		settle()
		ada.get(at).want(200, "Download", ", expires ", "Export again")
		got := ada.get(file).want(200)
		if name := got.header.Get("Content-Disposition"); !regexp.MustCompile(`^attachment; filename=[0-9_-]+_g_export\.tar\.gz$`).MatchString(name) {
			t.Errorf("it is called %s", name)
		}
		bob.get(file).want(403)

		page := ada.get("/groups/new").want(200, form)
		guest.get(form).want(303)
		ada.get(form).want(200, `name="file"`, "No parent (top-level group)").not("Your imports")
		ada.upload(t, "/groups/import", "wrong", got.body, "name", "H", "path", "h").want(422, "The form has expired")
		ada.upload(t, "/groups/import", page.token(), "", "name", "H", "path", "h").want(422, "must be selected", `value="h"`)
		ada.upload(t, "/groups/import", page.token(), got.body, "name", "H", "path", "g").want(422, "has already been taken")
		ada.upload(t, "/groups/import", page.token(), got.body, "name", "H", "path", "h", "parent_id", "999999").want(422, "is not a namespace where you can do this")
		to := ada.upload(t, "/groups/import", page.token(), got.body, "name", "H <b>", "path", "h").want(422).body
		if !regexp.MustCompile(`can contain only`).MatchString(to) {
			t.Errorf("a bad name: %s", to)
		}
		to = ada.upload(t, "/groups/import", page.token(), got.body, "name", "H", "path", "h").want(303).header.Get("Location")
		bad := ada.upload(t, "/groups/import", page.token(), "no archive", "name", "I", "path", "i").want(303).header.Get("Location")
		settle()
		ada.get(to).want(200, "Finished", "1 label", "View group", "mapped only in imports by an administrator", `href="/h"`)
		ada.get(bad).want(200, "The group was not created", "not compressed with gzip")
		ada.get(form).want(200, "Your imports", to)
		ada.get("/h").want(200, "H")
		bob.get(to).want(404)
		guest.get(to).want(303)
		bob.get("/h").want(404)
	})
}

// TestProjectTransferPages exports a project on pages and imports the file.
func TestProjectTransferPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, token := s.User(t, "ada")
		s.User(t, "bob")
		s.Check(t, apptest.Call{Do: "POST /projects", As: token, JSON: `{"name":"p","visibility":"public"}`, Status: 201})
		s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/issues", As: token, JSON: `{"title":"One"}`, Status: 201})
		ada, bob, guest := newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("bob", password), newBrowser(t, s)
		const at, form, file = "/ada/p/-/settings/export", "/projects/new/import", "/ada/p/-/download_export"
		ada.get("/ada/p/-/settings/general").want(200, at)
		ada.get(at).want(200, "Export project").not("Download")
		ada.get(file).want(404)
		bob.get(at).want(403)
		bob.get(file).want(403)
		guest.get(at).want(303)
		ada.submit(at, at).leads(at)
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		ada.get(at).want(200, "Download", "Export again")
		got := ada.get(file).want(200)
		page := ada.get("/projects/new").want(200, form)
		guest.get(form).want(303)
		ada.get(form).want(200, `name="file"`, "Import project").not("Your imports")
		ada.upload(t, "/projects/import", page.token(), "", "name", "Q", "path", "q").want(422, "must be selected")
		ada.upload(t, "/projects/import", page.token(), got.body, "name", "Q", "path", "p").want(422, "has already been taken")
		to := ada.upload(t, "/projects/import", page.token(), got.body, "name", "Q", "path", "q").want(303).header.Get("Location")
		bad := ada.upload(t, "/projects/import", page.token(), "no archive", "name", "R", "path", "r").want(303).header.Get("Location")
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		ada.get(to).want(200, "Finished", "1 issue", "View project", "mapped only in imports by an administrator", `href="/ada/q"`)
		ada.get(bad).want(200, "The project was not created", "not compressed with gzip")
		ada.get(form).want(200, "Your imports", to)
		ada.get("/ada/q/-/issues/1").want(200, "One")
		bob.get(to).want(404)
		guest.get(to).want(303)
	})
}

// TestRemoteTransferPages uploads an export to a URL on pages, and imports it from there.
func TestRemoteTransferPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, token := s.User(t, "ada")
		s.Check(t, apptest.Call{Do: "POST /projects", As: token, JSON: `{"name":"p"}`, Status: 201})
		ada := newBrowser(t, s).signIn("ada", password)
		var mu sync.Mutex
		files := map[string][]byte{}
		elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if r.Method == "POST" {
				files[r.URL.Path], _ = io.ReadAll(r.Body)
				return
			}
			w.Header().Set("Content-Type", "application/gzip")
			w.Header().Set("Content-Length", strconv.Itoa(len(files[r.URL.Path])))
			_, _ = w.Write(files[r.URL.Path])
		}))
		t.Cleanup(elsewhere.Close)
		settle := func() {
			t.Helper()
			if err := s.Queue.Idle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		const at, form = "/ada/p/-/settings/export", "/projects/new/import"
		ada.get(at).want(200, "Export and upload")
		ada.submit(at, at, "url", elsewhere.URL+"/file", "http_method", "POST").leads(at)
		ada.get(at).want(200, "requests to the local network are not allowed").not("Download")
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, JSON: `{"allow_local_requests_from_web_hooks_and_services":true}`, Status: 200})
		ada.submit(at, at, "url", elsewhere.URL+"/file", "http_method", "POST").leads(at)
		settle()
		ada.get(at).want(200, "Download")
		page := ada.get(form).want(200, `name="url"`)
		ada.upload(t, "/projects/import", page.token(), "", "name", "Q", "path", "q", "url", "ftp://example.org").want(422, "must be a URL that starts with", `value="ftp://example.org"`)
		to := ada.upload(t, "/projects/import", page.token(), "", "name", "Q", "path", "q", "url", elsewhere.URL+"/file").want(303).header.Get("Location")
		bad := ada.upload(t, "/projects/import", page.token(), "", "name", "R", "path", "r", "url", elsewhere.URL+"/none").want(303).header.Get("Location")
		settle()
		ada.get(to).want(200, "Finished", "View project", `href="/ada/q"`)
		ada.get(bad).want(200, "The project was not created", "The file is empty")
	})
}

// TestBulkImportPages imports a group and a project from another server on pages.
func TestBulkImportPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, token := s.User(t, "ada")
		s.User(t, "bob")
		s.Table(t, []apptest.Call{
			{Do: "POST /groups", As: token, JSON: `{"name":"G","path":"g"}`, Status: 201},
			{Do: "POST /groups", As: token, JSON: `{"name":"H","path":"h"}`, Status: 201},
			{Do: "POST /projects", As: token, JSON: `{"name":"p"}`, Status: 201},
			{Do: "POST /projects/ada%2Fp/issues", As: token, JSON: `{"title":"One"}`, Status: 201},
			{Do: "POST /projects/ada%2Fp/variables", As: token, JSON: `{"key":"KEY","value":"sesame"}`, Status: 201},
		})
		ada, bob, guest := newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("bob", password), newBrowser(t, s)
		const at = "/-/bulk_imports"
		ada.get("/projects/new").want(200, at)
		ada.get("/groups/new").want(200, at)
		guest.get(at).want(303)
		ada.get(at).want(200, "Server URL", `type="password"`)
		ada.submit(at, at+"/source", "url", s.URL, "access_token", token).want(422, "requests to the local network are not allowed").not(token)
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, JSON: `{"allow_local_requests_from_web_hooks_and_services":true}`, Status: 200})
		ada.submit(at, at+"/source", "url", "x", "access_token", token).want(422, "must be a URL").not(token)
		ada.submit(at, at+"/source", "url", s.URL, "access_token", "wrong").want(422, "refused the access token")
		page := ada.submit(at, at+"/source", "url", s.URL, "access_token", token).want(200, `value="ada/p"`, `value="g"`, "Top level (groups only)").not(token)
		found := regexp.MustCompile(`name="source" value="([^"]+)"`).FindStringSubmatch(page.body)
		if found == nil {
			t.Fatalf("the form has no source: %s", page.body)
		}
		source := found[1]
		bob.submit(at, at, "source", source, "group", "g").want(422, "The form has expired")
		ada.submit(at, at, "source", source).want(422, "must be between 1 and")
		ada.submit(at, at, "source", source, "group", "g").want(422, "has already been taken")
		ada.submit(at, at, "source", source, "project", "ada/p", "destination_namespace", "bob").want(422, "is not a namespace where you can do this")
		to := ada.submit(at, at, "source", source, "project", "ada/p", "group", "g", "destination_namespace", "h", "projects", "1", "members", "1").want(303).header.Get("Location")
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		ada.get(to).want(200, "Finished", `href="/h/p"`, `href="/h/g"`, "KEY", "Values of variables are not carried over").not("sesame", "Cancel import", "data-again")
		ada.get(at).want(200, to)
		ada.get("/h/p/-/issues/1").want(200, "One")
		bob.get(to).want(404)
		guest.get(to).want(303)
		entity := to + "/entities/2" // the groups come first
		ada.get(entity).want(200, "Import of ada/p", "KEY", "Values of variables are not carried over", to)
		ada.get(entity + "?page=2").want(200).not("KEY")
		bob.get(entity).want(404)
		guest.get(entity).want(303)
		ada.get(to + "/entities/99").want(404)
		bob.submit(at, to+"/cancel").want(404)
		ada.submit(to, to+"/cancel").leads(to)
	})
}
