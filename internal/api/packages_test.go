package api_test

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/packages"
	"svc/internal/waittest"
)

// sendRaw sends a body without encoding it.
func sendRaw(t *testing.T, s *apptest.Server, do string, header map[string]string, body io.Reader) apptest.Answer {
	t.Helper()
	method, path, _ := strings.Cut(do, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/api/v4"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	return s.Exchange(t, r)
}

func private(token string) map[string]string { return map[string]string{"Private-Token": token} }

func basicAuth(user, password string) map[string]string {
	return map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))}
}

// wantRaw sends a body and checks the status.
func wantRaw(t *testing.T, s *apptest.Server, do string, header map[string]string, body string, status int) apptest.Answer {
	t.Helper()
	got := sendRaw(t, s, do, header, strings.NewReader(body))
	if got.Status != status {
		t.Errorf("%s: status %d, want %d: %s", do, got.Status, status, got.Body)
	}
	return got
}

// npmDocument returns the document that npm publish sends.
func npmDocument(name, version, tag, content string, manifest map[string]any) string {
	sum1, sum512 := sha1.Sum([]byte(content)), sha512.Sum512([]byte(content))
	m := map[string]any{"name": name, "version": version, "readme": strings.Repeat("long ", 100), "dist": map[string]any{
		"shasum": hex.EncodeToString(sum1[:]), "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum512[:]), "tarball": "http://elsewhere/x.tgz",
	}}
	for k, v := range manifest {
		m[k] = v
	}
	text, _ := json.Marshal(map[string]any{
		"_id": name, "name": name, "dist-tags": map[string]string{tag: version}, "versions": map[string]any{version: m}, "access": nil,
		"_attachments": map[string]any{name + "-" + version + ".tgz": map[string]any{
			"content_type": "application/octet-stream", "data": base64.StdEncoding.EncodeToString([]byte(content)), "length": len(content),
		}},
	})
	return string(text)
}

// pypiForm returns the form that twine sends, and its content type.
func pypiForm(t *testing.T, name, version, file, content string, more map[string]string) (string, string) {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	sum := sha256.Sum256([]byte(content))
	fields := map[string]string{":action": "file_upload", "protocol_version": "1", "name": name, "version": version, "sha256_digest": hex.EncodeToString(sum[:])}
	for k, v := range more {
		fields[k] = v
	}
	for k, v := range fields {
		if err := form.WriteField(k, v); err != nil {
			t.Fatal(err)
		}
	}
	part, err := form.CreateFormFile("content", file)
	if err == nil {
		_, err = part.Write([]byte(content))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	return body.String(), form.FormDataContentType()
}

func sendPyPI(t *testing.T, s *apptest.Server, at string, header map[string]string, name, version, file, content string, more map[string]string, status int) apptest.Answer {
	t.Helper()
	body, media := pypiForm(t, name, version, file, content, more)
	all := map[string]string{"Content-Type": media}
	for k, v := range header {
		all[k] = v
	}
	return wantRaw(t, s, "POST "+at+"/packages/pypi", all, body, status)
}

func TestGenericPackages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		g := group(t, s, alice, "tools", `,"visibility":"private"`)
		var p struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"path":"p","namespace_id":%d}`, g), Status: 201,
			Want: `{"packages_enabled":true,"package_registry_access_level":"enabled"}`}).JSON(t, &p)
		at := fmt.Sprintf("/projects/%d", p.ID)
		file := at + "/packages/generic/tool/1.0.0/tool.bin"
		wantRaw(t, s, "PUT "+file, private(alice), "first", 201)
		got := wantRaw(t, s, "PUT "+file+"?select=package_file&status=default", private(alice), "second", 201)
		sum := sha256.Sum256([]byte("second"))
		if !strings.Contains(string(got.Body), `"file_sha256":"`+hex.EncodeToString(sum[:])+`"`) {
			t.Errorf("no digest: %s", got.Body)
		}
		wantRaw(t, s, "PUT "+at+"/packages/generic/tool/1.0.0/sub%2Fdir/x.txt", private(alice), "first", 201)
		s.Table(t, []apptest.Call{
			{Name: "the newest", Do: "GET " + file, As: alice, Status: 200, Text: "second", WantHeader: map[string]string{"Content-Type": "application/octet-stream"}},
			{Name: "a range", Do: "GET " + file, As: alice, Header: map[string]string{"Range": "bytes=1-3"}, Status: 206, Text: "eco"},
			{Name: "directories", Do: "GET " + at + "/packages/generic/tool/1.0.0/sub/dir/x.txt", As: alice, Status: 200, Text: "first"},
			{Name: "head", Do: "HEAD " + file, As: alice, Status: 200, WantHeader: map[string]string{"Content-Length": "6"}},
			{Name: "anonymous", Do: "GET " + file, Status: 404},
			{Name: "a stranger", Do: "GET " + file, As: bob, Status: 404},
			{Name: "statistics", Do: "GET " + at + "?statistics=true", As: alice, Status: 200, Want: `{"statistics":{"packages_size":16}}`},
			{Name: "list", Do: "GET " + at + "/packages", As: alice, Status: 200, Want: `[{"name":"tool","version":"1.0.0","package_type":"generic","status":"default"}]`},
		})
		for _, bad := range []string{
			"tool/1.0.0/..%2Fx", "tool/1.0.0/a/../../x", "tool/1.0.0/.", "tool/1.0.0/%00", "too%2Fl/1.0.0/x", "..%2F/1.0/x", "tool/1%200/x",
			"tool/../x", "tool/1.0.0/" + strings.Repeat("x", 256), strings.Repeat("n", 256) + "/1.0.0/x", "tool/1.0.0/a%5Cb", "t%C3%B6ol/1/x",
		} {
			if got := sendRaw(t, s, "PUT "+at+"/packages/generic/"+bad, private(alice), strings.NewReader("x")); got.Status != 400 && got.Status != 404 {
				t.Errorf("PUT %s: status %d: %s", bad, got.Status, got.Body)
			}
		}

		// Content is stored once, and deleted when no file refers to it.
		var blobs, released int
		count := func() (n int) {
			if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM package_blobs`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		if blobs = count(); blobs != 2 {
			t.Errorf("%d blobs, want 2", blobs)
		}
		var list []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET " + at + "/packages", As: alice, Status: 200}).JSON(t, &list)
		pkg := fmt.Sprintf("%s/packages/%d", at, list[0].ID)
		var files []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET " + pkg + "/package_files?order_by=file_name&sort=desc", As: alice, Status: 200,
			Want: `[{"file_name":"tool.bin","size":6},{"file_name":"tool.bin","size":5},{"file_name":"sub/dir/x.txt","size":5}]`}).JSON(t, &files)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE %s/package_files/%d", pkg, files[0].ID), As: alice, Status: 204})
		s.Check(t, apptest.Call{Do: "GET " + file, As: alice, Status: 200, Text: "first"})
		s.Clock.Move(2 * time.Minute)
		if err := s.Packages.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if released = count(); released != 1 {
			t.Errorf("%d blobs after the sweep, want 1", released)
		}
		// Two files have the same content: deleting one keeps the content.
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE %s/package_files/%d", pkg, files[2].ID), As: alice, Status: 204})
		s.Clock.Move(2 * time.Minute)
		if err := s.Packages.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: "GET " + file, As: alice, Status: 200, Text: "first"})

		// Hidden packages are not listed.
		wantRaw(t, s, "PUT "+at+"/packages/generic/secret/1/x?status=hidden", private(alice), "x", 201)
		s.Table(t, []apptest.Call{
			{Name: "hidden", Do: "GET " + at + "/packages", As: alice, Status: 200, Want: `[{"name":"tool"}]`},
			{Name: "by status", Do: "GET " + at + "/packages?status=hidden", As: alice, Status: 200, Want: `[{"name":"secret"}]`},
			{Name: "by name", Do: "GET " + at + "/packages?package_name=OO", As: alice, Status: 200, Want: `[{"name":"tool"}]`},
			{Name: "by type", Do: "GET " + at + "/packages?package_type=npm", As: alice, Status: 200, Want: `[]`},
			{Name: "by version", Do: "GET " + at + "/packages?package_version=2", As: alice, Status: 200, Want: `[]`},
			{Name: "unknown order", Do: "GET " + at + "/packages?order_by=size", As: alice, Status: 400},
			{Name: "group", Do: fmt.Sprintf("GET /groups/%d/packages?order_by=project_path", g), As: alice, Status: 200, Want: `[{"name":"tool","project_path":"tools/p"}]`},
			{Name: "get", Do: "GET " + pkg, As: alice, Status: 200, Want: `{"name":"tool","versions":[],"_links":{"web_path":"<any>","delete_api_path":"<any>"}}`},
		})

		// The scopes of tokens.
		tokens := map[string]string{}
		for _, scope := range []string{"read_package_registry", "write_package_registry", "read_repository"} {
			var made struct{ Token string }
			s.Check(t, apptest.Call{Do: "POST " + at + "/deploy_tokens", As: alice, JSON: fmt.Sprintf(`{"name":"d","username":"dep","scopes":[%q]}`, scope), Status: 201}).JSON(t, &made)
			tokens[scope] = made.Token
		}
		other := at + "/packages/generic/other/1/x"
		wantRaw(t, s, "PUT "+other, map[string]string{"Deploy-Token": tokens["write_package_registry"]}, "x", 201)
		wantRaw(t, s, "PUT "+other, map[string]string{"Deploy-Token": tokens["read_package_registry"]}, "x", 403)
		wantRaw(t, s, "GET "+other, map[string]string{"Deploy-Token": tokens["write_package_registry"]}, "", 403)
		wantRaw(t, s, "GET "+other, map[string]string{"Deploy-Token": tokens["read_repository"]}, "", 403)
		wantRaw(t, s, "GET "+other, basicAuth("dep", tokens["read_package_registry"]), "", 200)
		wantRaw(t, s, "GET "+other, basicAuth("wrong", tokens["read_package_registry"]), "", 401)
		wantRaw(t, s, "GET "+other, map[string]string{"Authorization": "Bearer " + tokens["read_package_registry"]}, "", 200)
		wantRaw(t, s, "GET "+at+"/issues", map[string]string{"Deploy-Token": tokens["read_package_registry"]}, "", 401)
		wantRaw(t, s, "DELETE "+pkg, map[string]string{"Deploy-Token": tokens["write_package_registry"]}, "", 401)
		readOnly := s.Token(t, aliceID, "read_api")
		wantRaw(t, s, "PUT "+other, private(readOnly), "x", 403)
		wantRaw(t, s, "GET "+other, private(readOnly), "", 200)

		// Members.
		s.Check(t, apptest.Call{Do: "POST " + at + "/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":20}`, bobID), Status: 201})
		wantRaw(t, s, "PUT "+other, private(bob), "x", 403)
		wantRaw(t, s, "GET "+other, private(bob), "", 200)

		// Protection.
		s.Check(t, apptest.Call{Do: "PUT " + fmt.Sprintf("%s/members/%d", at, bobID), As: alice, JSON: `{"access_level":30}`, Status: 200})
		var rule struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST " + at + "/packages/protection/rules", As: alice, Status: 201,
			JSON: `{"package_name_pattern":"oth*","package_type":"generic","minimum_access_level_for_push":40}`,
			Want: `{"minimum_access_level_for_push":"maintainer","minimum_access_level_for_delete":null}`}).JSON(t, &rule)
		wantRaw(t, s, "PUT "+other, private(bob), "x", 403)
		wantRaw(t, s, "PUT "+other, map[string]string{"Deploy-Token": tokens["write_package_registry"]}, "x", 403)
		wantRaw(t, s, "PUT "+other, private(alice), "x", 201)
		wantRaw(t, s, "PUT "+at+"/packages/generic/free/1/x", private(bob), "x", 201)
		s.Table(t, []apptest.Call{
			{Name: "the same rule", Do: "POST " + at + "/packages/protection/rules", As: alice, Status: 422,
				JSON: `{"package_name_pattern":"oth*","package_type":"generic","minimum_access_level_for_push":"owner"}`},
			{Name: "change", Do: fmt.Sprintf("PATCH %s/packages/protection/rules/%d", at, rule.ID), As: alice, Status: 200,
				JSON: `{"minimum_access_level_for_push":"","minimum_access_level_for_delete":"admin"}`, Want: `{"minimum_access_level_for_push":null,"minimum_access_level_for_delete":"admin"}`},
			{Name: "nothing", Do: fmt.Sprintf("PATCH %s/packages/protection/rules/%d", at, rule.ID), As: alice, Status: 422, JSON: `{"minimum_access_level_for_delete":""}`},
		})
		var found []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET " + at + "/packages?package_name=other", As: alice, Status: 200}).JSON(t, &found)
		protected := fmt.Sprintf("%s/packages/%d", at, found[0].ID)
		s.Table(t, []apptest.Call{
			{Name: "protected", Do: "DELETE " + protected, As: alice, Status: 403},
			{Name: "unprotect", Do: fmt.Sprintf("DELETE %s/packages/protection/rules/%d", at, rule.ID), As: alice, Status: 204},
			{Name: "developer", Do: "DELETE " + protected, As: bob, Status: 403},
			{Name: "delete", Do: "DELETE " + protected, As: alice, Status: 204},
			{Name: "gone", Do: "GET " + protected, As: alice, Status: 404},
		})

		// Duplicates.
		by, err := s.Users.As(t.Context(), aliceID)
		if err != nil {
			t.Fatal(err)
		}
		refuse := packages.Settings{GenericDuplicateExcept: ".*-snapshot"}
		if err := s.Packages.SetGroupSettings(t.Context(), by, "tools", refuse); err != nil {
			t.Fatal(err)
		}
		wantRaw(t, s, "PUT "+file, private(alice), "third", 403)
		wantRaw(t, s, "PUT "+at+"/packages/generic/tool-snapshot/1.0.0/tool.bin", private(alice), "a", 201)
		wantRaw(t, s, "PUT "+at+"/packages/generic/tool-snapshot/1.0.0/tool.bin", private(alice), "b", 201)

		// Cleanup keeps the newest.
		if err := s.Packages.SetPolicy(t.Context(), by, "tools/p", 1); err != nil {
			t.Fatal(err)
		}
		s.Clock.Move(13 * time.Hour)
		if err := s.Packages.Cleanup(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "/packages/generic/tool-snapshot/1.0.0/tool.bin", As: alice, Status: 200, Text: "b"})
		var left int
		if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM package_files f JOIN packages k ON k.id = f.package_id WHERE k.name = 'tool-snapshot'`).Scan(&left); err != nil || left != 1 {
			t.Errorf("%d files after the cleanup, %v", left, err)
		}

		// Limits.
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: root, JSON: `{"generic_packages_max_file_size":1}`, Status: 200})
		wantRaw(t, s, "PUT "+at+"/packages/generic/big/1/x", private(alice), strings.Repeat("x", 1<<20+1), 413)
		wantRaw(t, s, "PUT "+at+"/packages/generic/big/1/x", private(alice), strings.Repeat("x", 1<<20), 201)
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: root, JSON: `{"max_package_storage_size":1}`, Status: 200})
		wantRaw(t, s, "PUT "+at+"/packages/generic/big/2/x", private(alice), "x", 413)

		// Visibility of the registry.
		s.Check(t, apptest.Call{Do: "PUT " + at, As: alice, JSON: `{"package_registry_access_level":"public"}`, Status: 200, Want: `{"packages_enabled":true}`})
		wantRaw(t, s, "GET "+file, nil, "", 200)
		s.Check(t, apptest.Call{Do: "GET " + at, Status: 404})
		s.Check(t, apptest.Call{Do: "PUT " + at, As: alice, JSON: `{"packages_enabled":false}`, Status: 200, Want: `{"package_registry_access_level":"disabled"}`})
		wantRaw(t, s, "GET "+file, private(alice), "", 404)
		wantRaw(t, s, "PUT "+file, private(alice), "x", 404)
		wantRaw(t, s, "GET "+file, map[string]string{"Deploy-Token": tokens["read_package_registry"]}, "", 404)

		// The content is deleted with the project.
		s.Check(t, apptest.Call{Do: "PUT /application/settings?deletion_adjourned_period=0", As: root, Status: 200})
		s.Check(t, apptest.Call{Do: "DELETE " + at, As: alice, Status: 202})
		s.Settled(t)
		s.Clock.Move(2 * time.Minute)
		waittest.For(t, "no content is left", func() bool {
			if err := s.Packages.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			return count() == 0
		})
	})
}

// TestMissingPackageContent uploads content again that the object store has lost: packages
// with this content can be downloaded again.
func TestMissingPackageContent(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		var p struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"path":"p"}`, Status: 201}).JSON(t, &p)
		at := fmt.Sprintf("/projects/%d/packages/generic/tool/", p.ID)
		for _, version := range []string{"1.0", "1.1"} {
			for info := range s.Blobs.List(t.Context(), "packages/") {
				if err := s.Blobs.Delete(t.Context(), info.Key); err != nil {
					t.Fatal(err)
				}
			}
			wantRaw(t, s, "PUT "+at+version+"/tool.bin", private(alice), "content", 201)
			s.Settled(t)
		}
		for _, version := range []string{"1.0", "1.1"} {
			s.Check(t, apptest.Call{Do: "GET " + at + version + "/tool.bin", As: alice, Status: 200, Text: "content"})
		}
	})
}

func TestNPMPackages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		g := group(t, s, alice, "scope", `,"visibility":"public"`)
		var p, q struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"path":"p","namespace_id":%d,"visibility":"public"}`, g), Status: 201}).JSON(t, &p)
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"path":"q","namespace_id":%d}`, g), Status: 201}).JSON(t, &q)
		at := fmt.Sprintf("/projects/%d/packages/npm", p.ID)
		name := at + "/@scope%2flib"
		bearer := map[string]string{"Authorization": "Bearer " + alice, "Content-Type": "application/json"}
		manifest := map[string]any{"dependencies": map[string]string{"a": "^1"}, "description": "A library"}
		wantRaw(t, s, "PUT "+name, bearer, npmDocument("@scope/lib", "1.0.0", "latest", "one", manifest), 200)
		wantRaw(t, s, "PUT "+name, bearer, npmDocument("@scope/lib", "1.0.0", "latest", "other", nil), 403)
		wantRaw(t, s, "PUT "+name, bearer, npmDocument("@scope/lib", "1.1.0-beta.1", "beta", "two", nil), 200)
		wantRaw(t, s, "PUT "+name, map[string]string{"Authorization": "Bearer " + bob}, npmDocument("@scope/lib", "2.0.0", "latest", "x", nil), 403)
		wantRaw(t, s, "PUT "+name, nil, npmDocument("@scope/lib", "2.0.0", "latest", "x", nil), 401)
		s.Table(t, []apptest.Call{
			{Name: "metadata", Do: "GET " + name, Status: 200, Want: `{"name":"@scope/lib","dist-tags":{"latest":"1.0.0","beta":"1.1.0-beta.1"},
				"versions":{"1.0.0":{"name":"@scope/lib","dependencies":{"a":"^1"},"description":"A library","dist":{"shasum":"<any>","integrity":"<any>",
				"tarball":"` + s.URL + fmt.Sprintf("/api/v4%s/@scope/lib/-/lib-1.0.0.tgz", at) + `"}},"1.1.0-beta.1":{}},"time":{"1.0.0":"<any>"}}`, Not: []string{"long long", "elsewhere"}},
			{Name: "the slash as it is", Do: "GET " + at + "/@scope/lib", Status: 200},
			{Name: "the file", Do: "GET " + at + "/@scope/lib/-/lib-1.0.0.tgz", Status: 200, Text: "one"},
			{Name: "the file of an encoded name", Do: "GET " + at + "/@scope%2flib/-/lib-1.0.0.tgz", Status: 200, Text: "one"},
			{Name: "the file with a scope", Do: "GET " + at + "/@scope/lib/-/@scope/lib-1.0.0.tgz", Status: 200, Text: "one"},
			{Name: "instance", Do: "GET /packages/npm/@scope%2flib", Status: 200},
			{Name: "group", Do: fmt.Sprintf("GET /groups/%d/-/packages/npm/@scope%%2flib", g), Status: 200},
			{Name: "tags", Do: "GET /packages/npm/-/package/@scope%2flib/dist-tags", Status: 200, Want: `{"latest":"1.0.0","beta":"1.1.0-beta.1"}`},
			{Name: "no audit", Do: "POST " + at + "/-/npm/v1/security/advisories/bulk", JSON: `{}`, Status: 404},
			{Name: "missing", Do: "GET " + at + "/none", Status: 404},
			{Name: "list", Do: fmt.Sprintf("GET /projects/%d/packages?order_by=version", p.ID), Status: 200,
				Want: `[{"version":"1.0.0","tags":[{"name":"latest"}]},{"version":"1.1.0-beta.1","tags":[{"name":"beta"}]}]`},
		})

		// Tags.
		wantRaw(t, s, "PUT "+at+"/-/package/@scope%2flib/dist-tags/next", bearer, `"1.1.0-beta.1"`, 204)
		wantRaw(t, s, "PUT "+at+"/-/package/@scope%2flib/dist-tags/1.0.0", bearer, `"1.0.0"`, 400)
		wantRaw(t, s, "PUT "+at+"/-/package/@scope%2flib/dist-tags/next", bearer, `"9.0.0"`, 404)
		wantRaw(t, s, fmt.Sprintf("PUT /groups/%d/-/packages/npm/-/package/@scope%%2flib/dist-tags/old", g), bearer, `"1.0.0"`, 204)
		wantRaw(t, s, "DELETE "+at+"/-/package/@scope%2flib/dist-tags/beta", bearer, "", 204)
		wantRaw(t, s, "DELETE "+at+"/-/package/@scope%2flib/dist-tags/beta", bearer, "", 404)
		wantRaw(t, s, "DELETE /packages/npm/-/package/@scope%2flib/dist-tags/old", map[string]string{"Authorization": "Bearer " + bob}, "", 403)
		s.Check(t, apptest.Call{Do: "GET " + at + "/-/package/@scope%2flib/dist-tags", Status: 200, Want: `{"latest":"1.0.0","next":"1.1.0-beta.1","old":"1.0.0"}`})

		// Deprecation.
		wantRaw(t, s, "PUT "+name, bearer, `{"name":"@scope/lib","versions":{"1.0.0":{"deprecated":"use 2"},"1.1.0-beta.1":{}}}`, 200)
		s.Check(t, apptest.Call{Do: "GET " + name, Status: 200, Want: `{"versions":{"1.0.0":{"deprecated":"use 2"}}}`})
		wantRaw(t, s, "PUT "+name, bearer, `{"name":"@scope/lib","versions":{"1.0.0":{"deprecated":""}}}`, 200)
		s.Check(t, apptest.Call{Do: "GET " + name, Status: 200, Not: []string{"use 2"}})

		// A package of a private project is not visible to other users.
		wantRaw(t, s, fmt.Sprintf("PUT /projects/%d/packages/npm/@scope%%2fprivate", q.ID), bearer, npmDocument("@scope/private", "1.0.0", "latest", "p", nil), 200)
		wantRaw(t, s, fmt.Sprintf("PUT /projects/%d/packages/npm/unscoped", q.ID), bearer, npmDocument("unscoped", "1.0.0", "latest", "p", nil), 200)
		s.Table(t, []apptest.Call{
			{Name: "by its owner", Do: "GET /packages/npm/@scope%2fprivate", As: alice, Status: 200},
			{Name: "by others", Do: "GET /packages/npm/@scope%2fprivate", As: bob, Status: 404},
			{Name: "in the group", Do: fmt.Sprintf("GET /groups/%d/-/packages/npm/@scope%%2fprivate", g), As: bob, Status: 404},
			{Name: "in the group by its owner", Do: fmt.Sprintf("GET /groups/%d/-/packages/npm/unscoped", g), As: alice, Status: 200},
			{Name: "unscoped at the instance", Do: "GET /packages/npm/unscoped", As: alice, Status: 404},
		})
		var made struct{ Token string }
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/deploy_tokens", g), As: alice, JSON: `{"name":"d","scopes":["read_package_registry"]}`, Status: 201}).JSON(t, &made)
		wantRaw(t, s, fmt.Sprintf("GET /groups/%d/-/packages/npm/@scope%%2fprivate", g), map[string]string{"Authorization": "Bearer " + made.Token}, "", 200)

		// The new path of a private group is only shown to those who see a package there.
		vault := group(t, s, alice, "vault", "")
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"path":"v","namespace_id":%d}`, vault), Status: 201}).JSON(t, &q)
		wantRaw(t, s, fmt.Sprintf("PUT /projects/%d/packages/npm/inner", q.ID), bearer, npmDocument("inner", "1.0.0", "latest", "p", nil), 200)
		var inside struct{ Token string }
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/deploy_tokens", vault), As: alice, JSON: `{"name":"d","scopes":["read_package_registry"]}`, Status: 201}).JSON(t, &inside)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /groups/%d", vault), As: alice, JSON: `{"path":"safe"}`, Status: 200})
		for token, status := range map[string]int{made.Token: 404, inside.Token: 301} {
			wantRaw(t, s, "GET /groups/vault/-/packages/npm/inner", map[string]string{"Authorization": "Bearer " + token}, "", status)
		}

		// Invalid documents.
		for _, bad := range []string{
			``, `null`, `[]`, `{`, `{"name":"@scope/lib"`, `{"name":"other","versions":{"1.0.0":{}}}`, `{"versions":[]}`, `{"versions":{"1.0.0":[]}}`,
			strings.Replace(npmDocument("@scope/lib", "3.0.0", "latest", "x", nil), `"shasum":"`, `"shasum":"0`, 1),
			strings.Replace(npmDocument("@scope/lib", "3.0.0", "latest", "x", nil), `"sha512-`, `"sha512-A`, 1),
			strings.Replace(npmDocument("@scope/lib", "3.0.0", "latest", "x", nil), `"data":"`, `"data":"!!!!`, 1),
			npmDocument("@scope/lib", "3.0", "latest", "x", nil), npmDocument("@scope/lib", "3.0.0", "1.x", "x", nil), npmDocument("@scope/lib", "3.0.0", "latest", "", nil),
			npmDocument("@scope/lib", "3.0.0", "latest", "x", map[string]any{"bin": strings.Repeat("x", 70<<10)}),
			npmDocument("@scope/lib", "3.0.0", "latest", "x", map[string]any{"name": "@scope/else"}),
			strings.Repeat(`{"versions":`, 1000), `{"versions":{"1.0.0":` + strings.Repeat(`[`, 1000) + `}}`,
		} {
			if got := sendRaw(t, s, "PUT "+name, bearer, strings.NewReader(bad)); got.Status != 400 {
				t.Errorf("%.80s: status %d: %s", bad, got.Status, got.Body)
			}
		}
		for bad, why := range map[string]string{
			``:                                      "the body is empty",
			`{"name":`:                              "the body is not valid JSON: it ends too early",
			`[]`:                                    "a value in the body is not an object",
			`{"name":"@scope/lib"}`:                 "versions is missing",
			`{"versions":{"3.0.0":{}}}`:             "_attachments is missing",
			`{"_attachments":{"x":{"data":"!!!"}}}`: "the attachment is not valid base64",
			`{"_attachments":{"x":{"data":"aGVs`:    "the body is not valid JSON: it ends too early",
		} {
			if got := wantRaw(t, s, "PUT "+name, bearer, bad, 400); !strings.Contains(string(got.Body), why) {
				t.Errorf("%s: %s, want %s", bad, got.Body, why)
			}
		}
		for _, bad := range []string{"..", "@scope%2f..", "@%2flib", "a%00b", "a b", "@scope%2flib%2fmore", strings.Repeat("n", 215)} {
			if got := sendRaw(t, s, "PUT "+at+"/"+bad, bearer, strings.NewReader(`{"versions":{"1.0.0":{}}}`)); got.Status != 400 && got.Status != 404 {
				t.Errorf("name %s: status %d: %s", bad, got.Status, got.Body)
			}
		}
		long := io.MultiReader(strings.NewReader(`{"x":"`), io.LimitReader(endless('x'), 66<<20))
		s.Check(t, apptest.Call{Do: "PUT /application/settings?npm_max_file_size=1", As: root, Status: 200})
		if got := sendRaw(t, s, "PUT "+name, bearer, long); got.Status != 413 {
			t.Errorf("a document without end: status %d: %s", got.Status, got.Body)
		}
		var uploads int
		if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM package_uploads`).Scan(&uploads); err != nil || uploads != 0 {
			t.Errorf("%d uploads are left, %v", uploads, err)
		}

		// Unpublish.
		var doc map[string]any
		s.Check(t, apptest.Call{Do: "GET " + name + "?write=true", Status: 200}).JSON(t, &doc)
		rev := doc["_rev"].(string)
		delete(doc["versions"].(map[string]any), "1.0.0")
		doc["dist-tags"] = map[string]string{"latest": "1.1.0-beta.1"}
		rest, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		wantRaw(t, s, "PUT "+name+"/-rev/1-0", bearer, string(rest), 409)
		wantRaw(t, s, "PUT "+name+"/-rev/"+rev, bearer, string(rest), 200)
		s.Check(t, apptest.Call{Do: "GET " + name, Status: 200, Want: `{"dist-tags":{"latest":"1.1.0-beta.1"}}`, Not: []string{`"1.0.0"`}}).JSON(t, &doc)
		wantRaw(t, s, "DELETE "+at+"/@scope/lib/-/lib-1.0.0.tgz/-rev/"+doc["_rev"].(string), bearer, "", 200)
		wantRaw(t, s, "DELETE "+name+"/-rev/"+doc["_rev"].(string), map[string]string{"Authorization": "Bearer " + bob}, "", 403)
		wantRaw(t, s, "DELETE "+name+"/-rev/"+doc["_rev"].(string), bearer, "", 200)
		s.Check(t, apptest.Call{Do: "GET " + name, Status: 404})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/audit_events", p.ID), As: alice, Status: 200, Want: `[{"event_type":"package_registry_package_deleted"},{"event_type":"package_registry_package_deleted"},{}]`})

		// Forwarding is a setting.
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: root, JSON: `{"npm_package_requests_forwarding":true,"pypi_package_requests_forwarding":true}`, Status: 200})
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		for path, to := range map[string]string{
			name: "https://registry.npmjs.org/@scope%2Flib",
			fmt.Sprintf("/projects/%d/packages/pypi/simple/none/", p.ID): "https://pypi.org/simple/none/",
		} {
			r, err := client.Get(s.URL + "/api/v4" + path)
			if err != nil {
				t.Fatal(err)
			}
			r.Body.Close()
			if r.StatusCode != 302 || r.Header.Get("Location") != to {
				t.Errorf("%s: %d %s, want %s", path, r.StatusCode, r.Header.Get("Location"), to)
			}
		}
	})
}

// TestNPMTagsOfRevisions sends documents of protected packages that move tags.
func TestNPMTagsOfRevisions(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		var p struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"path":"p"}`, Status: 201}).JSON(t, &p)
		at := fmt.Sprintf("/projects/%d", p.ID)
		name := at + "/packages/npm/lib"
		owner := map[string]string{"Authorization": "Bearer " + alice, "Content-Type": "application/json"}
		maintainer := map[string]string{"Authorization": "Bearer " + bob, "Content-Type": "application/json"}
		for version, tag := range map[string]string{"0.0.1": "old", "0.0.2": "beta", "1.0.0": "latest"} {
			wantRaw(t, s, "PUT "+name, owner, npmDocument("lib", version, tag, version, nil), 200)
		}
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/members", As: alice, Status: 201, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":40}`, bobID)},
			{Do: "POST " + at + "/packages/protection/rules", As: alice, Status: 201,
				JSON: `{"package_name_pattern":"lib","package_type":"npm","minimum_access_level_for_push":"owner"}`},
		})
		// send sends the document of the package after a change.
		send := func(as map[string]string, status int, change func(versions, tags map[string]any)) {
			t.Helper()
			var doc map[string]any
			s.Check(t, apptest.Call{Do: "GET " + name + "?write=true", As: alice, Status: 200}).JSON(t, &doc)
			change(doc["versions"].(map[string]any), doc["dist-tags"].(map[string]any))
			text, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			wantRaw(t, s, "PUT "+name+"/-rev/"+doc["_rev"].(string), as, string(text), status)
		}
		want := func(tags string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "GET " + name, As: alice, Status: 200, Want: `{"dist-tags":` + tags + `}`})
		}
		move := func(_, tags map[string]any) { tags["latest"] = "0.0.2" }
		send(maintainer, 403, move)
		want(`{"latest":"1.0.0","beta":"0.0.2","old":"0.0.1"}`)
		send(maintainer, 200, func(_, _ map[string]any) {})
		send(maintainer, 200, func(versions, tags map[string]any) {
			delete(versions, "0.0.1")
			tags["latest"], tags["old"], tags["new"] = "0.0.2", "1.0.0", "1.0.0"
		})
		want(`{"latest":"1.0.0","beta":"0.0.2","old":"1.0.0"}`)
		send(owner, 200, move)
		want(`{"latest":"0.0.2","beta":"0.0.2","old":"1.0.0"}`)
	})
}

// endless is an infinite reader of one byte.
type endless byte

// Read implements io.Reader.
func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func TestPyPIPackages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		g := group(t, s, alice, "py", `,"visibility":"private"`)
		var p struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"path":"p","namespace_id":%d}`, g), Status: 201}).JSON(t, &p)
		at := fmt.Sprintf("/projects/%d", p.ID)
		token := basicAuth("__token__", alice)
		sendPyPI(t, s, at, token, "My.Lib", "1.0", "My.Lib-1.0.tar.gz", "sdist", map[string]string{"requires_python": ">=3.8,<4"}, 201)
		sendPyPI(t, s, at, token, "my-lib", "1.0", "my_lib-1.0-py3-none-any.whl", "wheel", nil, 201)
		sendPyPI(t, s, at, token, "my-lib", "1.0", "my_lib-1.0-py3-none-any.whl", "again", nil, 400)
		sendPyPI(t, s, at, nil, "my-lib", "1.1", "my_lib-1.1-py3-none-any.whl", "x", nil, 401)
		for _, bad := range [][3]string{
			{"my-lib", "one", "my_lib-one.tar.gz"}, {"my-lib", "1.2", "other-1.2.tar.gz"}, {"../x", "1.2", "x-1.2.tar.gz"}, {"my-lib", "1.2", "my_lib-1.2.exe"},
			{"-lib", "1.2", "-lib-1.2.tar.gz"}, {"my-lib", "../..", "my_lib-1.2.tar.gz"},
		} {
			sendPyPI(t, s, at, token, bad[0], bad[1], bad[2], "x", nil, 400)
		}
		sendPyPI(t, s, at, token, "my-lib", "1.2", "my_lib-1.2.tar.gz", "x", map[string]string{"sha256_digest": strings.Repeat("0", 64)}, 400)
		sum := sha256.Sum256([]byte("wheel"))
		link := fmt.Sprintf("%s/packages/pypi/files/%s/my_lib-1.0-py3-none-any.whl", at, hex.EncodeToString(sum[:]))
		page := string(wantRaw(t, s, "GET "+at+"/packages/pypi/simple/my_lib/", token, "", 200).Body)
		for _, want := range []string{`data-requires-python="&gt;=3.8,&lt;4"`, s.URL + "/api/v4" + link + "#sha256=" + hex.EncodeToString(sum[:]), ">My.Lib-1.0.tar.gz</a>"} {
			if !strings.Contains(page, want) {
				t.Errorf("the page has no %s: %s", want, page)
			}
		}
		s.Table(t, []apptest.Call{
			{Name: "file", Do: "GET " + link, As: alice, Status: 200, Text: "wheel"},
			{Name: "file in the group", Do: strings.Replace("GET "+link, at, fmt.Sprintf("/groups/%d/-", g), 1), As: alice, Status: 200, Text: "wheel"},
			{Name: "anonymous", Do: "GET " + link, Status: 404},
			{Name: "another name", Do: "GET " + strings.Replace(link, "my_lib", "lib", 1), As: alice, Status: 404},
			{Name: "one package", Do: "GET " + at + "/packages", As: alice, Status: 200, Want: `[{"name":"My.Lib","version":"1.0","package_type":"pypi"}]`},
			{Name: "unknown", Do: "GET " + at + "/packages/pypi/simple/none/", As: alice, Status: 404},
		})
		for _, path := range []string{at + "/packages/pypi/simple", fmt.Sprintf("/groups/%d/-/packages/pypi/simple/", g)} {
			if page := string(wantRaw(t, s, "GET "+path, token, "", 200).Body); !strings.Contains(page, "/simple/my-lib/\">my-lib</a>") {
				t.Errorf("%s has no link: %s", path, page)
			}
		}

		// A protection rule matches all spellings of a name.
		id, dev := s.User(t, "dev")
		maintID, maint := s.User(t, "maint")
		var list []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET " + at + "/packages", As: alice, Status: 200}).JSON(t, &list)
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, id), Status: 201},
			{Do: "POST " + at + "/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":40}`, maintID), Status: 201},
			{Do: "POST " + at + "/packages/protection/rules", As: alice, Status: 201,
				JSON: `{"package_name_pattern":"my_l*","package_type":"pypi","minimum_access_level_for_push":"maintainer","minimum_access_level_for_delete":"owner"}`},
			{Name: "protected from deletion", Do: fmt.Sprintf("DELETE %s/packages/%d", at, list[0].ID), As: maint, Status: 403},
		})
		for _, name := range []string{"my-lib", "My.Lib", "my_lib", "my--lib"} {
			sendPyPI(t, s, at, basicAuth("__token__", dev), name, "1.3", strings.ReplaceAll(name, "-", "_")+"-1.3.tar.gz", "x", nil, 403)
		}
		sendPyPI(t, s, at, basicAuth("__token__", maint), "my-lib", "1.3", "my_lib-1.3.tar.gz", "x", nil, 201)
	})
}

// TestPackageJobTokens publishes from a job, whose pipeline is shown with the
// package.
func TestPackageJobTokens(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}")
		b.pipeline(b.project)
		j := b.run()
		job := map[string]string{"Job-Token": j.Token}
		var own struct{ Pipeline struct{ ID int64 } }
		s.Check(t, apptest.Call{Do: "GET /job", Header: job, Status: 200}).JSON(t, &own)
		file := fmt.Sprintf("/projects/%d/packages/generic/tool/1.0/x", b.project)
		wantRaw(t, s, "PUT "+file, job, "x", 201)
		wantRaw(t, s, "GET "+file, job, "", 200)
		wantRaw(t, s, "GET "+file, basicAuth("gitlab-ci-token", j.Token), "", 200)
		wantRaw(t, s, "GET "+file, map[string]string{"Authorization": "Bearer " + j.Token}, "", 200)
		var list []struct {
			ID       int64
			Pipeline struct{ ID int64 }
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/packages", b.project), As: b.owner, Status: 200}).JSON(t, &list)
		if len(list) != 1 || list[0].Pipeline.ID != own.Pipeline.ID {
			t.Errorf("packages %+v, want pipeline %d", list, own.Pipeline.ID)
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/packages/%d/pipelines?pagination=keyset", b.project, list[0].ID), As: b.owner, Status: 200,
			Want: fmt.Sprintf(`[{"id":%d}]`, own.Pipeline.ID)})
		// A public registry of a private project does not open its pipelines.
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", b.project), As: b.owner, JSON: `{"visibility":"private","package_registry_access_level":"public"}`, Status: 200})
		_, bob := s.User(t, "bob")
		second := b.newProject("second", "a: {script: [x]}")
		b.pipeline(second)
		foreign := map[string]string{"Job-Token": b.run().Token}
		at := fmt.Sprintf("/projects/%d/packages/%d", b.project, list[0].ID)
		for name, caller := range map[string]apptest.Call{"anonymous": {}, "not a member": {As: bob}, "job of another project": {Header: foreign}} {
			for path, want := range map[string]string{fmt.Sprintf("/projects/%d/packages", b.project): `[{"name":"tool"}]`, at: `{"name":"tool"}`, at + "/package_files": `[{"file_name":"x"}]`, at + "/pipelines": `[]`} {
				body := string(s.Check(t, apptest.Call{Name: name, Do: "GET " + path, As: caller.As, Header: caller.Header, Status: 200, Want: want}).Body)
				if strings.Contains(body, `"sha"`) || strings.Contains(body, "/pipelines/") {
					t.Errorf("%s: %s shows a pipeline: %s", name, path, body)
				}
			}
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "/pipelines", Header: job, Status: 200, Want: fmt.Sprintf(`[{"id":%d}]`, own.Pipeline.ID)})
		// Another project of the same user does not accept the token.
		var other struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: b.owner, JSON: `{"path":"other"}`, Status: 201}).JSON(t, &other)
		wantRaw(t, s, fmt.Sprintf("PUT /projects/%d/packages/generic/tool/1.0/x", other.ID), job, "x", 404)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/job_token_scope/allowlist", other.ID), As: b.owner, JSON: fmt.Sprintf(`{"target_project_id":%d}`, b.project), Status: 201})
		wantRaw(t, s, fmt.Sprintf("PUT /projects/%d/packages/generic/tool/1.0/x", other.ID), job, "x", 201)
	})
}

// TestListGroupPackages lists the packages of a group in each order, with the first packages
// in several projects.
func TestListGroupPackages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		g := made(t, s, alice, "POST /groups", `{"name":"Tools","path":"tools","visibility":"public"}`)
		sub := made(t, s, alice, "POST /groups", fmt.Sprintf(`{"name":"Sub","path":"sub","parent_id":%d,"visibility":"public"}`, g))
		// Each project has packages with two names and versions that lie between those of the others.
		var want []string
		for n, name := range []string{"c", "a", "d", "b", "hidden"} {
			in, visibility := g, "public"
			if n%2 == 1 {
				in = sub
			}
			if name == "hidden" {
				visibility = "private"
			}
			id := made(t, s, alice, "POST /projects", fmt.Sprintf(`{"name":%q,"path":%q,"namespace_id":%d,"visibility":%q}`, name, name, in, visibility))
			for v := range 3 {
				s.Clock.Move(time.Second)
				k := fmt.Sprintf("k%d-%s", v, name)
				wantRaw(t, s, fmt.Sprintf("PUT /projects/%d/packages/generic/%s/%d.%d/x", id, k, v, n), private(alice), "x", 201)
				if visibility == "public" {
					want = append(want, k)
				}
			}
		}
		list := func(token, query string) (names []string) {
			t.Helper()
			var found []struct{ Name string }
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /groups/%d/packages?%s", g, query), As: token, Status: 200}).JSON(t, &found)
			for _, k := range found {
				names = append(names, k.Name)
			}
			return names
		}
		byName := slices.Sorted(slices.Values(want))
		path := map[string]string{"a": "tools/sub/a", "b": "tools/sub/b", "c": "tools/c", "d": "tools/d"}
		byPath := slices.Clone(want)
		slices.SortStableFunc(byPath, func(x, y string) int { return strings.Compare(path[x[3:]], path[y[3:]]) })
		byVersion := slices.Clone(want)
		slices.SortStableFunc(byVersion, func(x, y string) int { return strings.Compare(x[:2], y[:2]) })
		for order, all := range map[string][]string{"created_at": want, "name": byName, "version": byVersion, "type": want, "project_path": byPath} {
			for _, desc := range []bool{false, true} {
				sorted, way := slices.Clone(all), "asc"
				if desc {
					slices.Reverse(sorted)
					way = "desc"
				}
				for page := 1; page <= 3; page++ {
					query := fmt.Sprintf("order_by=%s&sort=%s&per_page=5&page=%d", order, way, page)
					if got, want := list(bob, query), sorted[(page-1)*5:min(page*5, len(sorted))]; !slices.Equal(got, want) {
						t.Errorf("%s: %v, want %v", query, got, want)
					}
				}
			}
		}
		for query, want := range map[string][]string{
			"order_by=name&package_name=1-&sort=asc": {"k1-a", "k1-b", "k1-c", "k1-d"}, "package_name=K1-C": {"k1-c"}, "package_name=-hid": nil,
			"package_version=1.2": {"k1-d"}, "package_version=9": nil, "package_type=npm": nil, "exclude_subgroups=true&order_by=name&sort=asc&per_page=2": {"k0-c", "k0-d"},
		} {
			if got := list(bob, query); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", query, got, want)
			}
		}
		if got := list(alice, "package_name=-hid&order_by=name&sort=asc"); !slices.Equal(got, []string{"k0-hidden", "k1-hidden", "k2-hidden"}) {
			t.Errorf("of a member: %v", got)
		}
	})
}

// TestListPackages lists the packages of a project by type and version, and those of
// a group, with packages of other projects in between.
func TestListPackages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		g := made(t, s, alice, "POST /groups", `{"name":"Tools","path":"tools"}`)
		in := made(t, s, alice, "POST /projects", fmt.Sprintf(`{"name":"In","path":"in","namespace_id":%d}`, g))
		out := made(t, s, alice, "POST /projects", `{"name":"Out","path":"out"}`)
		for n := 1; n <= 4; n++ {
			for _, id := range []int64{in, out} {
				s.Clock.Move(time.Second)
				wantRaw(t, s, fmt.Sprintf("PUT /projects/%d/packages/generic/k%d/1.%d/x", id, n, n%2), private(alice), "x", 201)
			}
		}
		of := func(query string) string { return fmt.Sprintf("GET /projects/%d/packages?%s", in, query) }
		group := func(query string) string { return fmt.Sprintf("GET /groups/%d/packages?%s", g, query) }
		s.Table(t, []apptest.Call{
			{Name: "type", Do: of("package_type=generic&sort=desc&per_page=3"), As: alice, Status: 200, Want: `[{"name":"k4"},{"name":"k3"},{"name":"k2"}]`},
			{Name: "no such type", Do: of("package_type=npm"), As: alice, Status: 200, Want: `[]`},
			{Name: "version", Do: of("package_version=1.1&order_by=name&sort=desc"), As: alice, Status: 200, Want: `[{"name":"k3"},{"name":"k1"}]`},
			{Name: "both", Do: of("package_version=1.0&package_type=generic&sort=asc"), As: alice, Status: 200, Want: `[{"name":"k2"},{"name":"k4"}]`},
			{Name: "only one", Do: of("package_version=1.0&package_type=npm"), As: alice, Status: 200, Want: `[]`},
			{Name: "second page", Do: of("package_version=1.0&sort=asc&per_page=1&page=2"), As: alice, Status: 200, Want: `[{"name":"k4"}]`},
			{Name: "group", Do: group("sort=desc&per_page=2"), As: alice, Status: 200, Want: `[{"name":"k4","project_path":"tools/in"},{"name":"k3","project_path":"tools/in"}]`},
			{Name: "oldest", Do: group("sort=asc&per_page=2"), As: alice, Status: 200, Want: `[{"name":"k1","project_path":"tools/in"},{"name":"k2","project_path":"tools/in"}]`},
			{Name: "last page", Do: group("sort=asc&per_page=3&page=2"), As: alice, Status: 200, Want: `[{"name":"k4","project_path":"tools/in"}]`},
			{Name: "by name in a group", Do: group("order_by=name&sort=desc&per_page=3"), As: alice, Status: 200, Want: `[{"name":"k4"},{"name":"k3"},{"name":"k2"}]`},
			{Name: "by version in a group", Do: group("package_version=1.1&sort=asc&per_page=1"), As: alice, Status: 200, Want: `[{"name":"k1","project_path":"tools/in"}]`},
		})
	})
}
