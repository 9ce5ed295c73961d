package api

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const routesPath = "testdata/routes.txt"

// TestRoutes compares the route table with testdata/routes.txt, so that every change
// of the endpoints is visible in a diff.
func TestRoutes(t *testing.T) {
	t.Parallel()
	want := routeTable(New(Deps{Site: testSite()}))
	if *update {
		if err := os.WriteFile(routesPath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(routesPath)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("%s is out of date; run go test ./internal/api -run TestRoutes -update (-want +got):\n%s", routesPath, d)
	}
}

// routeTable returns a line for each endpoint, sorted by path.
func routeTable(a *API) string {
	list := slices.Clone(a.endpoints)
	slices.SortFunc(list, func(a, b *endpoint) int { return strings.Compare(a.path+" "+a.method, b.path+" "+b.method) })
	var out strings.Builder
	out.WriteString("# method path | access | tier | tag | summary\n")
	for _, e := range list {
		tier := e.tier.String()
		if e.hosted == selfManaged {
			tier += ", self-managed"
		}
		out.WriteString(strings.Join([]string{e.method + " " + e.path, e.access.String(), tier, e.tag, e.summary}, " | ") + "\n")
	}
	return out.String()
}

// String lists the token scopes and the other callers that are allowed.
func (a access) String() string {
	list := slices.Clone(a.scopes)
	switch {
	case a.runner:
		list = append(list, "own credential")
	case len(list) == 0:
		list = append(list, "any token")
	}
	if a.job {
		list = append(list, "job token")
	}
	if a.anonymous && !a.runner {
		list = append(list, "anonymous")
	}
	return strings.Join(list, ", ")
}

// TestSummaries checks the style of the summaries: an imperative that starts
// with a capital letter and has no full stop.
func TestSummaries(t *testing.T) {
	t.Parallel()
	for _, e := range New(Deps{Site: testSite()}).endpoints {
		first, _, _ := strings.Cut(e.summary, " ")
		switch {
		case e.summary == "" || e.tag == "":
			t.Errorf("%s %s: no summary or no tag", e.method, e.path)
		case strings.ToUpper(first[:1]) != first[:1] || strings.HasSuffix(e.summary, "."):
			t.Errorf("%s %s: %q", e.method, e.path, e.summary)
		case e.method == "PUT" && first == "Change", first == "Retrieve", first == "Show":
			t.Errorf("%s %s: %q: use Get or Update", e.method, e.path, e.summary)
		}
	}
}
