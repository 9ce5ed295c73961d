package api

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/user/api-coverage.md anew")

const coveragePath = "../../docs/user/api-coverage.md"

// TestCoverage holds docs/user/api-coverage.md to the specification and the table
// of routes. What the file says is served must be: a lost route is not
// written over, even with -update.
func TestCoverage(t *testing.T) {
	t.Parallel()
	a := New(Deps{Site: testSite()})
	old, err := os.ReadFile(coveragePath)
	if err != nil && !*update {
		t.Fatal(err)
	}
	if lost := lostRoutes(string(old), a); len(lost) > 0 {
		t.Fatalf("%s says that these are served, but they have no route; if they were given up, take their lines out by hand:\n%s",
			coveragePath, strings.Join(lost, "\n"))
	}
	want := coverage(a)
	if *update {
		if err := os.WriteFile(coveragePath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(old)); diff != "" {
		t.Errorf("%s is out of date; run go test ./internal/api -run Coverage -update (-want +got):\n%s", coveragePath, diff)
	}
}

// testSite is an installation that has everything.
func testSite() Site {
	return Site{URL: "https://forge.example.com", Name: "svc", Tier: Ultimate, Version: "17.11.0", Revision: "0a1b2c3d4e5"}
}

// coverageLine is a row of a table: method, path, and whether it is served.
var coverageLine = regexp.MustCompile("(?m)^\\| (GET|POST|PUT|PATCH|DELETE) \\| `([^`]+)` \\|.*$")

// lostRoutes gives the lines of a file that call an endpoint served which is
// not.
func lostRoutes(text string, a *API) []string {
	var lost []string
	for _, m := range coverageLine.FindAllStringSubmatch(text, -1) {
		path, inAPI := strings.CutPrefix(m[2], prefix)
		page := slices.ContainsFunc(specification, func(s specified) bool { return s.page && s.method == m[1] && s.path == m[2] })
		if !strings.Contains(m[0], "| planned |") && !a.routes(specified{method: m[1], path: path, root: !inAPI, page: page}) {
			lost = append(lost, m[1]+" "+m[2])
		}
	}
	return lost
}

// routes tells whether an endpoint has a route. Below the API it must stand in
// the table as itself: /groups/{id} is not /groups/import.
func (a *API) routes(s specified) bool {
	if s.root && s.page {
		return true // its own tests show that it is
	}
	if s.root {
		return a.mux.Match(chi.NewRouteContext(), s.method, pathParam.ReplaceAllString(s.path, "1"))
	}
	return a.find(s.method, s.path) != nil
}

func (a *API) find(method, path string) *endpoint {
	i := slices.IndexFunc(a.endpoints, func(e *endpoint) bool {
		return e.method == method && nameless(e.path) == nameless(path)
	})
	if i < 0 {
		return nil
	}
	return a.endpoints[i]
}

var pathParam = regexp.MustCompile(`\{[^}]*\}`)

// nameless is a path without the names of its parameters, which are ours.
func nameless(path string) string { return pathParam.ReplaceAllString(path, "{}") }

func coverage(a *API) string {
	var out strings.Builder
	out.WriteString(`# API coverage

<!-- Written by "go test ./internal/api -run Coverage -update" from the specification and the table of routes. -->

What of the v4 API this release serves. *Served* means the whole endpoint: every parameter, form and rule. What is
*planned* answers 404 for now. A running server describes what it serves, with all parameters and answers, at
` + "`/api/v4/docs`; the same as an OpenAPI 3.1 document is at `/api/v4/openapi.json`." + `

`)
	var areas []string
	for _, s := range specification {
		if !slices.Contains(areas, s.area) {
			areas = append(areas, s.area)
		}
	}
	out.WriteString("| Area | Served | Planned |\n| --- | ---: | ---: |\n")
	served, planned := 0, 0
	for _, area := range areas {
		yes, no := a.count(area)
		served, planned = served+yes, planned+no
		fmt.Fprintf(&out, "| [%s](#%s) | %d | %d |\n", area, anchor(area), yes, no)
	}
	fmt.Fprintf(&out, "| **All** | **%d** | **%d** |\n", served, planned)
	for _, area := range areas {
		fmt.Fprintf(&out, "\n## %s\n\n| Method | Path | State | Only on |\n| --- | --- | --- | --- |\n", area)
		for _, s := range specification {
			if s.area == area {
				out.WriteString(a.line(s))
			}
		}
	}
	a.others(&out)
	return out.String()
}

func (a *API) count(area string) (served, planned int) {
	for _, s := range specification {
		switch {
		case s.area != area:
		case a.routes(s):
			served++
		default:
			planned++
		}
	}
	return served, planned
}

// anchor is what a heading is called in links.
func anchor(title string) string {
	return strings.ReplaceAll(regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(title), ""), " ", "-")
}

func (a *API) line(s specified) string {
	state, only, path := "planned", "", prefix+s.path
	if s.root {
		path = s.path
	}
	if a.routes(s) {
		state = "served"
	}
	if e := a.find(s.method, s.path); e != nil && !s.root {
		only = e.only()
	}
	return fmt.Sprintf("| %s | `%s` | %s | %s |\n", s.method, path, state, only)
}

// only names the installations that have an endpoint.
func (e *endpoint) only() string {
	var words []string
	switch e.tier {
	case Premium:
		words = append(words, "premium and ultimate")
	case Ultimate:
		words = append(words, "ultimate")
	}
	if e.hosted == selfManaged {
		words = append(words, "self-managed")
	}
	return strings.Join(words, ", ")
}

// others adds what is served beyond the specification.
func (a *API) others(out *strings.Builder) {
	fmt.Fprintf(out, "\n## Other endpoints of the public v4 API\n\nThese are served as well, in the same way.\n")
	group := ""
	for _, e := range a.endpoints {
		if slices.ContainsFunc(specification, func(s specified) bool {
			return !s.root && s.method == e.method && nameless(s.path) == nameless(e.path)
		}) {
			continue
		}
		if e.group != group {
			group = e.group
			fmt.Fprintf(out, "\n### %s\n\n| Method | Path | What it does | Only on |\n| --- | --- | --- | --- |\n", groupTitle(group))
		}
		fmt.Fprintf(out, "| %s | `%s` | %s | %s |\n", e.method, prefix+e.path, e.summary, e.only())
	}
}

func TestLostRoutes(t *testing.T) {
	t.Parallel()
	a := New(Deps{Site: testSite()})
	tests := []struct {
		name string
		text string
		want []string
	}{
		{"served", "| GET | `/api/v4/users` | served | |", nil},
		{"another name of the parameter", "| GET | `/api/v4/users/{user}` | served | |", nil},
		{"planned", "| GET | `/api/v4/nowhere` | planned | |", nil},
		{"lost", "| GET | `/api/v4/nowhere` | served | |", []string{"GET /api/v4/nowhere"}},
		{"lost, another method", "| PATCH | `/api/v4/users` | served | |", []string{"PATCH /api/v4/users"}},
		{"a parameter is no name", "| GET | `/api/v4/users/import` | served | |", []string{"GET /api/v4/users/import"}},
		{"lost beyond the specification", "| GET | `/api/v4/nowhere` | Get what is planned | |", []string{"GET /api/v4/nowhere"}},
		{"lost at the root", "| POST | `/oauth/nowhere` | served | |", []string{"POST /oauth/nowhere"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, lostRoutes(tt.text, a)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSpecificationIsUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range specification {
		if key := s.method + " " + nameless(s.path); seen[key] {
			t.Errorf("%s stands there twice", key)
		} else {
			seen[key] = true
		}
	}
}
