package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// putPackage publishes a file of a generic package.
func putPackage(t *testing.T, s *apptest.Server, token, path, content string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL+"/api/v4"+path, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Private-Token", token)
	if got := s.Exchange(t, r); got.Status != 201 {
		t.Fatalf("PUT %s: %d %s", path, got.Status, got.Body)
	}
}

func TestPackagePages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, token := s.User(t, "ada")
		id := newProject(t, s, token, "p", "public")
		ada, guest := newBrowser(t, s).signIn("ada", password), newBrowser(t, s)
		const at = "/ada/p/-/packages"
		guest.get(at).want(200, "No packages", "Package registry").harmless()
		for _, version := range []string{"1.0.0", "1.1.0"} {
			putPackage(t, s, token, fmt.Sprintf("/projects/%d/packages/generic/tool/%s/dir/tool.bin", id, version), "content")
		}
		guest.get(at).want(200, "2 packages", "tool", "1.1.0", "Generic")
		guest.get(at+"?type=npm&search=x").want(200, "No packages match your filters")
		guest.get(at+"/1").want(200, "dir/tool.bin", "curl --header", "Other versions", "1.1.0", "SHA-256").harmless()
		if got := guest.get("/ada/p/-/package_files/1/download").want(200); got.body != "content" {
			t.Errorf("download: %q", got.body)
		}
		guest.get(at + "/99").want(404)
		ada.get(at+"/1").want(200, "Delete")
		const set = "/ada/p/-/settings/packages_and_registries"
		ada.get(set).want(200, "Protected packages", "Number of duplicate assets to keep")
		ada.submit(set, set+"/rules", "name_pattern", "tool*", "package_type", "generic", "push", "50", "delete", "60").leads(set)
		ada.get(set).want(200, "tool*", "Publish: Owner", "Administrator")
		ada.submit(at+"/1", at+"/1/delete").want(403)
		ada.submit(set, set+"/rules/1/delete").leads(set)
		ada.submit(set, set, "keep", "10").leads(set)
		ada.get(set).want(200, `value="10" selected`)
		ada.submit(at+"/1", at+"/1/files/1/delete").leads(at + "/1")
		ada.get(at+"/1").want(200, "No files")
		ada.submit(at+"/1", at+"/1/delete").leads(at)
		ada.get(at).want(200, "1 package")
		s.Check(t, apptest.Call{Do: "PUT /projects/ada%2Fp", As: token, JSON: `{"package_registry_access_level":"disabled"}`, Status: 200})
		ada.get(at).want(404)
		ada.get(set).want(200, "The package registry is disabled")
	})
}
