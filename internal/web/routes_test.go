package web_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
)

var update = flag.Bool("update", false, "rewrite testdata/routes.txt")

const routesPath = "testdata/routes.txt"

const routesHead = `# Pages and forms: method path | who may open it
# Bookmarks, emails and other sites have these URLs. A page that moves leaves a redirect.
`

// TestRoutes compares the route tables of pages with testdata/routes.txt, so that no
// URL changes or disappears unnoticed.
func TestRoutes(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	var got []string
	for route, access := range access(s) {
		got = append(got, route+" | "+access)
	}
	slices.Sort(got)
	if *update {
		if err := os.WriteFile(routesPath, []byte(routesHead+strings.Join(got, "\n")+"\n"), 0o644); err != nil { // #nosec G306: a file of the source
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(routesPath)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(strings.TrimPrefix(string(text), routesHead)), "\n")
	for _, row := range want {
		if !slices.Contains(got, row) {
			t.Errorf("%s is served no longer, or to other users: add a redirect, then run this test with -update", row)
		}
	}
	for _, row := range got {
		if !slices.Contains(want, row) {
			t.Errorf("%s is new: run this test with -update", row)
		}
	}
}
