package packages

import "testing"

func TestMatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"*", "anything", true}, {"@s/*", "@s/x", true}, {"@s/*", "@t/x", false}, {"*-x", "a-x", true}, {"*-x", "a-x-y", false},
		{"a*b*c", "a1b2c", true}, {"a*b*c", "acb", false}, {"A*", "abc", true}, {"a*a", "a", false}, {"**", "", true}, {"ab*bc", "abc", false},
	} {
		if got := matches(c.pattern, c.name); got != c.want {
			t.Errorf("matches(%q, %q) = %v", c.pattern, c.name, got)
		}
	}
}
