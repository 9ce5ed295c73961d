package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// TestCacheKeysOfUnprotectedRefs checks that no key of a job of an unprotected ref
// names a cache of protected refs.
func TestCacheKeysOfUnprotectedRefs(t *testing.T) {
	t.Parallel()
	const file = `
plain: {script: [make], cache: {key: deps, paths: [deps/], fallback_keys: [old]}}
shared: {script: [make], cache: {key: deps-protected, paths: [deps/], unprotect: true, fallback_keys: [old-protected]}}
`
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, file)
		keys := func() (all []string) {
			t.Helper()
			b.pipeline(b.project)
			for range 2 {
				var j struct {
					Cache []struct {
						Key          string
						FallbackKeys []string `json:"fallback_keys"`
					}
				}
				s.Check(t, apptest.Call{Do: "POST /jobs/request", JSON: fmt.Sprintf(`{"token":%q}`, b.runner), Status: 201}).JSON(t, &j)
				for _, c := range j.Cache {
					all = append(append(all, c.Key), c.FallbackKeys...)
				}
			}
			return all
		}
		if got, want := keys(), []string{"deps-non_protected", "old-non_protected", "deps-protected-non_protected", "old-protected-non_protected"}; !slices.Equal(got, want) {
			t.Errorf("keys of an unprotected ref are %q, want %q", got, want)
		}
		s.Check(t, apptest.Call{Do: "POST " + b.at("/protected_branches"), As: b.owner, JSON: `{"name":"main"}`, Status: 201})
		if got, want := keys(), []string{"deps-protected", "old-protected", "deps-protected-non_protected", "old-protected-non_protected"}; !slices.Equal(got, want) {
			t.Errorf("keys of a protected ref are %q, want %q", got, want)
		}
	})
}

// TestCacheKeysOfFiles checks that keys are computed from the content of files, or from
// the commits that changed them.
func TestCacheKeysOfFiles(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, `
job:
  script: [x]
  cache:
    - {key: {files: ["**/*.sum"]}, paths: [a]}
    - {key: {files: [go.sum]}, paths: [a]}
    - {key: {files_commits: [go.sum]}, paths: [a]}
    - {key: {files: ["*.none"]}, paths: [a]}
`)
		keys := func(message string, files map[string]string) (all []string) {
			t.Helper()
			w.push("main", message, files)
			var j struct{ Cache []struct{ Key string } }
			s.Check(t, apptest.Call{Do: "POST /jobs/request", JSON: fmt.Sprintf(`{"token":%q}`, w.runner), Status: 201}).JSON(t, &j)
			for _, c := range j.Cache {
				all = append(all, c.Key)
			}
			if len(all) != 4 || !strings.HasPrefix(all[3], "default") {
				t.Fatalf("%s: keys are %q", message, all)
			}
			return all
		}
		first := keys("one", map[string]string{"x": "1", "sub/b.sum": "b"})
		if strings.HasPrefix(first[0], "default") || strings.HasPrefix(first[1], "default") || strings.HasPrefix(first[2], "default") || first[0] == first[1] {
			t.Errorf("keys are %q", first)
		}
		if got := keys("another file", map[string]string{"x": "2"}); !slices.Equal(got, first) {
			t.Errorf("keys are %q, want %q", got, first)
		}
		if got := keys("below", map[string]string{"sub/b.sum": "c"}); got[0] == first[0] || !slices.Equal(got[1:], first[1:]) {
			t.Errorf("keys are %q after %q", got, first)
		}
		keys("changed", map[string]string{"go.sum": "2", "sub/b.sum": "b"})
		if got := keys("as before", map[string]string{"go.sum": "x\n"}); !slices.Equal(got[:2], first[:2]) || got[2] == first[2] {
			t.Errorf("keys are %q after %q", got, first)
		}
	})
}
