package web_test

import (
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
)

// TestLegacyPaths checks that URLs of project pages without "/-/", which tools still
// use, redirect, and so do clone URLs that are opened in a browser.
func TestLegacyPaths(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	_, ada := s.User(t, "ada")
	s.Table(t, []apptest.Call{
		{Do: "POST /projects", As: ada, JSON: `{"name":"p","visibility":"public","initialize_with_readme":true}`, Status: 201},
		{Do: "POST /projects/ada%2Fp/issues", As: ada, JSON: `{"title":"One"}`, Status: 201},
		{Name: "a project with the name of a page", Do: "POST /projects", As: ada, JSON: `{"name":"issues","visibility":"public"}`, Status: 201},
	})
	b := newBrowser(t, s)
	for from, to := range map[string]string{
		"/ada/p/issues/1":                    "/ada/p/-/issues/1",
		"/ada/p/merge_requests/4?tab=x%20y":  "/ada/p/-/merge_requests/4?tab=x%20y",
		"/ada/p/tree/main":                   "/ada/p/-/tree/main",
		"/ada/p/blob/main/a%20b/issues/x.md": "/ada/p/-/blob/main/a%20b/issues/x.md",
		"/g/sub/p/commit/abc":                "/g/sub/p/-/commit/abc",
		"/none/such/issues":                  "/none/such/-/issues",
	} {
		b.get(from).leads(to)
	}
	s.Check(t, apptest.Call{Do: "POST /groups", As: ada, JSON: `{"name":"team","path":"team","visibility":"public"}`, Status: 201})
	for from, to := range map[string]string{ // clone URLs
		"/ada/p.git":            "/ada/p",
		"/none/such.git":        "/none/such",
		"/ada/p.wiki.git":       "/ada/p/-/wikis",
		"/team.wiki.git":        "/groups/team/-/wikis",
		"/snippets/1.git":       "/-/snippets/1",
		"/ada/p/snippets/1.git": "/ada/p/-/snippets/1",
	} {
		b.get(from).leads(to)
	}
	b.get("/.git").want(404)
	b.get("/ada/p/issues/1").want(303)
	b.get("/ada/p/-/issues/1").want(200, "One")
	b.get("/ada/issues").want(200)
	b.get("/none/issues").want(404)
	b.get("/ada/p/nothing").want(404)
	b.get("/none/such/-/issues").want(404)
	b.get("/1/-/issues").want(404) // an ID is no path
}
