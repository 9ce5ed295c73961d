package semver

import (
	"strings"
	"testing"
)

func TestValid(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"1.2.3": true, "v1.2.3": true, "0.0.0": true, "1.2.3-rc.1": true, "1.2.3+build.5": true, "1.2.3-rc1+x": true, "123456789012345678901234567890.0.0": true,
		"": false, "1": false, "1.2": false, "1.2.3.4": false, "01.2.3": false, "x1.2.3": false, "1.2.3-": false, "1.2.3\n": false, "latest": false,
		"1.2.3-" + strings.Repeat("a", 300): false,
	} {
		if got := Valid(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestVersionOrder compares all pairs of a sorted list of versions.
func TestVersionOrder(t *testing.T) {
	t.Parallel()
	order := []string{
		"0.9.9", "1.0.0-1", "1.0.0-2", "1.0.0-10", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-rc.2", "1.0.0-rc.11", "1.0.0",
		"1.0.1", "1.2.0", "1.10.0", "2.0.0", "10.0.0", "100000000000000000000.0.0",
	}
	for i, a := range order {
		for j, b := range order {
			x, _ := Parse(a)
			y, _ := Parse(b)
			if got := x.Compare(y); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%s against %s: %d", a, b, got)
			}
		}
	}
}
