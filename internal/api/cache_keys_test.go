package api_test

import (
	"fmt"
	"slices"
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
