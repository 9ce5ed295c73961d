package config

import "testing"

func TestScopeCovers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true}, {"review/*", "review/1", true}, {"review/*", "review", false}, {"*/eu", "prod/eu", true},
		{"a*b*c", "axbyc", true}, {"a*b*c", "acb", false}, {"production", "production", true}, {"prod", "production", false},
	} {
		if got := ScopeCovers(tt.pattern, tt.name); got != tt.want {
			t.Errorf("%q covers %q: %v", tt.pattern, tt.name, got)
		}
	}
}
